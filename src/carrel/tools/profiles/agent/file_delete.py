"""`file_delete`: remove files and directories."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import MissingError, ToolError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import fit_values
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.deleting import delete_path
from carrel.tools.operations.listing import list_entries

FILE_DELETE_NOTES = (
    "A link is deleted, never what it leads to. With pattern, path is a directory, and the files and links in"
    " it whose names match are deleted, with recursive at every depth; directories stay."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleteArgs:
    """Arguments of `file_delete`."""

    path: Annotated[str, Param("Path to delete, relative to the workspace", least=1)]
    recursive: Annotated[bool, Param("Delete a directory with all that is in it")] = False
    force: Annotated[bool, Param("Do not complain if nothing is there")] = False
    pattern: Annotated[
        str | None, Param("Delete only what matches in the directory path, such as *.tmp", least=1)
    ] = None
    if_match: Annotated[str | None, Param("Delete only this version, as an answer told it")] = None


def run_file_delete(ctx: ToolContext, args: FileDeleteArgs) -> ToolResult:
    """Delete what is asked for and tell what that was."""
    if args.pattern is not None:
        return _by_pattern(ctx, args, args.pattern)
    deleted = delete_path(ctx, args.path, recursive=args.recursive, force=args.force, if_match=args.if_match)
    if deleted is None:
        return _answer(ctx, [], {"item_count": 0})
    metadata: dict[str, Any] = {"path": ctx.shown(deleted.info.path), "item_count": deleted.item_count}
    return _answer(ctx, [deleted.info.path], metadata)


def _by_pattern(ctx: ToolContext, args: FileDeleteArgs, pattern: str) -> ToolResult:
    if args.if_match is not None:
        raise ToolError("arguments", "Wrong arguments: 'if_match' is about one file, 'pattern' about many")
    try:
        found = list_entries(ctx, args.path, pattern=pattern, recursive=args.recursive)
    except MissingError:
        if not args.force:
            raise
        return _answer(ctx, [], {"pattern": pattern})
    doomed = [info for info in found.entries if not info.is_directory]
    if not args.recursive and any("/" in found.below(info) for info in doomed):
        # A pattern such as **/* may reach farther than its writer thought.
        raise ToolError(
            "arguments",
            f"Wrong arguments: 'pattern' {pattern[:80]!r} goes deeper, so 'recursive' must be true",
        )
    deleted: list[str] = []
    for info in doomed:
        with suppress(MissingError):
            ctx.workspace.remove(info.path)
            deleted.append(info.path)
    metadata: dict[str, Any] = {"path": ctx.shown(found.directory.path), "pattern": pattern}
    if found.incomplete is not None:
        metadata["incomplete"] = found.incomplete
    return _answer(ctx, deleted, metadata)


def _answer(ctx: ToolContext, deleted: list[str], metadata: dict[str, Any]) -> ToolResult:
    told = fit_values(deleted, ctx.options.answer_bytes)
    if len(told) < len(deleted):
        metadata = {**metadata, "truncated": True}
    output = {"deleted_count": len(deleted), "deleted_paths": told}
    return ToolResult(success=True, output=output, metadata=metadata)
