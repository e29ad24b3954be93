"""The guest is not compiled where there is no room for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.errors import DiskFullError
from carrel.runtimes.wasm.build.compiled import CompiledGuest

pytestmark = pytest.mark.root


@pytest.mark.usefixtures("guest_cache")
def test_a_disk_without_room_is_told_before_the_work(small_disk: Path) -> None:
    with pytest.raises(DiskFullError, match=r"the cache directory .* is full: 500 MiB are needed"):
        CompiledGuest(small_disk / "cache").make()
    assert sorted(path.name for path in (small_disk / "cache" / "guest").iterdir()) == ["lock"]
