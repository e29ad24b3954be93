"""Paths of operands: split and join them, resolve links to one absolute path, and walk in post-order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from carrel.errors import EscapeError, LoopError, MissingError, NotDirectoryError
from carrel.shell.command.context import Context
from carrel.values import FileInfo, FileKind

_MAX_LINKS = 40
"""Most symbolic links in one path, as in Linux."""


def base_name(path: str) -> str:
    """Return the last component of *path*."""
    return path.rstrip("/").rpartition("/")[2]


def join(directory: str, name: str) -> str:
    """Return the path of *name* in *directory*."""
    return f"{directory}{name}" if directory.endswith("/") else f"{directory}/{name}"


class Missing(Enum):
    """Which components of a path may be missing."""

    NONE = "none"
    LAST = "last"
    ALL = "all"


def absolute(ctx: Context, operand: str) -> str:
    """Return *operand* as an absolute path, with `.` and `..` removed lexically."""
    components: list[str] = []
    for component in _components(ctx, operand):
        if component == "..":
            del components[-1:]
        else:
            components.append(component)
    return "/" + "/".join(components)


def resolve(ctx: Context, operand: str, missing: Missing = Missing.LAST) -> str:
    """Return the absolute path that *operand* resolves to.

    Raises:
        CarrelError: It leaves the workspace, a component is missing, or a component is a file.
    """
    return _Resolution(ctx, operand, missing).run()


class _Resolution:
    """Resolution of one path, component by component."""

    def __init__(self, ctx: Context, operand: str, missing: Missing) -> None:
        self._ctx = ctx
        self._operand = operand
        self._missing = missing
        self._mount = _split_components(ctx.workspace.mount)
        self._resolved: list[str] = []
        self._pending = _components(ctx, operand)[::-1]
        self._link_count = 0
        self._must_be_directory = operand.endswith(("/", "/.", "/..")) or operand in (".", "..")

    def run(self) -> str:
        while self._pending:
            component = self._pending.pop()
            if component == "..":
                self._enter_parent()
            else:
                self._enter(component)
        return "/" + "/".join(self._resolved)

    def _enter_parent(self) -> None:
        if self._resolved == self._mount:
            raise EscapeError(f"path {self._operand!r} escapes session workspace", path=self._operand)
        del self._resolved[-1:]

    def _enter(self, component: str) -> None:
        entered = [*self._resolved, component]
        path = "/" + "/".join(entered)
        if entered == self._mount[: len(entered)] or not self._is_covered(path):
            self._resolved = entered
            return
        is_last = not self._pending
        try:
            info = self._ctx.stat(path, follow=False)
        except (MissingError, NotDirectoryError):
            if self._missing is Missing.NONE or (self._missing is Missing.LAST and not is_last):
                raise
            self._resolved = entered
            return
        if info.kind is FileKind.LINK:
            self._follow_link(path, info.target or "")
        elif not info.is_directory and not self._may_be_file(is_last):
            raise NotDirectoryError(f"{self._operand!r} is not a directory", path=self._operand)
        else:
            self._resolved = entered

    def _is_covered(self, path: str) -> bool:
        """Whether a rule covers *path*; directories above the root of a rule cannot be examined."""
        if _split_components(path)[: len(self._mount)] == self._mount:
            return True
        return self._ctx.workspace.explain(path).allowed

    def _may_be_file(self, is_last: bool) -> bool:
        if self._missing is Missing.ALL:
            return True
        return is_last and not self._must_be_directory

    def _follow_link(self, path: str, target: str) -> None:
        self._link_count += 1
        if self._link_count > _MAX_LINKS:
            raise LoopError(f"too many links in path {self._operand!r}", path=self._operand)
        if target.startswith("/"):
            raise EscapeError(f"path {self._operand!r} escapes session workspace", path=self._operand)
        self._pending += _split_components(target)[::-1]


def _components(ctx: Context, operand: str) -> list[str]:
    if not operand:
        raise MissingError("no such file or directory: ''", path=operand)
    return _split_components(operand if operand[0] == "/" else f"{ctx.state.cwd}/{operand}")


def _split_components(path: str) -> list[str]:
    return [component for component in path.split("/") if component not in ("", ".")]


WalkedEntry = tuple[str, FileInfo]
"""A display path and the entry found there."""


def post_order(entries: Iterable[WalkedEntry]) -> Iterator[WalkedEntry]:
    """Reorder the entries of a walk, parents first, so that every directory follows its content."""
    open_directories: list[WalkedEntry] = []
    for path, info in entries:
        while open_directories and not path.startswith(open_directories[-1][0] + "/"):
            yield open_directories.pop()
        if info.is_directory:
            open_directories.append((path, info))
        else:
            yield path, info
    while open_directories:
        yield open_directories.pop()
