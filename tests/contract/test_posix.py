"""Where nothing leads out, results and errno are those of a plain call of `os` on the same tree.

The matrix: spellings of a path, what stands there, the operation, the implementation.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from carrel.errors import AbsoluteError, CarrelError, EscapeError, PathError
from carrel.fs.api import Existing, Files, Links, Parents
from carrel.paths.parsed_path import parse
from carrel.testing import tree
from tests.contract.places import IN_CONTAINERS, IN_MEMORY, KINDS, WRAPPERS, Place, open_place, refill, show
from tests.depth import IS_THOROUGH, pairs
from tests.requirements import requirement

SPELLINGS = ("b", "b/", "b/.", "d/../b", "./b", "../ws/b", "/ws/b", "d//b")
AROUND = ("t = target", "e/x = inside", "d/t = target", "d/e/x = inside", "source = mine")
STANDING: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "a file": ("b = text", "d/b = text"),
    "an empty directory": ("b/", "d/b/"),
    "a full directory": ("b/y", "d/b/y"),
    "a link to a file": ("b => t", "d/b => t"),
    "a link to a directory": ("b => e", "d/b => e/."),
    "a link to a file with a slash": ("b => t/", "d/b => t/."),
    "a dangling link": ("b => nothing", "d/b => nothing"),
    "a link in a circle": ("b => b", "d/b => ../d/b"),
    "a link out": ("b => ../outside/secret", "d/b => ../../outside/secret"),
    "a link out to a directory": ("b => ../outside", "d/b => ../../outside/dir"),
    "a link out to nothing": ("b => ../outside/nothing", "d/b => ../../outside/nothing"),
}

Result = tuple[object, list[str]]
"""What came back, or the errno; and the tree afterwards."""


@dataclass(frozen=True)
class Call:
    """One operation of ours and what it is beside `os`."""

    name: str
    ours: Callable[[Files, str], object]
    plain: Callable[[str], object]
    follows: frozenset[str]
    """After which ends of a path a link at its end is followed: none, a slash, a dot."""
    wants_name: bool = False
    """Whether a path must end in a name."""


def _ours_stat(links: Links) -> Callable[[Files, str], object]:
    def call(files: Files, path: str) -> object:
        info = files.stat(parse(path), links)
        return info.kind.value, info.size_bytes, info.mode, info.target

    return call


def _plain_stat(follow: bool) -> Callable[[str], object]:
    def call(path: str) -> object:
        found = os.stat(path, follow_symlinks=follow)
        kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
        kind = kinds[stat.S_IFMT(found.st_mode)]
        target = os.readlink(path) if kind == "link" else None
        return kind, 0 if kind == "directory" else found.st_size, found.st_mode & 0o777, target

    return call


def _plain_read(path: str) -> object:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, 100)
    finally:
        os.close(fd)


def _plain_write(flags: int) -> Callable[[str], object]:
    def call(path: str) -> object:
        fd = os.open(path, os.O_WRONLY | flags, 0o666)
        try:
            return os.write(fd, b"new")
        finally:
            os.close(fd)

    return call


def _ours_write(files: Files, path: str) -> object:
    files.write(parse(path), (b"new",), existing=Existing.REPLACE, parents=Parents.REQUIRE)
    return 3


def _ours_append(files: Files, path: str) -> object:
    change = files.append(parse(path), b"new", limit=None)
    return change.info.size_bytes - (change.before_bytes or 0)


def _ours_mkdir(files: Files, path: str) -> object:
    """A directory that was there is no error of ours, but one of the host."""
    return None if files.mkdir(parse(path), parents=Parents.REQUIRE) else errno.EEXIST


def _plain_remove(path: str) -> object:
    is_directory = os.path.isdir(path) and not os.path.islink(path.rstrip("/"))
    (os.rmdir if is_directory else os.unlink)(path)
    return None


def _ours_remove(files: Files, path: str) -> object:
    files.remove(parse(path))
    return None


def _ours_move(source: str | None, target: str | None) -> Callable[[Files, str], object]:
    def call(files: Files, path: str) -> object:
        files.move(parse(source or path), parse(target or path), existing=Existing.REPLACE)
        return None

    return call


def _plain_move(source: str | None, target: str | None) -> Callable[[str], object]:
    def call(path: str) -> object:
        top = path[: path.index("/ws/") + 4]
        os.rename(top + source if source else path, top + target if target else path)
        return None

    return call


ALL, SLASH, DOT = frozenset(("", "/", "/.")), frozenset(("/", "/.")), frozenset(("/.",))
CALLS = [
    Call(
        "read",
        lambda files, path: files.read(parse(path), limit=None, offset=0, length=None),
        _plain_read,
        ALL,
    ),
    Call(
        "reader",
        lambda files, path: b"".join(files.reader(parse(path)).chunks(100)),
        _plain_read,
        ALL,
    ),
    Call("stat", _ours_stat(Links.FOLLOW), _plain_stat(True), ALL),
    Call("stat of a kept link", _ours_stat(Links.KEEP), _plain_stat(False), SLASH),
    Call(
        "list",
        lambda files, path: [info.name for info in files.list(parse(path), limit=None)],
        lambda path: sorted(os.listdir(path)),
        ALL,
    ),
    Call("write", _ours_write, _plain_write(os.O_CREAT | os.O_TRUNC), ALL, wants_name=True),
    Call("append", _ours_append, _plain_write(os.O_APPEND), ALL),
    Call("mkdir", _ours_mkdir, os.mkdir, DOT),
    Call("remove", _ours_remove, _plain_remove, DOT, wants_name=True),
    Call("move away", _ours_move(None, "new"), _plain_move(None, "new"), DOT, wants_name=True),
    Call("move a file there", _ours_move("source", None), _plain_move("source", None), DOT, wants_name=True),
    Call("move a directory there", _ours_move("e", None), _plain_move("e", None), DOT, wants_name=True),
]


CASES = [
    *product((kind for kind in KINDS if kind not in (*IN_CONTAINERS, *WRAPPERS)), CALLS, STANDING),
    *((kind, *each) for each, kind in pairs(list(product(CALLS, STANDING)), WRAPPERS)),
    *(("container", call, standing) for call, standing in pairs(CALLS, list(STANDING))),
    *(() if IS_THOROUGH else (("container", *each) for each in zip(reversed(CALLS), STANDING, strict=True))),
]
"""In a container each call and each obstacle, through wrappers in turn; all when tests are thorough."""


def _id(value: object) -> str:
    return value.name if isinstance(value, Call) else str(value)


@requirement("P-05", "P-06", "P-07", "P-09")
@pytest.mark.parametrize(("kind", "call", "standing"), CASES, ids=_id)
def test_the_answer_is_that_of_the_host(kind: str, call: Call, standing: str) -> None:
    with tempfile.TemporaryDirectory(prefix="carrel-test-", dir=IN_MEMORY) as base:
        place = open_place(kind, Path(base))
        ours = {path: _ours(place, call, standing, path) for path in SPELLINGS}
        place.files.close()
    assert ours == {path: _expected(call, standing, path) for path in SPELLINGS}


def _ours(place: Place, call: Call, standing: str, path: str) -> Result:
    refill(place, *AROUND, *STANDING[standing])
    outcome: object
    try:
        outcome = call.ours(place.files, path)
    except CarrelError as error:
        outcome = error.errno if isinstance(error, OSError) else error.code
    place.require_clean()
    return outcome, place.lines()


def _expected(call: Call, standing: str, path: str) -> Result:
    """The answer of the host, or the refusal that stands before it."""
    end = path[path.rindex("b") + 1 :]
    unchanged = _tree(standing)
    if path.startswith("/"):
        return AbsoluteError.code, unchanged
    if path.startswith("../") or ("out" in standing and end in call.follows):
        return EscapeError.code, unchanged
    if call.wants_name and end == "/.":
        return PathError.code, unchanged
    return _plain(call.name, standing, path)


@cache
def _tree(standing: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="carrel-test-", dir=IN_MEMORY) as base:
        return show(tree(Path(base), *AROUND, *STANDING[standing]))


@cache
def _plain(name: str, standing: str, path: str) -> Result:
    """What a plain call does on a tree of its own."""
    call = next(call for call in CALLS if call.name == name)
    with tempfile.TemporaryDirectory(prefix="carrel-test-", dir=IN_MEMORY) as base:
        top = tree(Path(base) / "ws", *AROUND, *STANDING[standing])
        tree(Path(base) / "outside", "secret = secret data", "dir/secret = secret data")
        outcome: object
        try:
            outcome = call.plain(f"{top}/{path}")
        except OSError as error:
            outcome = error.errno
        return outcome, show(top)
