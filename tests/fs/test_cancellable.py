"""Files that ask before every step; what they do besides is in the contract."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.errors import MissingError
from carrel.fs.api import Existing, Parents
from carrel.fs.cancellable import CancellableFiles, uncancellable
from carrel.fs.local.root import Root
from carrel.paths.parsed_path import parse
from carrel.testing import tree
from carrel.values import Limits


class Count:
    """Counts how often it is asked, and raises from some time on."""

    def __init__(self, most: int = 10**9) -> None:
        self.seen = 0
        self.most = most

    def __call__(self) -> None:
        self.seen += 1
        if self.seen > self.most:
            raise TimeoutError("stopped")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    opened = Root.open(tree(tmp_path / "ws", "a/f", "a/g", "b/"))
    yield opened
    opened.close()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_every_entry_and_every_chunk_is_asked_about(root: Root) -> None:
    count = Count()
    files = CancellableFiles(root, count)
    assert len(list(files.walk(parse("."), Limits()))) == 4
    assert count.seen == 1 + 4
    list(files.reader(parse("a/f")).chunks(1))
    assert count.seen == 5 + 1 + 2
    files.write(parse("new"), [b"1", b"2", b"3"], existing=Existing.REFUSE, parents=Parents.MAKE)
    assert count.seen == 8 + 1 + 3


def test_what_a_check_raises_is_not_taken_for_an_error_of_the_host(root: Root) -> None:
    files = CancellableFiles(root, Count(2))
    with pytest.raises(TimeoutError, match="stopped"):
        files.write(parse("new"), [b"1", b"2"], existing=Existing.REFUSE, parents=Parents.MAKE)
    assert [info.path for info in root.list(parse("."), limit=None)] == ["a", "b"]


def test_what_a_source_raises_comes_as_it_is(root: Root) -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        raise MissingError("no more", path="elsewhere")

    with pytest.raises(MissingError, match="no more") as caught:
        CancellableFiles(root, Count()).write(
            parse("new"), broken(), existing=Existing.REFUSE, parents=Parents.MAKE
        )
    assert caught.value.path == "elsewhere"


def test_an_error_that_is_kept_holds_nothing_open(root: Root) -> None:
    before = _descriptors()
    files = CancellableFiles(root, Count(3))
    errors = []
    try:
        for _ in files.walk(parse("."), Limits()):
            pass
    except TimeoutError as error:
        errors.append(error)
    assert errors
    assert _descriptors() == before


def test_what_is_taken_away_is_not_asked_about(root: Root) -> None:
    files = CancellableFiles(CancellableFiles(root, Count(0)), Count(0))
    assert uncancellable(files) is root
    assert uncancellable(root) is root
