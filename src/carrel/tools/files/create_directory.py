"""`create_directory`: make a directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.errors import ExistsError, MissingError
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult
from carrel.tools.store import without_parent

NOTES = "data is {path, created}. A directory that is there already is no error: created is false then."


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `create_directory`."""

    path: Annotated[str, Param("Path of the directory, relative to the workspace or beneath it", least=1)]
    recursive: Annotated[bool, Param("Create the directories above as well, if needed")] = True


def run(ctx: Context, args: Args) -> ToolResult:
    """Make the directory, unless it is there."""
    created = True
    try:
        ctx.workspace.mkdir(args.path, parents=args.recursive)
    except MissingError:
        if args.recursive:
            raise
        raise without_parent(args.path, "Set recursive to create it as well.") from None
    except ExistsError:
        if not ctx.workspace.stat(args.path).is_directory:
            raise
        created = False
    path = ctx.shown(ctx.workspace.stat(args.path).path)
    return ToolResult(success=True, data={"path": path, "created": created}, metadata={"path": path})
