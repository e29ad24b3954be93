"""Files that grow while they are read or copied (E29)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import LimitError
from carrel.values import Limits
from carrel.workspace.search import SearchBudget
from carrel.workspace.workspace import Workspace
from tests.faults.inject import first

LIMIT = 1000


@pytest.fixture
def limited(directory: Path, quiet: SandboxLogger) -> Workspace:
    """A workspace with one file that is within all limits, yet."""
    (directory / "f").write_bytes(b"x" * 10)
    return Workspace.open(directory, logger=quiet, limits=Limits(read_bytes=LIMIT, file_bytes=LIMIT))


@pytest.fixture
def grow(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Let the file grow as soon as its size was looked at, and count what is read of it."""

    def let_it_grow(to: int) -> list[int]:
        amounts: list[int] = []
        looked, read = os.fstat, os.read

        def look(fd: int) -> os.stat_result:
            found = looked(fd)
            if found.st_ino == (directory / "f").stat().st_ino:
                os.truncate(directory / "f", to)
            return found

        def counted(fd: int, count: int) -> bytes:
            data = read(fd, count)
            amounts.append(len(data))
            return data

        monkeypatch.setattr(os, "fstat", look)
        monkeypatch.setattr(os, "read", counted)
        return amounts

    return let_it_grow


@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT + 2, 10 * LIMIT, 2**40])
def test_a_file_that_grows_past_the_limit_is_read_no_further_than_one_byte_past_it(
    limited: Workspace, grow: Callable[[int], list[int]], size: int
) -> None:
    amounts = grow(size)
    with pytest.raises(LimitError) as caught:
        limited.read("f")
    assert caught.value.code == "limit.read_bytes"
    assert sum(amounts) <= LIMIT + 1


def test_a_file_that_grows_within_the_limit_is_read_whole(
    limited: Workspace, grow: Callable[[int], list[int]]
) -> None:
    grow(LIMIT)
    assert limited.read("f") == b"x" * 10 + bytes(LIMIT - 10)


def test_a_window_of_a_file_that_grows_is_no_longer_than_asked(
    limited: Workspace, grow: Callable[[int], list[int]]
) -> None:
    grow(2**40)
    assert limited.read("f", offset=5, length=100) == b"x" * 5


def test_a_file_that_grows_while_it_is_searched_is_skipped(
    limited: Workspace, grow: Callable[[int], list[int]]
) -> None:
    amounts = grow(2**40)
    result = limited.search("x", budget=SearchBudget(file_bytes=LIMIT))
    assert result.files_skipped == 1
    assert sum(amounts) <= LIMIT + 1


def test_a_file_that_grows_while_it_is_copied_is_refused_and_leaves_nothing(
    limited: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    larger = first(os.copy_file_range, lambda: os.truncate(directory / "f", LIMIT + 1))
    monkeypatch.setattr(os, "copy_file_range", larger)
    with pytest.raises(LimitError):
        limited.copy("f", "copied")
    assert os.listdir(directory) == ["f"]


def test_a_source_that_gives_too_much_is_stopped_at_the_limit(limited: Workspace, directory: Path) -> None:
    given = 0

    def too_much() -> Iterator[bytes]:
        nonlocal given
        for _ in range(LIMIT):
            given += 1
            yield b"x" * 100

    with pytest.raises(LimitError):
        limited.write_chunks("new", too_much())
    assert given == LIMIT // 100 + 1
    assert os.listdir(directory) == ["f"]
