"""`search_files`: the files and directories whose paths match a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from carrel.tools.answer import told_lines
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.lines import one_line
from carrel.tools.listing import listing
from carrel.tools.result import ToolResult

NOTES = (
    "Gives one path on each line, sorted directory by directory. A pattern without a slash matches names at"
    " any depth; ** stands for any number of directories."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `search_files`."""

    path: Annotated[str, Param("Directory to look in", least=1)]
    pattern: Annotated[str, Param("Glob pattern, such as *.txt or src/**/*.py", least=1)]
    exclude_patterns: Annotated[
        tuple[str, ...], Param("Glob patterns of what to leave out, such as node_modules", most=100)
    ] = field(default=(), metadata={"name": "excludePatterns"})


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the paths."""
    found = listing(
        ctx, args.path, pattern=args.pattern, recursive=True, hidden=True, excluded=args.exclude_patterns
    )
    return told_lines(
        ctx,
        [one_line(ctx.shown(info.path)) for info in found.entries],
        noun="match",
        nouns="matches",
        advice="Narrow the pattern or the path",
        metadata={"directory": ctx.shown(found.directory.path), "pattern": args.pattern},
        incomplete=found.incomplete,
    )
