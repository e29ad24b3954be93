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
from carrel.tools.core.result import ToolResult
from carrel.tools.results.file_results import file_metadata, pluralize
from carrel.tools.results.lines import fit_lines, numbered_line, split_lines
from carrel.tools.results.media import image_size, media_type
from carrel.values import FileInfo, LineWindow
from carrel.workspace import text as texts


def max_readable_bytes(ctx: ToolContext, most: int) -> int:
    """How many of *most* bytes may be read at once."""
    limit = ctx.workspace.limits.read_bytes
    return most if limit is None else min(most, limit)


def require_size(info: FileInfo, most: int, path: str) -> None:
    """Refuse a file that is larger than *most* bytes, since only the whole of it is of use.

    Raises:
        LimitError: It is.
    """
    if info.size_bytes > most:
        raise LimitError(
            "read_bytes",
            limit=most,
            asked=info.size_bytes,
            message=f"{path!r} is too large: {info.size_bytes} bytes, the limit is {most}",
            path=path,
        )


SMALL_FILE_BYTES = 2**16


def is_small_file(ctx: ToolContext, path: str, most: int = SMALL_FILE_BYTES) -> bool:
    """Whether the file at *path* has at most *most* bytes; a refusal is one of the call that follows."""
    files, where = ctx.workspace.gate.permit(Access.READ, path)
    return files.stat(where, Links.FOLLOW).size_bytes <= most


def read_media(ctx: ToolContext, path: str) -> ToolResult:
    """The whole content, since a part of an image or a sound is of no use.

    Raises:
        LimitError: It is larger than one operation may give.
    """
    most = ctx.options.max_file_size
    info, data = ctx.workspace.read_with_info(path, length=most + 1)
    require_size(info, most, path)
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
    """As much of a text as there was room for."""

    info: FileInfo
    text: str
    is_cut: bool


def read_plain_text(ctx: ToolContext, path: str, *, head: int | None, tail: int | None) -> ToolResult:
    """The whole text, its first *head* or its last *tail* lines; no more than an answer may hold.

    Raises:
        ToolError: Both are asked for.
        TextError: The file is no text.
    """
    if head is not None and tail is not None:
        raise ToolError("arguments", "Wrong arguments: 'head' and 'tail' cannot be given together")
    most = ctx.options.answer_bytes
    part = read_beginning(ctx, path, most, head) if tail is None else read_ending(ctx, path, most, tail)
    metadata = file_metadata(ctx, part.info)
    if not part.is_cut:
        return ToolResult(success=True, output=part.text, metadata=metadata)
    metadata["truncated"] = True
    size = part.info.size_bytes
    if tail is None:
        output = f"{part.text}\n[Cut: the file has {size} bytes. Use tail to read its last lines]"
    else:
        output = f"[Cut: the file has {size} bytes. Use head to read its first lines]\n{part.text}"
    return ToolResult(success=True, output=output, metadata=metadata)


def read_beginning(ctx: ToolContext, path: str, most: int, lines: int | None = None) -> TextExcerpt:
    """The text of a file, or its first *lines*, as far as *most* bytes hold it."""
    info, data = ctx.workspace.read_with_info(path, length=max_readable_bytes(ctx, most))
    _require_text(data, path)
    is_cut = len(data) < info.size_bytes
    if is_cut:
        data = data[: cut_text(data, len(data) - 1)]
    if lines is not None and data.count(b"\n") >= lines:
        data, is_cut = b"".join(split_lines(data)[:lines]), False
    return TextExcerpt(info, _decoded(ctx, data, path), is_cut)


def read_ending(ctx: ToolContext, path: str, most: int, lines: int) -> TextExcerpt:
    """The last *lines* of a file, as far as *most* bytes hold them."""
    most = max_readable_bytes(ctx, most)
    start = max(0, ctx.workspace.stat(path).size_bytes - most)
    info, data = ctx.workspace.read_with_info(path, offset=start, length=most)
    _require_text(data, path)
    found = split_lines(data)
    if start and len(found) <= lines:
        # The first of them may have begun before what was read.
        found = found[1:] or [_whole_characters(data)]
        return TextExcerpt(info, _decoded(ctx, b"".join(found), path), True)
    return TextExcerpt(info, _decoded(ctx, b"".join(found[-lines:]), path), False)


def _whole_characters(data: bytes) -> bytes:
    """The data without the rest of a character that began before them."""
    start = 0
    while start < min(4, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def _require_text(data: bytes, path: str) -> None:
    if is_binary(data):
        raise TextError(f"{path!r} is not a text file", path=path)


def _decoded(ctx: ToolContext, data: bytes, path: str) -> str:
    return texts.decode(data, ctx.options.default_encoding, path)


MAX_VIEW_LINES = 10_000
"""So many lines come at once."""
TO_THE_END = -1


class _LineRange(NamedTuple):
    first: int
    last: int | None
    """`None` for the end of the file."""

    @classmethod
    def parse(cls, view_range: tuple[int, ...] | None) -> _LineRange:
        if view_range is None:
            return cls(1, None)
        first, last = view_range
        if first < 1 or (last < first and last != TO_THE_END):
            raise _invalid_range(
                f"must be the first and the last line, counted from 1, with -1 for the end,"
                f" not [{first}, {last}]"
            )
        return cls(first, None if last == TO_THE_END else last)

    @property
    def lines(self) -> int:
        return MAX_VIEW_LINES if self.last is None else min(MAX_VIEW_LINES, self.last - self.first + 1)


def view_lines(ctx: ToolContext, path: str, view_range: tuple[int, ...] | None) -> ToolResult:
    """The lines of a file from the first to the last of *view_range*, or all; what is no text, as base64.

    Raises:
        ToolError: The file has no such lines, or *view_range* is none.
        TextError: Lines were asked for, and the file is no text.
    """
    asked = _LineRange.parse(view_range)
    # The version is read before the lines: one that is too old is refused, one too new would lose a change.
    info, beginning = ctx.workspace.read_with_info(path, length=max_readable_bytes(ctx, BINARY_BYTES))
    if view_range is None and is_binary(beginning):
        return read_media(ctx, path)
    try:
        window = _window(ctx, path, asked)
    except TextError:
        if view_range is None:
            return read_media(ctx, path)
        raise
    if asked.first > max(1, window.total_lines):
        has = pluralize(window.total_lines, "line")
        raise _invalid_range(f"begins at line {asked.first}, and {path!r} has {has}")
    return _view_result(
        ctx, window, asked.last, {**file_metadata(ctx, info), "total_lines": window.total_lines}
    )


def _window(ctx: ToolContext, path: str, asked: _LineRange) -> LineWindow:
    encoding = ctx.options.default_encoding
    if encoding == "base64":
        raise TextError(f"files are read as base64, so {path!r} has no lines", path=path)
    return ctx.workspace.read_lines(path, start=asked.first, count=asked.lines, encoding=encoding)


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


def _invalid_range(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'view_range' {problem}")
