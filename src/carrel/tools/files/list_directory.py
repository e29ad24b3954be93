"""`list_directory`: what is in a directory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.listing import listing
from carrel.tools.result import ToolResult
from carrel.values import FileInfo

NOTES = (
    "data is {path, entries}, each entry {name, type, size, path} with type file, directory, link or other."
    " Hidden ones are listed too, links are never followed. A long answer is cut: go on with next_cursor of"
    " its metadata."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `list_directory`."""

    path: Annotated[str, Param("Directory to list, relative to the workspace or beneath it", least=1)]
    recursive: Annotated[bool, Param("List what is in the directories beneath it as well")] = False
    cursor: Annotated[str | None, Param("next_cursor of an answer that was cut, to go on from there")] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """List the directory as it is asked for."""
    found = listing(ctx, args.path, recursive=args.recursive, hidden=True)
    page = found.page(args.cursor, ctx.options.answer_bytes, partial(_entry, ctx))
    path = ctx.shown(found.directory.path)
    return ToolResult(
        success=True,
        data={"path": path, "entries": page.entries},
        metadata={"path": path, "item_count": len(found.entries), **page.metadata},
    )


def _entry(ctx: Context, info: FileInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "type": str(info.kind),
        "size": info.size_bytes,
        "path": ctx.shown(info.path),
    }
