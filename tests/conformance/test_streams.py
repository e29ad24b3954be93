"""What comes or goes in pieces, through the library and through the client over HTTP and gRPC."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest

from carrel.errors import EscapeError
from carrel.remote.json_codec import render
from carrel.values import Limits
from tests.conformance.answer import REQUEST, Answer
from tests.conformance.client_door import ByClient
from tests.conformance.door import Doors
from tests.conformance.library import Library, answering
from tests.conformance.row import Row
from tests.workspace.archives import directory, file, link, tar

GOOD = tar(file("f", b"new"), directory("dir"), file("dir/f", b"new"), link("dir/up", "../f"))
BAD = tar(file("../f", b"new"))
Anyone = Any  # a Workspace or a RemoteWorkspace, which share no type
Call = Callable[[Anyone], object]


def _members(pieces: Iterable[bytes]) -> list[tuple[str, object]]:
    with tarfile.open(fileobj=io.BytesIO(b"".join(pieces))) as archive:
        return [(each.name, each.size if each.isfile() else each.linkname) for each in archive]


def _zipped(pieces: Iterable[bytes]) -> list[tuple[str, int]]:
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        return [(each.filename, each.file_size) for each in archive.infolist()]


def _told(workspace: Anyone) -> list[tuple[object, ...]]:
    workspace.write("t.txt", b"1")
    workspace.append("t.txt", b"2")
    workspace.remove("t.txt")
    events = list(workspace.changes(0))
    return [
        (event.operation, event.path, event.before_bytes, event.after_bytes, event.error)
        for event in events[-3:]
    ]


def _refused_again_and_again(workspace: Anyone) -> list[tuple[object, ...]]:
    for _ in range(3):
        with suppress(EscapeError):
            workspace.read("../again")
    events = list(workspace.changes(0))
    return [(event.operation, event.path, event.error, event.repeats) for event in events[-2:]]


def _read(path: str, options: dict[str, int]) -> Call:
    return lambda workspace: workspace.read(path, **options)


READING: dict[str, Call] = {
    **{
        f"read {path!r} {options}": _read(path, options)
        for path in (
            *("a.txt", "big.txt", "binary.bin", "empty", "d", "missing", "../x", "out/secret", "fifo"),
            "a\0b",
        )
        for options in ({}, {"offset": 3}, {"offset": 2, "length": 4}, {"length": 0}, {"offset": 10**6})
    },
    "read a name that nobody can spell": lambda workspace: workspace.read("%2e%2e/f"),
    "read_with_info": lambda workspace: workspace.read_with_info("a.txt"),
    "read_with_info of a window": lambda workspace: workspace.read_with_info("big.txt", offset=7, length=9),
    "read_with_info of nothing": lambda workspace: workspace.read_with_info("missing"),
    "read_chunks": lambda workspace: list(workspace.read_chunks("big.txt", chunk_bytes=5000)),
    "read_chunks of nothing": lambda workspace: list(workspace.read_chunks("missing")),
    "read_chunks of an empty file": lambda workspace: list(workspace.read_chunks("empty")),
    "read_chunks outside": lambda workspace: list(workspace.read_chunks("secret-link")),
    "read_tree": lambda workspace: [(each.path, b"".join(each.chunks)) for each in workspace.read_tree("d")],
    "walk": lambda workspace: [info.path for info in workspace.walk()],
    "walk beneath": lambda workspace: list(workspace.walk("d")),
    "walk a link": lambda workspace: list(workspace.walk("dirlink")),
    "walk a file": lambda workspace: list(workspace.walk("a.txt")),
    "walk nothing": lambda workspace: list(workspace.walk("missing")),
    "walk outside": lambda workspace: list(workspace.walk("out")),
    "walk into some": lambda workspace: [
        info.path for info in workspace.walk(enter=lambda info: info.name != "deep")
    ],
    "archive": lambda workspace: _members(workspace.archive("d")),
    "archive of all": lambda workspace: _members(workspace.archive()),
    "archive, compressed": lambda workspace: _members(workspace.archive("d", format="tar.gz")),
    "archive as zip": lambda workspace: _zipped(workspace.archive("d", format="zip")),
    "archive in no format": lambda workspace: list(workspace.archive("d", format="rar")),
    "archive of nothing": lambda workspace: list(workspace.archive("missing")),
    "archive outside": lambda workspace: list(workspace.archive("../x")),
}

CHANGING: dict[str, Call] = {
    "write bytes": lambda workspace: workspace.write("n.bin", bytes(range(256))),
    "write many bytes": lambda workspace: workspace.write("n.bin", bytes(300_000)),
    "write too many bytes": lambda workspace: workspace.write("n.bin", bytes(900_000)),
    "write bytes outside": lambda workspace: workspace.write("../n.bin", b"x"),
    "write bytes through a link out": lambda workspace: workspace.write("out/n.bin", b"x"),
    "write bytes over a directory": lambda workspace: workspace.write("d", b"x"),
    "write bytes again": lambda workspace: workspace.write("a.txt", b"x", overwrite=False),
    "write bytes without parents": lambda workspace: workspace.write("x/y", b"x", parents=False),
    "write_chunks": lambda workspace: workspace.write_chunks("n.bin", iter([b"a" * 1000] * 100)),
    "write_chunks of nothing": lambda workspace: workspace.write_chunks("n.bin", iter([])),
    "write_chunks of too much": lambda workspace: workspace.write_chunks("n.bin", iter([b"a" * 10**5] * 20)),
    "write_chunks outside": lambda workspace: workspace.write_chunks("../n.bin", iter([b"a"])),
    "write_chunks again": lambda workspace: workspace.write_chunks("a.txt", iter([b"a"]), overwrite=False),
    "write_chunks of another version": lambda workspace: workspace.write_chunks(
        "a.txt", iter([b"a"]), if_version="1-1-1"
    ),
    "write_chunks of this version": lambda workspace: workspace.write_chunks(
        "a.txt", iter([b"a"]), if_version=workspace.stat("a.txt").version
    ),
    "append bytes": lambda workspace: workspace.append("binary.bin", b"\xff\x00"),
    "extract": lambda workspace: workspace.extract(GOOD, "new"),
    "extract pieces": lambda workspace: workspace.extract(iter([GOOD[:100], GOOD[100:]]), "new"),
    "extract a stream": lambda workspace: workspace.extract(io.BytesIO(GOOD), "new"),
    "extract over something": lambda workspace: workspace.extract(tar(file("a.txt", b"new"))),
    "extract and overwrite": lambda workspace: workspace.extract(tar(file("a.txt", b"new")), overwrite=True),
    "extract what leads out": lambda workspace: workspace.extract(BAD),
    "extract what is broken": lambda workspace: workspace.extract(GOOD[:700]),
    "extract what is none": lambda workspace: workspace.extract(b"no archive at all"),
    "extract in a wrong format": lambda workspace: workspace.extract(GOOD, format="zip"),
    "extract outside": lambda workspace: workspace.extract(GOOD, "../x"),
    "changes": _told,
    "changes of what is refused again": _refused_again_and_again,
}
JUDGED_BY_CODE = (REQUEST, "quota.bytes")
"""Errors compared by code only: the library raises those of Python, and `asked` depends on the chunk size."""
LIMITS = Limits(disk_bytes=800_000, entries=1000)


@pytest.mark.parametrize("name", [*READING, *CHANGING])
def test_the_client_does_what_the_library_does(name: str, doors: Doors) -> None:
    call = READING.get(name) or CHANGING[name]
    row = Row(text=name, name=name, arguments={}, limits=LIMITS)
    expected, left = _made(doors, doors.library, row, call)
    for door in doors.others:
        if isinstance(door, ByClient):
            answer, found = _made(doors, door, row, call)
            if expected.code in JUDGED_BY_CODE:
                assert answer.code == expected.code, door.name
            else:
                assert answer == expected, door.name
            assert found == left, door.name


def _made(doors: Doors, door: object, row: Row, call: Call) -> tuple[Answer, object]:
    assert isinstance(door, Library | ByClient)
    session = doors.places.session(door.name, row)
    with answering(session) as answers:
        answers.append(Answer.of(render(call(door.workspace(session))), session))
    return answers[0], doors.places.contents(session)
