"""Some lines of a file with their numbers; the work behind the tools that view one."""

from __future__ import annotations

from typing import NamedTuple

from carrel.errors import TextError, ToolError
from carrel.tools.answer import about, counted
from carrel.tools.context import Context
from carrel.tools.encoding import BINARY_BYTES, is_binary
from carrel.tools.lines import fitting_lines, numbered_line
from carrel.tools.media_file import media_file
from carrel.tools.read_limit import readable
from carrel.tools.result import ToolResult
from carrel.values import LineWindow

MOST_LINES = 10_000
"""So many lines come at once."""
TO_THE_END = -1


class _Range(NamedTuple):
    first: int
    last: int | None
    """`None` for the end of the file."""

    @classmethod
    def parse(cls, view_range: tuple[int, ...] | None) -> _Range:
        if view_range is None:
            return cls(1, None)
        first, last = view_range
        if first < 1 or (last < first and last != TO_THE_END):
            raise _wrong(
                f"must be the first and the last line, counted from 1, with -1 for the end,"
                f" not [{first}, {last}]"
            )
        return cls(first, None if last == TO_THE_END else last)

    @property
    def lines(self) -> int:
        return MOST_LINES if self.last is None else min(MOST_LINES, self.last - self.first + 1)


def line_view(ctx: Context, path: str, view_range: tuple[int, ...] | None) -> ToolResult:
    """The lines of a file from the first to the last of *view_range*, or all; what is no text, as base64.

    Raises:
        ToolError: The file has no such lines, or *view_range* is none.
        TextError: Lines were asked for, and the file is no text.
    """
    asked = _Range.parse(view_range)
    # The version is read before the lines: one that is too old is refused, one too new would lose a change.
    info, beginning = ctx.workspace.read_with_info(path, length=readable(ctx, BINARY_BYTES))
    if view_range is None and is_binary(beginning):
        return media_file(ctx, path)
    try:
        window = _window(ctx, path, asked)
    except TextError:
        if view_range is None:
            return media_file(ctx, path)
        raise
    if asked.first > max(1, window.total_lines):
        has = counted(window.total_lines, "line")
        raise _wrong(f"begins at line {asked.first}, and {path!r} has {has}")
    return _answer(ctx, window, asked.last, {**about(ctx, info), "total_lines": window.total_lines})


def _window(ctx: Context, path: str, asked: _Range) -> LineWindow:
    encoding = ctx.options.default_encoding
    if encoding == "base64":
        raise TextError(f"files are read as base64, so {path!r} has no lines", path=path)
    return ctx.workspace.read_lines(path, start=asked.first, count=asked.lines, encoding=encoding)


def _answer(ctx: Context, window: LineWindow, last: int | None, metadata: dict[str, object]) -> ToolResult:
    lines = window.text.split("\n")[: window.count]
    fitting = fitting_lines(
        (numbered_line(number, line) for number, line in enumerate(lines, window.start)),
        ctx.options.answer_bytes,
    )
    output = fitting.text
    after = window.start + fitting.kept
    wanted = window.total_lines if last is None else min(last, window.total_lines)
    if not window.total_lines:
        output = "[The file is empty]"
    elif after <= wanted or fitting.is_cut:
        metadata["truncated"] = True
        told = f"These are lines {window.start} to {after - 1} of {window.total_lines}"
        if fitting.is_cut:
            told = f"Line {window.start} is cut, since it is too long for one answer"
        if after <= wanted:
            rest = metadata["next_view_range"] = [after, TO_THE_END if last is None else last]
            told = f"{told}. Go on with view_range {rest}"
        output = f"{output}\n[{told}]"
    return ToolResult(success=True, output=output, metadata=metadata)


def _wrong(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'view_range' {problem}")
