"""Read a file for a tool: plain text, numbered lines or base64, within the size limits."""

from __future__ import annotations

import base64
from typing import NamedTuple

from carrel.errors import LimitError, TextError, ToolError
from carrel.fs.api import Links
from carrel.policy.rules import Access
from carrel.tools.core.context import ToolContext
from carrel.tools.core.encoding import BINARY_BYTES, decode_content, is_binary
from carrel.tools.core.pagination import cut_text
from carrel.tools.results.file_results import file_metadata, pluralize
from carrel.tools.results.lines import fit_lines, numbered_line, split_lines
from carrel.tools.results.media import image_size, media_type
from carrel.values import FileInfo, LineWindow, ToolResult
from carrel.workspace import text as texts


def max_readable_bytes(ctx: ToolContext, max_bytes: int) -> int:
    """Return *max_bytes*, or the read limit of the workspace if that is lower."""
    limit = ctx.workspace.limits.read_bytes
    return max_bytes if limit is None else min(max_bytes, limit)


def require_size(info: FileInfo, max_bytes: int, path: str) -> None:
    """Refuse a file of more than *max_bytes*, for a caller that needs the whole file.

    Raises:
        LimitError: The file is larger.
    """
    if info.size_bytes > max_bytes:
        raise LimitError(
            "read_bytes",
            limit=max_bytes,
            asked=info.size_bytes,
            message=f"{path!r} is too large: {info.size_bytes} bytes, the limit is {max_bytes}",
            path=path,
        )


SMALL_FILE_BYTES = 2**16
"""Files up to this size are read and written on the event loop."""


def is_small_file(ctx: ToolContext, path: str, max_bytes: int = SMALL_FILE_BYTES) -> bool:
    """Whether the file at *path* has at most *max_bytes*; a refusal is left to the call that follows."""
    files, parsed = ctx.workspace.gate.permit(Access.READ, path)
    return files.stat(parsed, Links.FOLLOW).size_bytes <= max_bytes


def read_media(ctx: ToolContext, path: str) -> ToolResult:
    """Read a whole file as base64; part of an image or sound would be of no use.

    Raises:
        LimitError: The file exceeds the limit for one operation.
    """
    max_bytes = ctx.options.max_file_size
    info, data = ctx.workspace.read_with_info(path, length=max_bytes + 1)
    require_size(info, max_bytes, path)
    is_text = decode_content(data, None, "utf-8", path).text is not None
    metadata = {
        **file_metadata(ctx, info),
        "encoding": "base64",
        "media_type": media_type(info.path, data, is_text=is_text),
    }
    if (size := image_size(data)) is not None:
        metadata |= {"width": size.width, "height": size.height}
    return ToolResult(success=True, output=base64.b64encode(data).decode("ascii"), metadata=metadata)


class TextExcerpt(NamedTuple):
    """The part of a text file that fits."""

    info: FileInfo
    text: str
    is_cut: bool


def read_plain_text(ctx: ToolContext, path: str, *, head: int | None, tail: int | None) -> ToolResult:
    """Read a text file, or its first *head* or last *tail* lines, as far as one result can hold them.

    Raises:
        ToolError: Both *head* and *tail* are given.
        TextError: The file is not text.
    """
    if head is not None and tail is not None:
        raise ToolError("arguments", "Wrong arguments: 'head' and 'tail' cannot be given together")
    room = ctx.options.answer_bytes
    excerpt = read_beginning(ctx, path, room, head) if tail is None else read_ending(ctx, path, room, tail)
    metadata = file_metadata(ctx, excerpt.info)
    if not excerpt.is_cut:
        return ToolResult(success=True, output=excerpt.text, metadata=metadata)
    metadata["truncated"] = True
    size = excerpt.info.size_bytes
    if tail is None:
        output = f"{excerpt.text}\n[Cut: the file has {size} bytes. Use tail to read its last lines]"
    else:
        output = f"[Cut: the file has {size} bytes. Use head to read its first lines]\n{excerpt.text}"
    return ToolResult(success=True, output=output, metadata=metadata)


def read_beginning(ctx: ToolContext, path: str, max_bytes: int, lines: int | None = None) -> TextExcerpt:
    """Read the text of a file, or its first *lines*, up to *max_bytes*."""
    info, data = ctx.workspace.read_with_info(path, length=max_readable_bytes(ctx, max_bytes))
    _require_text(data, path)
    is_cut = len(data) < info.size_bytes
    if is_cut:
        data = data[: cut_text(data, len(data) - 1)]
    if lines is not None and data.count(b"\n") >= lines:
        data, is_cut = b"".join(split_lines(data)[:lines]), False
    return TextExcerpt(info, _decode(ctx, data, path), is_cut)


