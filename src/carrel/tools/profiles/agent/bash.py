"""`bash`: run a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import NextCursor
from carrel.tools.core.schema import Param
from carrel.tools.operations.commands import CONTAINER_NOTES, SHELL_NOTES, run_streams
from carrel.values import ToolResult

_LONG_OUTPUT = (
    "Of a long output, the beginning and the end are shown; the line between them says how to read the rest,"
    " without running the command again."
)
BASH_NOTES = f"{SHELL_NOTES} {_LONG_OUTPUT}"
BASH_CONTAINER_NOTES = f"{CONTAINER_NOTES} {_LONG_OUTPUT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BashArgs:
    """Arguments of `bash`."""

    command: Annotated[str, Param("Command line to run")]
    timeout: Annotated[
        int, Param("Time limit in seconds", minimum=1, maximum=30, capped_by="command_seconds")
    ] = 10
    cursor: NextCursor = None


def run_bash(ctx: ToolContext, args: BashArgs) -> ToolResult:
    """Run the command line and return its output."""
    return run_streams(ctx, args.command, seconds=args.timeout, cursor=args.cursor)
