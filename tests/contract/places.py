"""Every implementation of `Files`, each on an empty tree that a test can fill and look at from beneath.

Trees are written and shown in the language of `carrel.testing.tree`: `d/`, `f = text`, `a => b`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from carrel.errors import CarrelError
from carrel.fs.api import Confinement, Existing, Files, Links, Parents
from carrel.fs.cancellable import CancellableFiles
from carrel.fs.handle import Handle
from carrel.fs.local.root import Root
from carrel.fs.local.scratch import Scratch
from carrel.fs.memory.files import MemoryFiles
from carrel.paths.parsed_path import ParsedPath, parse
from carrel.testing import tree
from carrel.values import FileInfo, FileKind, Limits
from tests.contract.slots import Slot, take_slot
from tests.engines import missing

KINDS = ("kernel", "walk", "scratch", "memory", "part", "checked", "container", "archive")
IN_CONTAINERS = ("container", "archive")
WRAPPERS = ("scratch", "part", "checked")
"""Around the same `Root`: unless tests are thorough, each example is tried through one of them in turn."""
NO_LIMITS = Limits(file_bytes=None, read_bytes=None, list_entries=None, walk_entries=None, depth=None)
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where to make very many small trees, if the host has such a place."""

_TOP = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


Answer = TypeVar("Answer")
Refusal = TypeVar("Refusal", bound=CarrelError)


class Ticks:
    """A clock that moves by one with every look."""

    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        self.now += 1
        return self.now


class Place(Protocol):
    """One implementation, and what lies beneath it."""

    files: Files

    def plant(self, *lines: str) -> None:
        """Add to the tree without asking `files`."""
        ...

    def lines(self) -> list[str]:
        """The whole tree, sorted."""
        ...

    def require_clean(self) -> None:
        """Fail if anything outside was changed or anything unfinished was left."""
        ...


class HostPlace:
    """A `Root` on a directory of the host, with something to steal beside it."""

    def __init__(self, base: Path, kind: str, slot: Slot | None = None) -> None:
        self._slot = slot
        self.directory = tree(base / "ws")
        self._outside = tree(base / "outside", "secret = secret data", "dir/secret = secret data")
        self._before = self._watched()
        self._scratch = [tree(base / name) for name in ("tmp", "trash")] if kind == "scratch" else []
        self.files: Files = self._open(kind)

    def _open(self, kind: str) -> Files:
        if self._slot is not None:
            return self._slot.open()
        if kind == "checked":
            return CancellableFiles(Root.open(self.directory), lambda: None)
        if kind == "part":
            # What is outside of the part is inside of its root.
            part = Root.open(self.directory.parent).subtree((self.directory.name,))
            part._lookup._label = ""  # so that its results are spelled like those of the others
            return part
        if kind != "scratch":
            return Root.open(self.directory, confinement=Confinement(kind))
        drafts, trash = (Handle(os.open(place, os.O_RDONLY | os.O_DIRECTORY)) for place in self._scratch)
        top = Handle(os.open(self.directory, _TOP))
        return Root.from_handle(top, scratch=Scratch(drafts=drafts, trash=trash))

    def plant(self, *lines: str) -> None:
        tree(self.directory, *lines)

    def lines(self) -> list[str]:
        return show(self.directory)

    def require_clean(self) -> None:
        assert self._watched() == self._before
        assert not [name for place in self._scratch for name in os.listdir(place)]
        assert not [line for line in self.lines() if ".carrel-draft-" in line]

    def _watched(self) -> list[object]:
        """All that is outside, with modes and times, which tell even of a file that came and went."""
        found = [self._outside, *self._outside.rglob("*")]
        return [*show(self._outside), *((at.lstat().st_mode, at.lstat().st_mtime_ns) for at in found)]


