"""Read and print the files and directories of one `ls`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from carrel.errors import CarrelError, ClosedError, MissingError, PathError, SessionMissingError
from carrel.shell.command.context import Context
from carrel.shell.command.paths import join, resolve
from carrel.shell.commands.ls.entry import Indicator, ListEntry, ListOrder, render_heading, sort_entries
from carrel.shell.commands.ls.layout import Columns, arrange_columns, arrange_with_commas
from carrel.shell.text.quoting import quote, quote_if_needed
from carrel.values import FileInfo, FileKind


class ListLayout(Enum):
    """Arrangement of entries."""

    SINGLE = "1"
    LONG = "l"
    DOWN = "C"
    ACROSS = "x"
    COMMAS = "m"


class Follow(Enum):
    """Which symbolic links are followed."""

    NONE = "none"
    DIRECTORIES = "directories"
    """Operands that point to directories."""
    OPERANDS = "operands"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingOptions:
    """Options of a listing."""

    columns: Columns
    layout: ListLayout
    width: int
    order: ListOrder
    reverse: bool
    directories_first: bool
    hidden: str
    """Hidden names to list: `all`, `almost` (without `.` and `..`), or empty for none."""
    is_ignored: Callable[[str], bool]
    recursive: bool
    directories_as_files: bool
    """Whether directories are listed themselves instead of their content."""
    follow: Follow

    @property
    def needs_more_than_names(self) -> bool:
        """Whether the output depends on the type, size or time of a file."""
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

    def __init__(self, ctx: Context, options: ListingOptions) -> None:
        self._ctx = ctx
        self._options = options
        self._is_first = True

    def run(self, operands: Sequence[str]) -> None:
        """List the operands: first the files, then each directory."""
        entries = [entry for operand in operands if (entry := self._operand_entry(operand)) is not None]
        entries = self._sort(entries)
        files, directories = entries, []
        if not self._options.directories_as_files:
            files = [entry for entry in entries if not entry.info.is_directory]
            directories = [entry.name for entry in entries if entry.info.is_directory]
        if files:
            self._ctx.write(self._render(files, entries))
            self._is_first = False
        with_heading = len(operands) > 1 or bool(files) or self._options.recursive
        for directory in directories:
            self._list_tree(directory, with_heading=with_heading)

    def _sort(self, entries: Sequence[ListEntry]) -> list[ListEntry]:
        options = self._options
        return sort_entries(
            entries, options.order, reverse=options.reverse, directories_first=options.directories_first
        )

    # Reading

    def _operand_entry(self, operand: str) -> ListEntry | None:
        with self._ctx.reporting(operand, f"cannot access {quote(operand)}", status=2):
            return self._entry(operand, operand, self._operand_info(operand))
        return None

    def _operand_info(self, operand: str) -> FileInfo:
        follow = self._options.follow
        if follow in (Follow.ALL, Follow.OPERANDS):
            return self._ctx.stat(operand)
        info = self._ctx.stat(operand, follow=False)
        if follow is not Follow.DIRECTORIES or info.kind is not FileKind.LINK:
            return info
        try:
            target = self._ctx.stat(operand)
        except (MissingError, PathError):
            return info
        return target if target.is_directory else info

    def _target_info(self, path: str) -> FileInfo | None:
        try:
            return self._ctx.stat(path)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return None

    def _entry(self, name: str, path: str, info: FileInfo) -> ListEntry:
        """Return the entry of *path*, with the target of a link if the output needs it."""
        if info.kind is not FileKind.LINK:
            return ListEntry(name, info)
        columns = self._options.columns
        is_long = self._options.layout is ListLayout.LONG
        if is_long and info.target is None:
            info = self._ctx.stat(path, follow=False)
        needs_indicator = is_long and columns.indicator in (Indicator.CLASSIFY, Indicator.FILE_TYPE)
        needs_target = needs_indicator or self._options.directories_first
        return ListEntry(name, info, self._target_info(path) if needs_target else None)

    def _entries(self, directory: str) -> list[ListEntry]:
        prefix = join(directory, "")
        entries = self._dot_entries(prefix) if self._options.hidden == "all" else []
        for info in self._ctx.list(directory):
            name = info.name
            if (name.startswith(".") and not self._options.hidden) or self._options.is_ignored(name):
                continue
            if info.kind is not FileKind.LINK:
                entries.append(ListEntry(name, info))
                continue
            path = prefix + name
            with self._ctx.reporting(path, f"cannot access {quote(path)}"):
                entries.append(self._entry(name, path, self._followed_info(path, info)))
        return self._sort(entries)

    def _followed_info(self, path: str, info: FileInfo) -> FileInfo:
        """Return the target of a link if links are followed and it matters; report a dangling link."""
        if self._options.follow is Follow.ALL and self._options.needs_more_than_names:
            display = path[2:] if path.startswith("./") and path.count("/") == 1 else path
            with self._ctx.reporting(path, f"cannot access {quote(display)}"):
                return self._ctx.stat(path)
        return info

    def _dot_entries(self, prefix: str) -> list[ListEntry]:
        current = self._ctx.stat(prefix)
        # Nothing above the workspace can be examined.
        parent = current if current.path == "." else self._target_info(f"{prefix}..") or current
        return [ListEntry(".", current), ListEntry("..", parent)]

    # Printing

    def _list_tree(self, directory: str, *, with_heading: bool) -> None:
        """List a directory and, with `-R`, its subdirectories."""
        pending: list[tuple[str, tuple[str, ...]]] = [(directory, ())]
        while pending:
            path, parents = pending.pop()
            status = 1 if parents else 2
            with self._ctx.reporting(path, f"cannot open directory {quote(path)}", status=status):
                trail = (*parents, self._identity(path))
                if trail[-1] in parents:
                    self._ctx.error(
                        f"{quote_if_needed(path)}: not listing already-listed directory", status=2
                    )
                    continue
                entries = self._entries(path)
                self._print_directory(path, entries, with_heading=with_heading)
                if self._options.recursive:
                    subdirectories = [entry.name for entry in entries if entry.info.is_directory]
                    names = [name for name in reversed(subdirectories) if name not in (".", "..")]
                    pending += [(join(path, name), trail) for name in names]

    def _identity(self, path: str) -> str:
        """Return a name that identifies a directory among its parents, to detect loops of links."""
        return resolve(self._ctx, path) if self._options.follow is Follow.ALL else path

    def _print_directory(self, path: str, entries: Sequence[ListEntry], *, with_heading: bool) -> None:
        parts = [] if self._is_first else [b"\n"]
        self._is_first = False
        if with_heading:
            parts.append(render_heading(path, self._options.columns.style))
        if self._options.layout is ListLayout.LONG or self._options.columns.blocks:
            parts.append(self._options.columns.render_total(entries))
        self._ctx.write(b"".join([*parts, self._render(entries, entries)]))

    def _render(self, entries: Sequence[ListEntry], measured: Sequence[ListEntry]) -> bytes:
        """Render entries, in columns as wide as *measured* requires."""
        options = self._options
        if options.layout is ListLayout.LONG:
            return options.columns.render_lines(entries, measured)
        cells = options.columns.render_cells(entries, aligned=options.layout is not ListLayout.COMMAS)
        if options.layout is ListLayout.COMMAS:
            return arrange_with_commas(cells, options.width)
        if options.layout is ListLayout.SINGLE:
            return b"".join([cell + b"\n" for cell in cells])
        return arrange_columns(cells, options.width, across=options.layout is ListLayout.ACROSS)
