"""The disk of the host has little left, and must keep that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.errors import DiskLowError
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.chunks import Announced
from carrel.workspace.workspace import Workspace
from tests.storage.ledgers import count, leftovers

pytestmark = pytest.mark.root

KEPT_BYTES = 200_000
PIECE = b"n" * 10_000


def fill(workspace: Workspace) -> None:
    """Write files until one is refused."""
    for number in range(1_000):
        workspace.write(str(number), PIECE)


def test_a_disk_is_never_filled_to_the_last_block(small_disk: Path) -> None:
    sessions = WorkspaceManager(small_disk / "sessions", min_free_bytes=KEPT_BYTES)
    with sessions.create("one") as workspace:
        with pytest.raises(DiskLowError):
            fill(workspace)
        with pytest.raises(DiskLowError):
            workspace.write_chunks("chunks", [PIECE] * 1_000)
        free = os.statvfs(small_disk)
        assert KEPT_BYTES - len(PIECE) < free.f_bavail * free.f_frsize < KEPT_BYTES + 2 * len(PIECE)
        assert leftovers(sessions, "one") == []
        assert workspace.usage() == count(sessions.root / "one") == workspace.recount()


def test_an_archive_that_would_leave_too_little_is_refused_before_it_is_read(small_disk: Path) -> None:
    sessions = WorkspaceManager(small_disk / "sessions", min_free_bytes=KEPT_BYTES)
    free = os.statvfs(small_disk)
    size = free.f_bavail * free.f_frsize - KEPT_BYTES // 2

    taken: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        taken.append(b"")
        yield b""

    with sessions.create("one") as workspace:
        with pytest.raises(DiskLowError, match="wanted"):
            workspace.extract(Announced(pieces(), size))
        assert taken == []
        workspace.extract(Announced([bytes(10_240)], 10_240))
