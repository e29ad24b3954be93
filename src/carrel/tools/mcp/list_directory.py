"""`list_directory`: the names in a directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.answer import told_lines
from carrel.tools.context import Context
from carrel.tools.directory_lines import marked
from carrel.tools.kind import Param
from carrel.tools.result import ToolResult

NOTES = "Each name follows [DIR] or [FILE]. Links are listed as files and never followed."
IS_STEPWISE = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `list_directory`."""

    path: Annotated[str, Param("Path of the directory", least=1)]


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the names."""
    return told_lines(
        ctx,
        marked(ctx.workspace.list_names(args.path)),
        noun="entry",
        nouns="entries",
        advice="Search for a pattern instead",
        metadata={"path": ctx.plain(args.path)},
    )
