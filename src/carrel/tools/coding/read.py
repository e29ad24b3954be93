"""`read`: the lines of a file with their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from carrel.tools.context import Context
from carrel.tools.kind import Param
from carrel.tools.line_view import line_view
from carrel.tools.result import ToolResult

NOTES = (
    "Lines come numbered. A long file is cut: go on with the view_range that the answer names. What is no"
    " text comes as base64."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Args:
    """Arguments of `read`."""

    file_path: Annotated[str, Param("Path of the file", least=1)]
    view_range: Annotated[
        tuple[int, ...] | None,
        Param("First and last line, counted from 1; -1 is the last of the file", least=2, most=2),
    ] = None


def run(ctx: Context, args: Args) -> ToolResult:
    """Give the lines."""
    return line_view(ctx, args.file_path, args.view_range)
