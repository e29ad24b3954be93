"""`bash`: run a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.core.context import ToolContext
from carrel.tools.core.result import ToolResult
from carrel.tools.core.schema import Param
from carrel.tools.operations.commands import run_streams

BASH_NOTES = (
    "The usual commands on files are there, such as ls, cat, grep and find; `help` lists them. Programs of"
    " the host and the network are not. The working directory and variables last from call to call. Long"
    " output is cut: repeat the command with next_cursor of the metadata to go on; it is not run again."
)

BASH_CONTAINER_NOTES = (
    "It runs in a Linux container of this session, {network}, in the workspace; the programs are those of its"
    " image. Nothing lasts from call to call but files, in the workspace and for a while in /tmp; what a"
    " command leaves running is ended. Long output is cut: repeat the command with next_cursor of the"
    " metadata to go on; it is not run again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BashArgs:
    """Arguments of `bash`."""

    command: Annotated[str, Param("The command line to run")]
    timeout: Annotated[int, Param("Longest time it may take, in seconds", least=1, most=30)] = 10
    cursor: Annotated[str | None, Param("next_cursor of an answer that was cut, to go on from there")] = None


def run_bash(ctx: ToolContext, args: BashArgs) -> ToolResult:
    """Run the command line and tell what it printed."""
    return run_streams(ctx, args.command, seconds=args.timeout, cursor=args.cursor)
