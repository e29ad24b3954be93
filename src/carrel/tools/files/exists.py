"""`exists`: whether there is something, and what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.errors import LoopError, MissingError, NotDirectoryError
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult

NOTES = (
    "data is {exists, type}; type is file, directory or other, or null if nothing is there. A link counts as"
    " what it leads to; one that leads nowhere is nothing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `exists`."""

    path: Annotated[str, Param("Path to look at, relative to the workspace or beneath it", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Look whether there is something."""
    try:
        info = ctx.workspace.stat(args.path)
    except (MissingError, NotDirectoryError, LoopError):
        return ToolResult(success=True, data={"exists": False, "type": None})
    return ToolResult(
        success=True,
        data={"exists": True, "type": str(info.kind)},
        metadata={"path": ctx.shown(info.path)},
    )
