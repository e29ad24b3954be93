"""`move_file`: give a file or directory another name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.errors import MissingError
from carrel.tools.answer import about
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.store import without_parent

NOTES = "Nothing is overwritten: where the destination is there already, it fails."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `move_file`."""

    source: Annotated[str, Param("Path of what to move", least=1)]
    destination: Annotated[str, Param("Path that it gets", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Move it."""
    source = ctx.shown(ctx.workspace.stat(args.source, follow_symlinks=False).path)
    try:
        ctx.workspace.move(args.source, args.destination)
    except MissingError as error:
        if error.path != args.destination:
            raise
        raise without_parent(args.destination, "Use {make} to create it.") from None
    info = ctx.workspace.stat(args.destination, follow_symlinks=False)
    output = f"Moved {source} to {ctx.shown(info.path)}"
    return ToolResult(success=True, output=output, metadata={**about(ctx, info), "from": source})