class MemoryPlace:
    """`MemoryFiles`, which can only be seen through itself."""

    def __init__(self) -> None:
        self.memory = MemoryFiles(clock=Ticks())
        self.files: Files = self.memory

    def plant(self, *lines: str) -> None:
        for line in lines:
            self._plant(line)

    def _plant(self, line: str) -> None:
        name, is_link, target = line.partition(" => ")
        name, has_text, text = (name, " => ", "") if is_link else line.partition(" = ")
        where = parse(name)
        if len(where.parts) > 1:
            self.files.mkdir(parse("/".join(where.parts[:-1])), parents=Parents.MAKE)
        if is_link:
            self.memory.plant(where, target)
        elif not has_text and name.endswith("/"):
            self.files.mkdir(where, parents=Parents.MAKE)
        else:
            write(self.files, name, (text if has_text else "in").encode("utf-8", "surrogateescape"))

    def lines(self) -> list[str]:
        return sorted(map(self._line, self.files.walk(parse("."), NO_LIMITS)))

    def _line(self, info: FileInfo) -> str:
        where = parse(info.path)
        if info.kind is FileKind.DIRECTORY:
            return info.path + "/"
        if info.kind is FileKind.LINK:
            return f"{info.path} => {self.files.stat(where, Links.KEEP).target}"
        content = self.files.read(where, limit=None, offset=0, length=None)
        return f"{info.path} = {content.decode('utf-8', 'surrogateescape')}"

    def require_clean(self) -> None:
        """Nothing is outside, and nothing unfinished has a name."""


def open_place(kind: str, base: Path) -> Place:
    """An empty implementation; those on the host live in *base*."""
    if kind in IN_CONTAINERS:
        slot = take_slot(kind)
        return HostPlace(slot.base, kind, slot)
    return MemoryPlace() if kind == "memory" else HostPlace(base, kind)


def kinds_here() -> list[str]:
    """Those that can do everything and be opened here: without an engine for tests, not in containers."""
    lacking = {"archive"}
    if missing() is not None and not os.environ.get("CI"):
        lacking.add("container")
    return [kind for kind in KINDS if kind not in lacking]


def refill(place: Place, *lines: str) -> None:
    """Take away all that is there and plant *lines*."""
    for info in place.files.list(parse("."), limit=None):
        place.files.remove_tree(parse(info.path))
    place.plant(*lines)


def show(top: Path) -> list[str]:
    """A directory of the host as lines, read without following any link."""
    found: list[str] = []
    todo = [(top, "")]
    while todo:
        directory, prefix = todo.pop()
        for entry in os.scandir(directory):
            name = prefix + entry.name
            if entry.is_symlink():
                found.append(f"{name} => {os.readlink(entry.path)}")
            elif entry.is_dir():
                found.append(name + "/")
                todo.append((directory / entry.name, name + "/"))
            else:
                content = Path(entry.path).read_bytes()
                found.append(f"{name} = {content.decode('utf-8', 'surrogateescape')}")
    return sorted(found)


def write(
    files: Files,
    path: str,
    data: bytes = b"new",
    *,
    existing: Existing = Existing.REPLACE,
    parents: Parents = Parents.MAKE,
    mode: int | None = None,
) -> FileInfo:
    """Store *data* the usual way."""
    return files.write(parse(path), (data,), existing=existing, parents=parents, mode=mode).info


def read(files: Files, path: str) -> bytes:
    """The whole content."""
    return files.read(parse(path), limit=None, offset=0, length=None)


def names(infos: Iterator[FileInfo] | list[FileInfo]) -> list[str]:
    """The paths, in their order."""
    return [info.path for info in infos]


@contextmanager
def refused(
    kind: type[Refusal], path: str, *, code: str | None = None
) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Expect exactly this error about exactly this path, with nothing of the host behind it."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert type(error) is kind
    assert error.code == (code or kind.code)
    assert error.path == path
    assert getattr(error, "errno", None) == kind.number
    if kind.number is not None:
        assert getattr(error, "filename", None) == path
    require_no_host_error(error)


def require_no_host_error(error: BaseException) -> None:
    """Fail if an error of the host hangs on to *error*, since that would show host paths."""
    behind = error.__cause__ or error.__context__
    while behind is not None:
        assert isinstance(behind, CarrelError), f"{behind!r} is behind {error!r}"
        behind = behind.__cause__ or behind.__context__


def where(path: str) -> ParsedPath:
    """A parsed path."""
    return parse(path)


def at_once(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """What the calls return, run in threads that begin together; the first error of any is raised here."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Answer]) -> Answer:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [running.result() for running in [pool.submit(run, call) for call in calls]]
