"""`edit`: replace text in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.answer import told_edited
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult

NOTES = "old_string must be in the file exactly once, unless replace_all is set."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `edit`."""

    file_path: Annotated[str, Param("Path of the file", least=1)]
    old_string: Annotated[str, Param("The text to replace, exactly as it stands, without line numbers")]
    new_string: Annotated[str, Param("What takes its place")]
    replace_all: Annotated[bool, Param("Replace every occurrence")] = False


def run(ctx: Context, args: Args) -> ToolResult:
    """Replace the text, and show the lines around it."""
    edited = ctx.workspace.edit(
        args.file_path, args.old_string, args.new_string, replace_all=args.replace_all
    )
    return told_edited(ctx, edited)
