"""The files and directories that one `ls` lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from carrel.errors import CarrelError, ClosedError, MissingError, PathError, SessionMissingError
from carrel.shell.command.context import Context
from carrel.shell.command.paths import resolve
from carrel.shell.commands.ls.entry import Indicator, ListEntry, ListOrder, render_heading, sort_entries
from carrel.shell.commands.ls.layout import Columns, in_columns, with_commas
from carrel.shell.text.quoting import quote, quote_if_needed
from carrel.values import FileInfo, FileKind


class ListLayout(Enum):
    """How entries are arranged."""

    SINGLE = "1"
    LONG = "l"
    DOWN = "C"
    ACROSS = "x"
    COMMAS = "m"


class Follow(Enum):
    """Which links stand for what they lead to."""

    NONE = "none"
    DIRECTORIES = "directories"
    """Operands that lead to directories."""
    OPERANDS = "operands"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingOptions:
    """What is listed, and how."""

    columns: Columns
    layout: ListLayout
    width: int
    order: ListOrder
    reverse: bool
    directories_first: bool
    hidden: str
    """`all`, `almost` (without `.` and `..`), or nothing for none."""
    leaves_out: Callable[[str], bool]
    recursive: bool
    plain_directories: bool
    """Whether directories are listed themselves, not what is in them."""
    follow: Follow

    @property
    def needs_more_than_names(self) -> bool:
        """Whether what is printed depends on what kind of file something is, or on its size or time."""
        columns = self.columns
        return (
            self.layout is ListLayout.LONG
            or self.order in (ListOrder.TIME, ListOrder.SIZE)
            or columns.indicator is not Indicator.NONE
            or columns.blocks
            or columns.inode
            or self.recursive
            or self.directories_first
        )


class DirectoryListing:
    """One run of `ls`."""

    def __init__(self, ctx: Context, shape: ListingOptions) -> None:
        self._ctx = ctx
        self._shape = shape
        self._is_first = True

    def run(self, operands: Sequence[str]) -> None:
        """List the operands: first the files, then each directory."""
        found = [entry for operand in operands if (entry := self._operand(operand)) is not None]
        found = self._ordered(found)
        files, directories = found, []
        if not self._shape.plain_directories:
            files = [entry for entry in found if not entry.info.is_directory]
            directories = [entry.name for entry in found if entry.info.is_directory]
        if files:
            self._ctx.write(self._arranged(files, found))
            self._is_first = False
        headed = len(operands) > 1 or bool(files) or self._shape.recursive
        for directory in directories:
            self._list_all(directory, headed=headed)

    def _ordered(self, entries: Sequence[ListEntry]) -> list[ListEntry]:
        shape = self._shape
        return sort_entries(
            entries, shape.order, reverse=shape.reverse, directories_first=shape.directories_first
        )

    # What there is

    def _operand(self, operand: str) -> ListEntry | None:
        with self._ctx.reporting(operand, f"cannot access {quote(operand)}", status=2):
            return self._entry(operand, operand, self._operand_info(operand))
        return None

    def _operand_info(self, operand: str) -> FileInfo:
        follow = self._shape.follow
        if follow in (Follow.ALL, Follow.OPERANDS):
            return self._ctx.stat(operand)
        info = self._ctx.stat(operand, follow=False)
        if follow is not Follow.DIRECTORIES or info.kind is not FileKind.LINK:
            return info
        try:
            found = self._ctx.stat(operand)
        except (MissingError, PathError):
            return info
        return found if found.is_directory else info

    def _end_of(self, path: str) -> FileInfo | None:
        try:
            return self._ctx.stat(path)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return None

    def _entry(self, name: str, path: str, info: FileInfo) -> ListEntry:
        """What a listing must know of *path*; of a link, where it leads to, if that is shown."""
        if info.kind is not FileKind.LINK:
            return ListEntry(name, info)
        columns = self._shape.columns
        is_long = self._shape.layout is ListLayout.LONG
        if is_long and info.target is None:
            info = self._ctx.stat(path, follow=False)
        signs = is_long and columns.indicator in (Indicator.CLASSIFY, Indicator.FILE_TYPE)
        wants_end = signs or self._shape.directories_first
        return ListEntry(name, info, self._end_of(path) if wants_end else None)

    def _entries(self, directory: str) -> list[ListEntry]:
        prefix = directory if directory.endswith("/") else f"{directory}/"
        found = self._dots(prefix) if self._shape.hidden == "all" else []
        for info in self._ctx.list(directory):
            name = info.name
            if (name.startswith(".") and not self._shape.hidden) or self._shape.leaves_out(name):
                continue
            if info.kind is not FileKind.LINK:
                found.append(ListEntry(name, info))
                continue
            path = prefix + name
            with self._ctx.reporting(path, f"cannot access {quote(path)}"):
                found.append(self._entry(name, path, self._end_or(path, info)))
        return self._ordered(found)

    def _end_or(self, path: str, info: FileInfo) -> FileInfo:
        """What a link leads to, if links are followed and it matters; if it leads nowhere, that is told."""
        if self._shape.follow is Follow.ALL and self._shape.needs_more_than_names:
            told = path[2:] if path.startswith("./") and path.count("/") == 1 else path
            with self._ctx.reporting(path, f"cannot access {quote(told)}"):
                return self._ctx.stat(path)
        return info

    def _dots(self, prefix: str) -> list[ListEntry]:
        here = self._ctx.stat(prefix)
        # Nothing can be known of what is above the workspace.
        above = here if here.path == "." else self._end_of(f"{prefix}..") or here
        return [ListEntry(".", here), ListEntry("..", above)]

    # What is printed

    def _list_all(self, directory: str, *, headed: bool) -> None:
        """List a directory and, if wanted, those beneath it."""
        waiting: list[tuple[str, tuple[str, ...]]] = [(directory, ())]
        while waiting:
            path, above = waiting.pop()
            status = 1 if above else 2
            with self._ctx.reporting(path, f"cannot open directory {quote(path)}", status=status):
                trail = (*above, self._identity(path))
                if trail[-1] in above:
                    self._ctx.error(
                        f"{quote_if_needed(path)}: not listing already-listed directory", status=2
                    )
                    continue
                entries = self._entries(path)
                self._list(path, entries, headed=headed)
                if self._shape.recursive:
                    prefix = path if path.endswith("/") else f"{path}/"
                    inside = [entry.name for entry in entries if entry.info.is_directory]
                    names = [name for name in reversed(inside) if name not in (".", "..")]
                    waiting += [(prefix + name, trail) for name in names]

    def _identity(self, path: str) -> str:
        """What tells a directory from those that it lies in, where a link may lead back to one of them."""
        return resolve(self._ctx, path) if self._shape.follow is Follow.ALL else path

    def _list(self, path: str, entries: Sequence[ListEntry], *, headed: bool) -> None:
        parts = [] if self._is_first else [b"\n"]
        self._is_first = False
        if headed:
            parts.append(render_heading(path, self._shape.columns.style))
        if self._shape.layout is ListLayout.LONG or self._shape.columns.blocks:
            parts.append(self._shape.columns.total(entries))
        self._ctx.write(b"".join([*parts, self._arranged(entries, entries)]))

    def _arranged(self, entries: Sequence[ListEntry], measured: Sequence[ListEntry]) -> bytes:
        """The entries as text, in columns that would have room for those in *measured* too."""
        shape = self._shape
        if shape.layout is ListLayout.LONG:
            return shape.columns.lines(entries, measured)
        cells = shape.columns.cells(entries, aligned=shape.layout is not ListLayout.COMMAS)
        if shape.layout is ListLayout.COMMAS:
            return with_commas(cells, shape.width)
        if shape.layout is ListLayout.SINGLE:
            return b"".join([cell + b"\n" for cell in cells])
        return in_columns(cells, shape.width, across=shape.layout is ListLayout.ACROSS)
