"""`create_directory`: make a directory and those above it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult

NOTES = "Directories above it are made as needed; one that is there already is left as it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `create_directory`."""

    path: Annotated[str, Param("Path of the directory", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Make the directory."""
    was_there = ctx.workspace.exists(args.path)
    ctx.workspace.mkdir(args.path, exist_ok=True)
    path = ctx.shown(ctx.workspace.stat(args.path).path)
    output = f"Directory was there already: {path}" if was_there else f"Created directory {path}"
    return ToolResult(success=True, output=output, metadata={"path": path})
