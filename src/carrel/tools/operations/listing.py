"""List a directory, directly or recursively, with patterns and pages."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from carrel.errors import LimitError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import fit_data
from carrel.tools.operations.glob_pattern import GlobPattern, compile_patterns
from carrel.values import FileInfo
from carrel.workspace.search import below, is_hidden

_KEPT_LIMITS = frozenset({"limit.depth", "limit.walk_entries"})
"""Errors of a walk that still leave a usable, incomplete listing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The entries of a directory; links are not followed."""

    directory: FileInfo
    entries: tuple[FileInfo, ...]
    """Directory by directory, each sorted by name, as `ls -R` lists them."""
    incomplete: str | None = None
    """Why entries may be missing, if they are."""

    def below(self, info: FileInfo) -> str:
        """Return the path of an entry relative to the directory."""
        return below(self.directory, info)

    def page(
        self, ctx: ToolContext, cursor: str | None, render: Callable[[FileInfo], dict[str, Any]]
    ) -> ListingPage:
        """Return the entries after *cursor*, each rendered with *render*, that fit into a result."""
        # The cursor is the last path of a page, so entries created or deleted in between shift no others.
        start = 0 if cursor is None else self._index_after(cursor)
        fitting = fit_data(
            (render(info) for info in self.entries[start:]), ctx.options.data_bytes, ctx.options.answer_bytes
        )
        end, shown_end = start + len(fitting.values), start + fitting.shown
        metadata: dict[str, Any] = {}
        notes = []
        if end < len(self.entries):
            metadata |= {"truncated": True, "next_cursor": self.entries[end - 1].path}
        if shown_end < len(self.entries):
            notes.append(f"Cut: {len(self.entries) - shown_end} of {len(self.entries)} entries follow")
            notes.append(f"Continue with cursor {self.entries[shown_end - 1].path!r}")
        if self.incomplete is not None:
            metadata |= {"truncated": True, "incomplete": self.incomplete}
            notes.append(f"Incomplete: {self.incomplete.rstrip('.')}. List a subdirectory")
        if notes:
            metadata["note"] = f"[{'. '.join(notes)}]"
        return ListingPage(fitting.values, fitting.shown, metadata)

    def _index_after(self, cursor: str) -> int:
        return bisect_right(self.entries, listing_order(cursor), key=lambda info: listing_order(info.path))


class ListingPage(NamedTuple):
    """The part of a listing that one result holds."""

    entries: list[dict[str, Any]]
    shown: int
    """How many of the entries a model reads."""
    metadata: dict[str, Any]
    """Where the next page begins, and why entries may be missing."""

    def model_text(self, wrap: Callable[[list[dict[str, Any]]], Any]) -> str | None:
        """Return what a model reads of the entries that *wrap* returned; `None` if that is all of them."""
        if self.shown == len(self.entries):
            return None
        return json.dumps(wrap(self.entries[: self.shown]), ensure_ascii=False)


def list_entries(
    ctx: ToolContext,
    path: str,
    *,
    pattern: str | None = None,
    recursive: bool = False,
    hidden: bool = False,
    excluded: Sequence[str] = (),
) -> Listing:
    """List the directory *path*, `""` for the workspace itself.

    A *pattern* without a slash matches names; one with a slash matches the path relative to the directory,
    to any depth it names. Directories are entered whatever their name. Hidden entries are neither entered
    nor listed, unless *hidden* is set or the pattern names them; entries that an *excluded* pattern matches
    never are. No link is followed.

    Raises:
        MissingError: The directory does not exist.
        NotDirectoryError: *path* is a file.
        PatternError: A pattern is not valid.
    """
    glob = None if pattern is None or pattern == "*" else GlobPattern(pattern)
    if glob is not None:
        recursive = recursive or not glob.anywhere
        hidden = hidden or is_hidden(glob.text)
    excluded_globs = compile_patterns(excluded, ctx.check)
    path = path or "."
    directory = ctx.workspace.stat(path)

    def is_visible(info: FileInfo) -> bool:
        name = below(directory, info)
        return (hidden or not is_hidden(name)) and not any(each.matches(name) for each in excluded_globs)

    if not recursive and hidden and glob is None and not excluded_globs:
        # The common case: everything, already sorted.
        return Listing(directory=directory, entries=tuple(ctx.workspace.list(path)), incomplete=None)
    walk = ctx.workspace.walk(path, enter=is_visible) if recursive else iter(ctx.workspace.list(path))
    entries: list[FileInfo] = []
    incomplete: str | None = None
    try:
        for info in walk:
            if glob is not None and not recursive:
                # A walk checks the deadline itself; here matching many names may take long.
                ctx.check()
            if is_visible(info) and (glob is None or glob.matches(below(directory, info))):
                entries.append(info)
    except LimitError as error:
        if error.code not in _KEPT_LIMITS:
            raise
        incomplete = error.message
    entries.sort(key=lambda info: listing_order(info.path))
    return Listing(directory=directory, entries=tuple(entries), incomplete=incomplete)


def listing_order(path: str) -> tuple[list[str], str]:
    """Sort key of the entry at *path* in a listing: its directory, then its name."""
    parent, _, name = path.rpartition("/")
    return parent.split("/") if parent else [], name
