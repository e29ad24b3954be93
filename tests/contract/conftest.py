"""One place for each implementation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.places import KINDS, Place, open_place


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty tree behind each implementation in turn; what is outside must stay as it is."""
    opened = open_place(request.param, tmp_path)
    yield opened
    opened.require_clean()
    opened.files.close()
