"""`delete`: remove a file or a directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.tools.context import Context
from carrel.tools.deletion import delete
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult

NOTES = (
    "data is {path, deleted}. A link is deleted, never what it leads to. A directory goes with all that is in"
    " it or not at all: if the time is over before, nothing is deleted."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `delete`."""

    path: Annotated[str, Param("Path to delete, relative to the workspace or beneath it", least=1)]
    recursive: Annotated[bool, Param("Delete a directory with all that is in it")] = False
    force: Annotated[bool, Param("Do not complain if nothing is there")] = False
    if_match: Annotated[str | None, Param("Delete only this version, as an answer told it")] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """Delete what is there."""
    deleted = delete(ctx, args.path, recursive=args.recursive, force=args.force, if_match=args.if_match)
    if deleted is None:
        return _answer(ctx.plain(args.path), item_count=0)
    return _answer(ctx.shown(deleted.info.path), item_count=deleted.item_count)


def _answer(path: str, *, item_count: int | None) -> ToolResult:
    metadata: dict[str, Any] = {"path": path}
    if item_count is not None:
        metadata["item_count"] = item_count
    return ToolResult(success=True, data={"path": path, "deleted": True}, metadata=metadata)
