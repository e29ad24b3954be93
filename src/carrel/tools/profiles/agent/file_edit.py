"""`file_edit`: replace text in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.results.text_diff import shorten_diff
from carrel.values import MIB

FILE_EDIT_NOTES = (
    "old_text must be in the file exactly once, unless replace_all is set; an empty new_text deletes it. Line"
    " ends of the file are kept. With if_match, only that version of the file is changed."
)
MAX_FILE_BYTES = 10 * MIB
"""Larger files are not edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEditArgs:
    """Arguments of `file_edit`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace", least=1)]
    old_text: Annotated[str, Param("The text to replace, exactly as it stands in the file", most=10_000)]
    new_text: Annotated[str, Param("What takes its place", most=50_000)]
    replace_all: Annotated[bool, Param("Replace every occurrence")] = False
    if_match: Annotated[str | None, Param("Change only this version, as an answer told it")] = None


def run_file_edit(ctx: ToolContext, args: FileEditArgs) -> ToolResult:
    """Replace the text and tell what changed."""
    _require_size(ctx, args.path)
    edited = ctx.workspace.edit(
        args.path, args.old_text, args.new_text, replace_all=args.replace_all, if_version=args.if_match
    )
    path = ctx.shown(edited.info.path)
    metadata: dict[str, Any] = {
        "path": path,
        "replacements": edited.replacements,
        "old_length": len(args.old_text),
        "new_length": len(args.new_text),
        "file_size_after": edited.info.size_bytes,
        "version": edited.info.version,
        "diff": shorten_diff(edited.diff),
    }
    output = f"Replaced {edited.replacements} occurrence(s) in {path}"
    return ToolResult(success=True, output=output, metadata=metadata)


def _require_size(ctx: ToolContext, path: str) -> None:
    size = ctx.workspace.stat(path).size_bytes
    if size > MAX_FILE_BYTES:
        raise AdvisedError(
            "limit.file_bytes",
            f"File too large: {size} bytes (max {MAX_FILE_BYTES})",
            then="Write it anew, or split it into smaller files.",
            path=path,
            more={"limit": MAX_FILE_BYTES, "asked": size},
        )
