"""`bash`: run a command line, as Claude models know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.commands import run_text
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult

NOTES = (
    "The usual commands on files are there, such as ls, cat, grep and find; `help` lists them. Programs of"
    " the host and the network are not. The working directory and variables last from call to call."
)
CONTAINER_NOTES = (
    "It runs in a Linux container of this session, {network}, in the workspace; the programs are those of its"
    " image. Nothing lasts from call to call but files, in the workspace and for a while in /tmp; what a"
    " command leaves running is ended."
)
SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `bash`."""

    command: Annotated[str | None, Param("The command line to run; needed unless the shell is restarted")] = (
        None
    )
    restart: Annotated[bool, Param("Begin anew, in the workspace and without variables that were set")] = (
        False
    )
    cursor: Annotated[str | None, Param("The cursor of an answer that was cut, to go on from there")] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """Run the command line and tell what it printed, as one text."""
    return run_text(ctx, args.command, restart=args.restart, seconds=SECONDS, cursor=args.cursor)
