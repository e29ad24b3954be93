"""Read a file for a tool: plain text, numbered lines or base64, within the size limits."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from carrel.errors import LimitError, TextError, ToolError
from carrel.fs.api import Links
from carrel.policy.rules import Access
from carrel.tools.core.context import ToolContext
from carrel.tools.core.encoding import BINARY_BYTES, decode_content, is_binary
from carrel.tools.core.pagination import Cursor, cut_text
from carrel.tools.results.file_results import file_metadata, pluralize
from carrel.tools.results.lines import fit_lines, numbered_line, split_lines
from carrel.tools.results.media import SHOWN_TYPES, describe_file, image_size, media_type, tool_image
from carrel.values import FileInfo, LineWindow, ToolImage, ToolResult
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


EMPTY_FILE = "[The file is empty]"
"""What a model reads of an empty file."""


class ShownBytes(NamedTuple):
    """What a model sees of a file that is not text; its base64 would tell the model nothing."""

    text: str
    images: tuple[ToolImage, ...]


def show_bytes(metadata: Mapping[str, Any], content: bytes, advice: str = "") -> ShownBytes:
    """Return what a model sees of *content*, which is not text, as the *metadata* of its result say.

    *advice* says how to read it anyway.
    """
    path, kind = metadata["path"], metadata["media_type"]
    image = tool_image(path, content, kind)
    if kind in SHOWN_TYPES:
        advice = "It is incomplete or not valid, so it cannot be shown"
    text = describe_file(path, len(content), kind, image_size(content), "" if image else advice)
    return ShownBytes(text, () if image is None else (image,))


def cut_note(left_bytes: int, cursor: Cursor, offset: int | None = None) -> str:
    """Return the line that says that *left_bytes* of a file follow, and how to continue."""
    ways = f"cursor {cursor.render()!r}"
    if offset is not None:
        ways = f"offset {offset} or {ways}"
    return f"[Cut: {pluralize(left_bytes, 'byte')} of the file follow. Continue with {ways}]"


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
    output = base64.b64encode(data).decode("ascii")
    shown = ShownBytes(output, ())
    if ctx.options.default_encoding != "base64":
        shown = show_bytes(metadata, data, "" if is_text else "It is not text")
    elif len(output) > ctx.options.answer_bytes:
        shown = ShownBytes(output[: ctx.options.answer_bytes], ())
        metadata["note"] = f"[Cut: {len(output) - len(shown.text)} characters of base64 follow]"
    return ToolResult(
        success=True, output=output, metadata=metadata, model_text=shown.text, images=shown.images
    )


class TextExcerpt(NamedTuple):
    """The part of a text file that fits."""

    info: FileInfo
    text: str
    is_cut: bool


def read_plain_text(
    ctx: ToolContext, path: str, *, head: int | None, tail: int | None, offset: int | None
) -> ToolResult:
    """Read a text file, or its first *head* or last *tail* lines, as far as one result can hold them.

    With *offset*, the lines begin with that one.

    Raises:
        ToolError: *tail* is given together with *head* or *offset*.
        TextError: The file is not text.
    """
    if tail is not None and (head is not None or offset is not None):
        other = "head" if offset is None else "offset"
        raise ToolError("arguments", f"Wrong arguments: {other!r} and 'tail' cannot be given together")
    if offset is not None:
        info, lines = read_raw_lines(ctx, path, offset, head, ctx.options.default_encoding)
        return ToolResult(
            success=True, output=lines.text, metadata={**file_metadata(ctx, info), **lines.metadata}
        )
    room = ctx.options.answer_bytes
    excerpt = read_beginning(ctx, path, room, head) if tail is None else read_ending(ctx, path, room, tail)
    metadata = file_metadata(ctx, excerpt.info)
    size = excerpt.info.size_bytes
    if not size:
        metadata["note"] = EMPTY_FILE
    if not excerpt.is_cut:
        return ToolResult(success=True, output=excerpt.text, metadata=metadata)
    metadata["truncated"] = True
    if tail is None:
        advice = "Use tail to read its last lines"
        if count := excerpt.text.count("\n"):
            advice = f"Continue with offset {count + 1}, or use tail to read its last lines"
        separator = "" if excerpt.text.endswith("\n") else "\n"
        output = f"{excerpt.text}{separator}[Cut: the file has {size} bytes. {advice}]"
    else:
        output = f"[Cut: the file has {size} bytes. Use head to read its first lines]\n{excerpt.text}"
    return ToolResult(success=True, output=output, metadata=metadata)


class RawLines(NamedTuple):
    """Lines of a text file exactly as they are, as many as fit."""

    text: str
    metadata: dict[str, Any]
    """The number of all lines, where to continue, and the line that says so."""


def read_raw_lines(
    ctx: ToolContext, path: str, first: int, count: int | None, encoding: str
) -> tuple[FileInfo, RawLines]:
    """Read at most *count* lines from line *first* on, as far as one result can hold them.

    Raises:
        TextError: The file is not text.
    """
    info = ctx.workspace.stat(path)
    max_lines = MAX_VIEW_LINES if count is None else min(count, MAX_VIEW_LINES)
    window = ctx.workspace.read_lines(path, start=first, count=max_lines, encoding=encoding)
    data = window.text.encode("utf-8", "surrogatepass")
    part = data[: cut_text(data, ctx.options.answer_bytes)]
    is_cut = len(part) < len(data)
    kept = part.count(b"\n") if is_cut else window.count
    metadata: dict[str, Any] = {"total_lines": window.total_lines}
    if is_cut:
        metadata["truncated"] = True
    if first + kept <= window.total_lines:
        metadata["next_offset"] = first + max(1, kept)
    if note := lines_note(first, max(1, kept), window.total_lines, is_line_cut=is_cut and not kept):
        metadata["note"] = note
    return info, RawLines(part.decode("utf-8", "surrogatepass"), metadata)


def lines_note(first: int, kept: int, total_lines: int, *, is_line_cut: bool, advice: str = "") -> str:
    """Return the line that says which lines of a file these are; empty if they reach its end.

    *advice* says how to read a line that is too long.
    """
    after = first + kept
    if not total_lines:
        return EMPTY_FILE
    if first > total_lines:
        return f"[The file has only {pluralize(total_lines, 'line')}]"
    notes = []
    if is_line_cut:
        notes.append(f"Line {first} is cut, since it is too long for one answer{advice}")
    elif after <= total_lines:
        notes.append(f"These are lines {first} to {after - 1} of {total_lines}")
    if after <= total_lines:
        notes.append(f"Continue with offset {after}")
    return f"[{'. '.join(notes)}]" if notes else ""


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
        output = EMPTY_FILE
    elif after <= final or fitting.is_cut:
        metadata["truncated"] = True
        note = f"These are lines {window.start} to {after - 1} of {window.total_lines}"
        if fitting.is_cut:
            note = (
                f"Line {window.start} is cut, since it is too long for one answer: cut -c prints parts of it"
            )
        if after <= final:
            rest = metadata["next_view_range"] = [after, TO_THE_END if last is None else last]
            note = f"{note}. Continue with view_range {rest}"
        output = f"{output}\n[{note}]"
    return ToolResult(success=True, output=output, metadata=metadata)


def _invalid_range(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'view_range' {problem}")
