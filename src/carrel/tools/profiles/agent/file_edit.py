"""`file_edit`: replace text in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.results.text_diff import shorten_diff
from carrel.values import MIB, ToolResult

FILE_EDIT_NOTES = (
    "old_text must occur exactly once in the file, unless replace_all is set; an empty new_text deletes it."
    " Line endings of the file are kept. With if_match, only that version of the file is changed."
)
MAX_FILE_BYTES = 10 * MIB
"""Larger files cannot be edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEditArgs:
    """Arguments of `file_edit`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace", minimum=1)]
    old_text: Annotated[str, Param("Text to replace, exactly as it is in the file", maximum=10_000)]
    new_text: Annotated[str, Param("Replacement text", maximum=50_000)]
    replace_all: Annotated[bool, Param("Replace every occurrence")] = False
    if_match: Annotated[str | None, Param("Change only this version, as given in a result")] = None


def run_file_edit(ctx: ToolContext, args: FileEditArgs) -> ToolResult:
    """Replace the text and report what changed."""
    _require_size(ctx, args.path)
    edited = ctx.workspace.edit(
        args.path, args.old_text, args.new_text, replace_all=args.replace_all, if_version=args.if_match
    )
    path = ctx.display_path(edited.info.path)
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
            next="Write the whole file, or split it into smaller ones.",
            path=path,
            details={"limit": MAX_FILE_BYTES, "asked": size},
        )