def read_ending(ctx: ToolContext, path: str, max_bytes: int, lines: int) -> TextExcerpt:
    """Read the last *lines* of a file, up to *max_bytes*."""
    max_bytes = max_readable_bytes(ctx, max_bytes)
    start = max(0, ctx.workspace.stat(path).size_bytes - max_bytes)
    info, data = ctx.workspace.read_with_info(path, offset=start, length=max_bytes)
    _require_text(data, path)
    found = split_lines(data)
    if start and len(found) <= lines:
        # The first line may have begun before the data.
        found = found[1:] or [_strip_partial_character(data)]
        return TextExcerpt(info, _decode(ctx, b"".join(found), path), True)
    return TextExcerpt(info, _decode(ctx, b"".join(found[-lines:]), path), False)


def _strip_partial_character(data: bytes) -> bytes:
    """Remove the rest of a UTF-8 character that began before *data*."""
    start = 0
    while start < min(4, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def _require_text(data: bytes, path: str) -> None:
    if is_binary(data):
        raise TextError(f"{path!r} is not a text file", path=path)


def _decode(ctx: ToolContext, data: bytes, path: str) -> str:
    return texts.decode(data, ctx.options.default_encoding, path)


MAX_VIEW_LINES = 10_000
"""Most lines in one result."""
TO_THE_END = -1
"""Last line of a range that ends with the file."""


class _LineRange(NamedTuple):
    first: int
    last: int | None
    """`None` means the end of the file."""

    @classmethod
    def parse(cls, view_range: tuple[int, ...] | None) -> _LineRange:
        if view_range is None:
            return cls(1, None)
        first, last = view_range
        if first < 1 or (last < first and last != TO_THE_END):
            raise _invalid_range(
                f"must be the first and last line, counted from 1, with -1 for the end, not [{first}, {last}]"
            )
        return cls(first, None if last == TO_THE_END else last)

    @property
    def lines(self) -> int:
        return MAX_VIEW_LINES if self.last is None else min(MAX_VIEW_LINES, self.last - self.first + 1)


def view_lines(ctx: ToolContext, path: str, view_range: tuple[int, ...] | None) -> ToolResult:
    """Read the lines of *view_range*, or all lines, numbered; a whole file that is not text, as base64.

    Raises:
        ToolError: *view_range* is not valid, or begins after the end of the file.
        TextError: *view_range* is given, and the file is not text.
    """
    line_range = _LineRange.parse(view_range)
    # The version is read before the lines: a stale version is only refused later, one that is newer than
    # the lines would let a write undo a change that was never seen.
    info, beginning = ctx.workspace.read_with_info(path, length=max_readable_bytes(ctx, BINARY_BYTES))
    if view_range is None and is_binary(beginning):
        return read_media(ctx, path)
    try:
        window = _read_window(ctx, path, line_range)
    except TextError:
        if view_range is None:
            return read_media(ctx, path)
        raise
    if line_range.first > max(1, window.total_lines):
        total = pluralize(window.total_lines, "line")
        raise _invalid_range(f"begins at line {line_range.first}, but {path!r} has {total}")
    return _view_result(
        ctx, window, line_range.last, {**file_metadata(ctx, info), "total_lines": window.total_lines}
    )


def _read_window(ctx: ToolContext, path: str, line_range: _LineRange) -> LineWindow:
    encoding = ctx.options.default_encoding
    if encoding == "base64":
        raise TextError(f"files are read as base64, so {path!r} has no lines", path=path)
    return ctx.workspace.read_lines(path, start=line_range.first, count=line_range.lines, encoding=encoding)


def _view_result(
    ctx: ToolContext, window: LineWindow, last: int | None, metadata: dict[str, object]
) -> ToolResult:
    lines = window.text.split("\n")[: window.count]
    fitting = fit_lines(
        (numbered_line(number, line) for number, line in enumerate(lines, window.start)),
        ctx.options.answer_bytes,
    )
    output = fitting.text
    after = window.start + fitting.kept
    final = window.total_lines if last is None else min(last, window.total_lines)
    if not window.total_lines:
        output = "[The file is empty]"
    elif after <= final or fitting.is_cut:
        metadata["truncated"] = True
        note = f"These are lines {window.start} to {after - 1} of {window.total_lines}"
        if fitting.is_cut:
            note = f"Line {window.start} is cut, since it is too long for one answer"
        if after <= final:
            rest = metadata["next_view_range"] = [after, TO_THE_END if last is None else last]
            note = f"{note}. Continue with view_range {rest}"
        output = f"{output}\n[{note}]"
    return ToolResult(success=True, output=output, metadata=metadata)


def _invalid_range(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'view_range' {problem}")
