"""`file_delete`: remove files and directories."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import MissingError, ToolError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import fit_data
from carrel.tools.core.schema import Param
from carrel.tools.operations.deleting import delete_path
from carrel.tools.operations.listing import list_entries
from carrel.tools.results.file_results import pluralize
from carrel.values import ToolResult

FILE_DELETE_NOTES = (
    "A link is deleted, never its target. With pattern, path is a directory, and the files and links in it"
    " whose names match are deleted, with recursive at every depth; directories are kept."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDeleteArgs:
    """Arguments of `file_delete`."""

    path: Annotated[str, Param("Path to delete, relative to the workspace", minimum=1)]
    recursive: Annotated[bool, Param("Delete a directory and everything in it")] = False
    force: Annotated[bool, Param("Do not fail if the path does not exist")] = False
    pattern: Annotated[
        str | None, Param("Delete only matching entries of the directory path, such as *.tmp", minimum=1)
    ] = None
    if_match: Annotated[str | None, Param("Delete only this version, as given in a result")] = None


def run_file_delete(ctx: ToolContext, args: FileDeleteArgs) -> ToolResult:
    """Delete a path, or the matching files of a directory, and report what was deleted."""
    if args.pattern is not None:
        return _delete_matching(ctx, args, args.pattern)
    deleted = delete_path(ctx, args.path, recursive=args.recursive, force=args.force, if_match=args.if_match)
    if deleted is None:
        return _result(ctx, [], {"item_count": 0})
    metadata: dict[str, Any] = {"path": ctx.display_path(deleted.info.path), "item_count": deleted.item_count}
    return _result(ctx, [deleted.info.path], metadata)


def _delete_matching(ctx: ToolContext, args: FileDeleteArgs, pattern: str) -> ToolResult:
    if args.if_match is not None:
        raise ToolError("arguments", "Wrong arguments: 'if_match' cannot be combined with 'pattern'")
    try:
        found = list_entries(ctx, args.path, pattern=pattern, recursive=args.recursive)
    except MissingError:
        if not args.force:
            raise
        return _result(ctx, [], {"pattern": pattern})
    matching = [info for info in found.entries if not info.is_directory]
    if not args.recursive and any("/" in found.below(info) for info in matching):
        # A pattern such as **/* may reach further than the caller expects.
        raise ToolError(
            "arguments",
            f"Wrong arguments: 'pattern' {pattern[:80]!r} matches in subdirectories,"
            " so 'recursive' must be true",
        )
    deleted: list[str] = []
    for info in matching:
        with suppress(MissingError):
            ctx.workspace.remove(info.path)
            deleted.append(info.path)
    metadata: dict[str, Any] = {"path": ctx.display_path(found.directory.path), "pattern": pattern}
    if found.incomplete is not None:
        metadata["incomplete"] = found.incomplete
    return _result(ctx, deleted, metadata)


def _result(ctx: ToolContext, deleted: list[str], metadata: dict[str, Any]) -> ToolResult:
    listed, shown = fit_data(deleted, ctx.options.data_bytes, ctx.options.answer_bytes)
    output = {"deleted_count": len(deleted), "deleted_paths": listed}
    if len(listed) < len(deleted):
        metadata = {**metadata, "truncated": True}
    if shown == len(deleted):
        return ToolResult(success=True, output=output, metadata=metadata)
    note = f"[Cut: {pluralize(len(deleted) - shown, 'other path')} were deleted as well]"
    text = json.dumps({**output, "deleted_paths": listed[:shown]}, ensure_ascii=False)
    return ToolResult(success=True, output=output, metadata={**metadata, "note": note}, model_text=text)
