"""`glob`: the files whose paths match a pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.answer import told_lines
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.lines import one_line
from carrel.tools.listing import listing
from carrel.tools.result import ToolResult

NOTES = (
    "Gives one path on each line, sorted directory by directory. A pattern without a slash matches names at"
    " any depth; ** stands for any number of directories. What begins with a dot is left out, unless the"
    " pattern names it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `glob`."""

    pattern: Annotated[str, Param("Glob pattern, such as **/*.py or src/*.{ts,tsx}", least=1)]
    path: Annotated[str | None, Param("Directory to look in", least=1, default=".")] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the paths."""
    pattern = args.pattern
    if args.path is None:
        # Models like to write the whole path.
        pattern = pattern.removeprefix(f"{ctx.workspace.mount}/")
    found = listing(ctx, args.path or ".", pattern=pattern, recursive=True)
    paths = [one_line(ctx.shown(info.path)) for info in found.entries if not info.is_directory]
    return told_lines(
        ctx,
        paths,
        noun="file",
        advice="Narrow the pattern or the path",
        metadata={"directory": ctx.shown(found.directory.path), "pattern": args.pattern},
        incomplete=found.incomplete,
    )
