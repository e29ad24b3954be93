"""List a directory, directly or recursively, with patterns and pages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from carrel.errors import LimitError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import fit_values
from carrel.tools.operations.glob_pattern import GlobPattern, compile_patterns
from carrel.values import FileInfo
from carrel.workspace.search import below, is_hidden

_KEPT_LIMITS = frozenset({"limit.depth", "limit.walk_entries"})
"""A walk that ends at one of these still gives what it found so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The entries of a directory, links as links."""

    directory: FileInfo
    entries: tuple[FileInfo, ...]
    """Directory by directory, each sorted by name, as `ls -R` has them."""
    incomplete: str | None = None
    """Why there may be more than these."""

    def below(self, info: FileInfo) -> str:
        """The path of an entry, seen from the directory."""
        return below(self.directory, info)

    def page(self, cursor: str | None, most: int, entry: Callable[[FileInfo], dict[str, Any]]) -> ListingPage:
        """What follows after *cursor*, each told by *entry*, as far as it fits into *most* bytes."""
        # The cursor is the last path that was given: what others delete or make meanwhile moves nothing else.
        start = 0 if cursor is None else self._after(cursor)
        given = fit_values((entry(info) for info in self.entries[start:]), most)
        end = start + len(given)
        metadata: dict[str, Any] = {}
        if end < len(self.entries):
            metadata |= {"truncated": True, "next_cursor": self.entries[end - 1].path}
        if self.incomplete is not None:
            metadata |= {"truncated": True, "incomplete": self.incomplete}
        return ListingPage(given, metadata)

    def _after(self, cursor: str) -> int:
        return bisect_right(self.entries, listing_order(cursor), key=lambda info: listing_order(info.path))


class ListingPage(NamedTuple):
    """A part of a listing, as an answer gives it."""

    entries: list[dict[str, Any]]
    metadata: dict[str, Any]
    """Whether and how to go on, and why there may be more."""


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

    A *pattern* without a slash matches names; one with a slash matches the path beneath the directory, and
    goes as deep as it says. Directories are entered whatever their name, but what is hidden is neither
    entered nor listed unless *hidden* says so or the pattern names it, and never what an *excluded* pattern
    matches. No link is followed.

    Raises:
        MissingError: There is no such directory.
        NotDirectoryError: It is a file.
        PatternError: It is no pattern.
    """
    wanted = None if pattern is None or pattern == "*" else GlobPattern(pattern)
    if wanted is not None:
        recursive = recursive or not wanted.anywhere
        hidden = hidden or is_hidden(wanted.text)
    barred = compile_patterns(excluded, ctx.check)
    path = path or "."
    directory = ctx.workspace.stat(path)

    def is_shown(info: FileInfo) -> bool:
        name = below(directory, info)
        return (hidden or not is_hidden(name)) and not any(each.matches(name) for each in barred)

    if not recursive and hidden and wanted is None and not barred:
        # All of it, in the order in which it comes: what most ask for, so it is not looked at again.
        return Listing(directory=directory, entries=tuple(ctx.workspace.list(path)), incomplete=None)
    walk = ctx.workspace.walk(path, enter=is_shown) if recursive else iter(ctx.workspace.list(path))
    entries: list[FileInfo] = []
    incomplete: str | None = None
    try:
        for info in walk:
            if wanted is not None and not recursive:
                # A walk asks by itself; a pattern may take long for each of many names.
                ctx.check()
            if is_shown(info) and (wanted is None or wanted.matches(below(directory, info))):
                entries.append(info)
    except LimitError as error:
        if error.code not in _KEPT_LIMITS:
            raise
        incomplete = error.message
    entries.sort(key=lambda info: listing_order(info.path))
    return Listing(directory=directory, entries=tuple(entries), incomplete=incomplete)


def listing_order(path: str) -> tuple[list[str], str]:
    """Where the entry at *path* stands in a listing: by its directory, and then by its name."""
    above, _, name = path.rpartition("/")
    return above.split("/") if above else [], name
