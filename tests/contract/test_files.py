"""What holds for every operation of every implementation of `Files`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from carrel.errors import ClosedError, ExistsError, MissingError, UnavailableError
from carrel.fs.api import Existing, Files, Links, Parents
from carrel.fs.memory.files import MemoryFiles
from carrel.values import Limits
from tests.contract import operations as ops
from tests.contract.operations import Operation
from tests.contract.places import (
    IN_CONTAINERS,
    KINDS,
    NO_LIMITS,
    HostPlace,
    Place,
    Ticks,
    at_once,
    kinds_here,
    open_place,
    read,
    refill,
    refused,
    where,
    write,
)
from tests.requirements import requirement

EVERY: list[Callable[[str], Operation]] = [
    ops.read,
    ops.read_with_info,
    ops.reader,
    ops.stat,
    lambda path: ops.stat(path, Links.KEEP),
    ops.listing,
    ops.names,
    lambda path: ops.walk(path, NO_LIMITS),
    lambda path: ops.read_tree(path, NO_LIMITS),
    ops.touch,
    ops.write,
    lambda path: ops.write(path, existing=Existing.REFUSE, parents=Parents.REQUIRE),
    ops.append,
    lambda path: ops.append(path, expect="1-1-1"),
    ops.mkdir,
    lambda path: ops.mkdir(path, Parents.REQUIRE),
    lambda path: ops.link(path, "f"),
    lambda path: ops.link(path, "f", Existing.REPLACE),
    ops.remove,
    lambda path: ops.remove(path, "1-1-1"),
    ops.remove_tree,
    lambda path: ops.remove_tree(path, "1-1-1"),
    lambda path: ops.move(path, "moved"),
    lambda path: ops.move(path, "moved", Existing.REFUSE, "1-1-1"),
    lambda path: ops.move("f", path, Existing.REPLACE),
    lambda path: ops.copy(path, "copied"),
    lambda path: ops.copy("f", path, Existing.REPLACE),
]
"""Each operation with one path; where there are two, the other one is fine."""
PATHS = (
    "f",
    "d",
    "d/g",
    "to-f",
    "to-d",
    "new",
    "missing/f",
    "f/x",
    "out",
    "out/secret",
    "loop",
    "..",
    ".",
    "d/",
)
TREE = ("f = text", "d/g", "to-f => f", "to-d => d", "out => ../outside", "loop => loop")


ON_THE_HOST = {"subtree", "host_path", "unmediated_access"}
"""What only a directory of the host offers."""


def test_every_operation_of_the_protocol_is_tried() -> None:
    offered = {name for name in vars(Files) if not name.startswith("_")}
    offered -= {"confinement", "measure", "close", *ON_THE_HOST}
    tried = {repr(make("f")).partition("(")[0] for make in EVERY}
    assert tried == offered


def test_only_a_directory_of_the_host_has_a_path_and_subtrees(place: Place) -> None:
    place.plant("d/f = text")
    if isinstance(place, HostPlace) and place.files.confinement in ("kernel", "walk"):
        assert place.files.host_path(where("d/f")) == str(place.directory / "d/f")
        assert place.files.subtree(("d",)).read(where("f"), limit=None, offset=0, length=None) == b"text"
        assert place.files.unmediated_access() is not None
        return
    for ask in (partial(place.files.host_path, where("d/f")), partial(place.files.subtree, ("d",))):
        with pytest.raises(UnavailableError, match="not on the host's disk"):
            ask()
    assert place.files.unmediated_access() is None


@pytest.mark.parametrize(
    ("kind", "confinement"),
    [
        ("kernel", "kernel"),
        ("walk", "walk"),
        ("scratch", "kernel"),
        ("memory", "memory"),
        ("part", "kernel"),
        ("checked", "kernel"),
        ("container", "container"),
        ("archive", "archive"),
    ],
)
def test_each_says_how_it_confines(kind: str, confinement: str, tmp_path: Path) -> None:
    files = open_place(kind, tmp_path).files
    write(files, "f")
    assert files.confinement == confinement
    files.close()
    assert files.confinement == confinement


@pytest.mark.parametrize("make", EVERY, ids=lambda make: repr(make("f")))
def test_nothing_works_after_the_end(place: Place, make: Callable[[str], Operation]) -> None:
    place.plant("f = text")
    place.files.close()
    assert make("f").run(place.files) == ("error", "ClosedError", "workspace.closed", None, "f")
    with refused(ClosedError, "f"):
        make("f").call(place.files)


def test_the_end_can_come_twice(place: Place) -> None:
    place.files.close()
    place.files.close()


def test_an_error_names_the_path_as_it_was_asked_for(place: Place) -> None:
    place.plant("d/")
    with refused(MissingError, ".\\d//../missing") as caught:
        read(place.files, ".\\d//../missing")
    assert repr(".\\d//../missing") in str(caught.value)


@requirement("R-04", "W-17")
def test_no_error_and_no_answer_tells_where_on_the_host_the_place_is(tmp_path: Path) -> None:
    for kind in kinds_here():
        place = open_place(kind, tmp_path / kind)
        place.plant(*TREE)
        for make in EVERY:
            for path in PATHS:
                operation = make(path)
                assert str(tmp_path) not in repr(operation.run(place.files)), operation


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("memory", *IN_CONTAINERS)])
def test_no_operation_leaves_a_descriptor_open(kind: str, tmp_path: Path) -> None:
    place = open_place(kind, tmp_path)
    before = _descriptors()
    for make in EVERY:
        for path in PATHS:
            refill(place, *TREE)
            make(path).run(place.files)
    assert _descriptors() == before
    place.files.close()
    assert _descriptors() < before


def _descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_two_places_know_nothing_of_each_other(tmp_path: Path) -> None:
    for kind in kinds_here():
        one, other = open_place(kind, tmp_path / kind / "1"), open_place(kind, tmp_path / kind / "2")
        write(one.files, "f", b"one")
        write(other.files, "f", b"other")
        assert (read(one.files, "f"), read(other.files, "f")) == (b"one", b"other")


# Many at once


def test_many_writers_of_one_file_leave_one_whole_content(place: Place) -> None:
    contents = [bytes([65 + number]) * 5_000 for number in range(8)]
    at_once([partial(write, place.files, "f", data) for data in contents])
    assert read(place.files, "f") in contents
    assert len(place.lines()) == 1


def test_of_many_who_make_one_file_one_does(place: Place) -> None:
    won: list[int] = []

    def make(number: int) -> None:
        try:
            write(place.files, "a/b/f", bytes([number]), existing=Existing.REFUSE)
        except ExistsError:
            return
        won.append(number)

    at_once([partial(make, number) for number in range(8)])
    assert len(won) == 1
    assert read(place.files, "a/b/f") == bytes(won)


def test_what_many_append_is_all_there(place: Place) -> None:
    place.plant("f = ")
    lines = [f"line of {number}\n".encode() for number in range(8)]
    at_once([partial(place.files.append, where("f"), line, limit=None) for line in lines] * 5)
    assert sorted(read(place.files, "f").splitlines(keepends=True)) == sorted(lines * 5)


def test_readers_see_old_or_new_content_while_others_write(place: Place) -> None:
    contents = [b"a" * 3_000, b"b" * 4_000]
    write(place.files, "f", contents[0])
    seen: list[bytes] = []

    def write_often() -> None:
        for number in range(40):
            write(place.files, "f", contents[number % 2])

    def read_often() -> None:
        for _ in range(40):
            seen.append(read(place.files, "f"))
            list(place.files.walk(where("."), Limits()))

    at_once([write_often, read_often, read_often])
    assert set(seen) <= set(contents)


# What only one of them has


@pytest.fixture
def memory() -> Iterator[MemoryFiles]:
    files = MemoryFiles(clock=Ticks())
    yield files
    files.close()


def test_the_times_in_memory_come_from_the_clock_that_was_given(memory: MemoryFiles) -> None:
    times = [write(memory, "d/f").modified_ns]
    times.append(memory.append(where("d/f"), b"!", limit=None).info.modified_ns)
    times.append(memory.stat(where("d"), Links.KEEP).modified_ns)
    write(memory, "d/g")
    times.append(memory.stat(where("d"), Links.KEEP).modified_ns)
    memory.remove(where("d/g"))
    times.append(memory.stat(where("d"), Links.KEEP).modified_ns)
    assert all(1_000 < time < 1_020 for time in times)
    assert times[2] < times[1] < times[3] < times[4]


def test_an_inode_number_in_memory_is_never_used_again(memory: MemoryFiles) -> None:
    seen = set()
    for _ in range(10):
        seen.add(write(memory, "f").inode)
        memory.remove(where("f"))
    assert len(seen) == 10


def test_a_draft_is_never_seen_in_a_place_with_scratch(tmp_path: Path) -> None:
    place = HostPlace(tmp_path, "scratch")

    def data() -> Iterator[bytes]:
        yield b"half"
        assert place.lines() == []

    place.files.write(where("f"), data(), existing=Existing.REFUSE, parents=Parents.MAKE)
    place.require_clean()
