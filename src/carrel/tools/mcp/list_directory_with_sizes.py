"""`list_directory_with_sizes`: the names in a directory and the sizes of its files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from carrel.tools.answer import told_lines
from carrel.tools.context import Context
from carrel.tools.directory_lines import size, sized
from carrel.tools.kind import Param
from carrel.tools.listing import Listing, listing
from carrel.tools.result import ToolResult

NOTES = "Each name follows [DIR] or [FILE], and the totals follow the names. Links are never followed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `list_directory_with_sizes`."""

    path: Annotated[str, Param("Path of the directory", least=1)]
    sort_by: Annotated[Literal["name", "size"], Param("By name, or the largest first")] = field(
        default="name", metadata={"name": "sortBy"}
    )


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the names, the sizes and the totals."""
    found = listing(ctx, args.path, hidden=True)
    entries = found.entries
    if args.sort_by == "size":
        entries = tuple(sorted(entries, key=lambda info: -info.size_bytes))
    result = told_lines(
        ctx,
        [sized(info) for info in entries],
        noun="entry",
        nouns="entries",
        advice="Search for a pattern instead",
        metadata={"path": ctx.shown(found.directory.path)},
    )
    return replace(result, output=f"{result.output}\n\n{_totals(found)}")


def _totals(found: Listing) -> str:
    directories = sum(info.is_directory for info in found.entries)
    size_bytes = sum(info.size_bytes for info in found.entries)
    files = len(found.entries) - directories
    return f"Total: {files} files, {directories} directories\nCombined size: {size(size_bytes)}"
