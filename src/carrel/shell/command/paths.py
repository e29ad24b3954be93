"""Paths of operands: resolve links to one absolute path, and walk trees in post-order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from carrel.errors import EscapeError, LoopError, MissingError, NotDirectoryError
from carrel.shell.command.context import Context
from carrel.values import FileInfo, FileKind

_LINKS = 40
"""Most links in one path, as in Linux."""


class Missing(Enum):
    """Which part of a path need not exist."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


def absolute(ctx: Context, operand: str) -> str:
    """*operand* from the top, with its `.` and `..` taken as text."""
    done: list[str] = []
    for part in _parts(ctx, operand):
        if part == "..":
            del done[-1:]
        else:
            done.append(part)
    return "/" + "/".join(done)


def resolve(ctx: Context, operand: str, missing: Missing = Missing.LAST) -> str:
    """The absolute path that *operand* leads to.

    Raises:
        CarrelError: It leads out or nowhere, or goes through a file.
    """
    return _Resolution(ctx, operand, missing).run()


class _Resolution:
    """One walk along a path, name by name."""

    def __init__(self, ctx: Context, operand: str, missing: Missing) -> None:
        self._ctx = ctx
        self._operand = operand
        self._missing = missing
        self._mount = _split(ctx.workspace.mount)
        self._done: list[str] = []
        self._todo = _parts(ctx, operand)[::-1]
        self._links = 0
        self._must_be_directory = operand.endswith(("/", "/.", "/..")) or operand in (".", "..")

    def run(self) -> str:
        while self._todo:
            part = self._todo.pop()
            if part == "..":
                self._up()
            else:
                self._down(part)
        return "/" + "/".join(self._done)

    def _up(self) -> None:
        if self._done == self._mount:
            raise EscapeError(f"path {self._operand!r} escapes session workspace", path=self._operand)
        del self._done[-1:]

    def _down(self, part: str) -> None:
        here = [*self._done, part]
        path = "/" + "/".join(here)
        if here == self._mount[: len(here)] or not self._is_ours(path):
            self._done = here
            return
        is_last = not self._todo
        try:
            info = self._ctx.stat(path, follow=False)
        except (MissingError, NotDirectoryError):
            if self._missing is Missing.NONE or (self._missing is Missing.LAST and not is_last):
                raise
            self._done = here
            return
        if info.kind is FileKind.LINK:
            self._follow(path, info.target or "")
        elif not info.is_directory and not self._may_be_file(is_last):
            raise NotDirectoryError(f"{self._operand!r} is not a directory", path=self._operand)
        else:
            self._done = here

    def _is_ours(self, path: str) -> bool:
        """Whether a rule has it; what lies above the root of a rule cannot be looked at."""
        if _split(path)[: len(self._mount)] == self._mount:
            return True
        return self._ctx.workspace.explain(path).allowed

    def _may_be_file(self, is_last: bool) -> bool:
        if self._missing is Missing.ALL:
            return True
        return is_last and not self._must_be_directory

    def _follow(self, path: str, target: str) -> None:
        self._links += 1
        if self._links > _LINKS:
            raise LoopError(f"too many links in path {self._operand!r}", path=self._operand)
        if target.startswith("/"):
            raise EscapeError(f"path {self._operand!r} escapes session workspace", path=self._operand)
        self._todo += _split(target)[::-1]


def _parts(ctx: Context, operand: str) -> list[str]:
    if not operand:
        raise MissingError("no such file or directory: ''", path=operand)
    return _split(operand if operand[0] == "/" else f"{ctx.state.cwd}/{operand}")


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


WalkedEntry = tuple[str, FileInfo]
"""A shown path and what is there."""


def post_order(found: Iterable[WalkedEntry]) -> Iterator[WalkedEntry]:
    """What a walk gives, parents first, with every directory after what it holds."""
    open_directories: list[WalkedEntry] = []
    for path, info in found:
        while open_directories and not path.startswith(open_directories[-1][0] + "/"):
            yield open_directories.pop()
        if info.is_directory:
            open_directories.append((path, info))
        else:
            yield path, info
    while open_directories:
        yield open_directories.pop()
