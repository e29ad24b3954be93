"""A descriptor lives exactly as long as somebody holds its handle."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path

import pytest

from carrel.fs.handle import Handle


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@pytest.fixture
def fd(tmp_path: Path) -> int:
    return os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)


def test_the_descriptor_closes_with_the_last_reference(fd: int) -> None:
    handle = Handle(fd)
    other = handle
    del handle
    assert _is_open(fd)
    del other
    assert not _is_open(fd)


def test_an_operation_that_runs_keeps_its_descriptor_open(fd: int) -> None:
    shared: list[Handle] = [Handle(fd)]
    began, go_on = threading.Event(), threading.Event()
    seen: list[bool] = []

    def operation() -> None:
        mine = shared[0]
        began.set()
        go_on.wait()
        seen.append(_is_open(mine.fd))

    thread = threading.Thread(target=operation)
    thread.start()
    began.wait()
    shared.clear()
    go_on.set()
    thread.join()
    assert seen == [True]
    assert not _is_open(fd)


def test_a_handle_can_be_watched_without_being_held(fd: int) -> None:
    handle = Handle(fd)
    watched = weakref.ref(handle)
    assert watched() is handle
    del handle
    assert watched() is None
