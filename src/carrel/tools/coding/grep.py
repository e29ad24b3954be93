"""`grep`: the lines that match a regular expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.answer import told_lines
from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.lines import one_line
from carrel.tools.media import is_perceived
from carrel.tools.result import ToolResult
from carrel.workspace.search import SearchBudget

NOTES = (
    "Gives path:line:text on each line. The pattern is a regular expression of RE2, which knows no"
    " backreferences and no look-around. Binary files, and what begins with a dot, are left out."
)
FILES = 100_000
"""So many are looked into."""
_ENDED = {
    "time": "the search took too long",
    "files": "there are too many files",
    "bytes": "the files are too large",
    "entries": "there are too many files",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `grep`."""

    pattern: Annotated[str, Param("Regular expression to look for", least=1)]
    path: Annotated[str | None, Param("File or directory to look in", least=1, default=".")] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the lines."""
    found = ctx.workspace.search(
        args.pattern,
        args.path or ".",
        wants=lambda name: not is_perceived(name),
        budget=SearchBudget(files=FILES),
    )
    lines = [f"{one_line(ctx.shown(match.path))}:{match.line}:{match.text}" for match in found.matches]
    metadata: dict[str, object] = {
        "pattern": args.pattern,
        "files_searched": found.files_searched,
        "files_skipped": found.files_skipped,
    }
    return told_lines(
        ctx,
        lines,
        noun="match",
        nouns="matches",
        advice="Narrow the pattern or the path",
        metadata=metadata,
        incomplete=_ENDED.get(found.reason or "", "there are more matches") if found.truncated else None,
    )
