"""`file_read`: read a file, whole or by lines."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import ToolError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.encoding import Encoding, decode_content, is_binary
from carrel.tools.core.pagination import Cursor, NextCursor, TextPage, text_page
from carrel.tools.core.schema import Param
from carrel.tools.operations.reading import (
    EMPTY_FILE,
    cut_note,
    is_small_file,
    lines_note,
    max_readable_bytes,
    require_size,
    show_bytes,
)
from carrel.tools.results.lines import fit_lines, numbered_line
from carrel.tools.results.media import file_suffix, image_size, media_type
from carrel.tools.results.structured_data import NOTHING, YAML_SUFFIXES, parse_data
from carrel.values import MIB, FileInfo, ToolResult

FILE_READ_NOTES = (
    "A text is shown exactly as it is, with offset or limit with line numbers, and an image as an image;"
    " other files are only described, unless encoding is base64. A long result is cut, and its last line says"
    " how to continue."
)
QUICK_BYTES = 2**16
"""Files up to this size are read on the event loop."""
QUICK_YAML_BYTES = 2**9
"""The same for YAML, which takes far longer to parse than to read."""
_UTF8_COMPATIBLE = ("utf-8", "ascii")
"""Encodings whose bytes are UTF-8 already."""
WINDOW_LINES = 10_000
"""Most lines in a result if no limit is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReadArgs:
    """Arguments of `file_read`."""

    path: Annotated[str, Param("Path of the file, relative to the workspace", minimum=1)]
    encoding: Annotated[
        Encoding | None,
        Param("Encoding of the file; base64 returns the bytes of any file", default="utf-8"),
    ] = None
    max_size_mb: Annotated[int, Param("Largest file to read, in MiB", minimum=1, maximum=100)] = 10
    offset: Annotated[int | None, Param("First line to read, counted from 1", minimum=1)] = None
    limit: Annotated[int | None, Param("Number of lines to read", minimum=1)] = None
    cursor: NextCursor = None


def is_quick_file_read(ctx: ToolContext, args: FileReadArgs) -> bool:
    """Whether the file is small."""
    max_bytes = QUICK_YAML_BYTES if file_suffix(args.path) in YAML_SUFFIXES else QUICK_BYTES
    return is_small_file(ctx, args.path, max_bytes)


def run_file_read(ctx: ToolContext, args: FileReadArgs) -> ToolResult:
    """Read the file: as text, for programs also parsed, as numbered lines or as base64."""
    if args.offset is not None or args.limit is not None:
        return _read_lines(ctx, args)
    max_bytes = max_readable_bytes(ctx, args.max_size_mb * MIB)
    info, data = ctx.workspace.read_with_info(args.path, length=max_bytes)
    require_size(info, max_bytes, args.path)
    cursor = Cursor.parse(args.cursor)
    cursor.require(info.version, args.path)
    encoding, text = decode_content(data, args.encoding, ctx.options.default_encoding, args.path)
    metadata = _metadata(ctx, info, encoding)
    if text is None:
        return _base64_result(
            ctx,
            data,
            cursor,
            metadata,
            is_requested=(args.encoding or ctx.options.default_encoding) == "base64",
        )
    found = NOTHING
    if cursor.position == 0 and len(data) <= ctx.options.data_bytes:
        found = parse_data(text, metadata["file_type"])
    if encoding not in _UTF8_COMPATIBLE:
        data = text.encode("utf-8", "surrogatepass")
    if cursor.position or len(data) > ctx.options.answer_bytes or not data:
        return _part_result(ctx, data, cursor, metadata, found)
    if found is not NOTHING:
        return ToolResult(success=True, output=found, metadata=metadata, model_text=text)
    metadata["media_type"] = media_type(metadata["path"], b"", is_text=True)
    return ToolResult(success=True, output=text, metadata=metadata)


def _metadata(ctx: ToolContext, info: FileInfo, encoding: str) -> dict[str, Any]:
    return {
        "path": ctx.display_path(info.path),
        "size_bytes": info.size_bytes,
        "encoding": encoding,
        "file_type": file_suffix(info.path),
        "version": info.version,
    }


def _base64_result(
    ctx: ToolContext, data: bytes, cursor: Cursor, metadata: dict[str, Any], *, is_requested: bool
) -> ToolResult:
    """Return *data* from *cursor* on as base64, which a model sees only if it requested that."""
    metadata["media_type"] = media_type(metadata["path"], data, is_text=False)
    if (size := image_size(data)) is not None:
        metadata |= {"width": size.width, "height": size.height}
    output, end = _base64_page(data, cursor.position, ctx.options.data_bytes)
    if end < len(data):
        metadata |= {"truncated": True, "next_cursor": Cursor(end, metadata["version"]).render()}
    if not is_requested:
        other = "base64" if is_binary(data) else "latin-1 or base64"
        text, images = show_bytes(metadata, data, f"It is not text: use encoding {other} to read it anyway")
        return ToolResult(success=True, output=output, metadata=metadata, model_text=text, images=images)
    shown, shown_end = _base64_page(data, cursor.position, ctx.options.answer_bytes)
    if shown_end < len(data):
        metadata["note"] = cut_note(len(data) - shown_end, Cursor(shown_end, metadata["version"]))
    elif not data:
        metadata["note"] = EMPTY_FILE
    return ToolResult(
        success=True, output=output, metadata=metadata, model_text=None if shown == output else shown
    )


def _base64_page(data: bytes, start: int, max_bytes: int) -> TextPage:
    # A multiple of three bytes, so that the base64 of the pages can be joined.
    part = data[start : start + max(3, max_bytes // 4 * 3)]
    return TextPage(base64.b64encode(part).decode("ascii"), start + len(part))


def _part_result(
    ctx: ToolContext, data: bytes, cursor: Cursor, metadata: dict[str, Any], found: object
) -> ToolResult:
    """Return UTF-8 *data* from *cursor* on as text, as much as fits.

    For programs, the output is what was *found* in the whole file, unless that is `NOTHING`.
    """
    shown, shown_end = text_page(data, cursor.position, ctx.options.answer_bytes)
    if shown_end < len(data):
        offset = shown.count("\n") + 1 if cursor.position == 0 and shown.endswith("\n") else None
        metadata["note"] = cut_note(len(data) - shown_end, Cursor(shown_end, metadata["version"]), offset)
    elif not data:
        metadata["note"] = EMPTY_FILE
    if found is not NOTHING:
        return ToolResult(success=True, output=found, metadata=metadata, model_text=shown)
    metadata["media_type"] = media_type(metadata["path"], b"", is_text=True)
    output, end = shown, shown_end
    if shown_end < len(data) and ctx.options.data_bytes > ctx.options.answer_bytes:
        output, end = text_page(data, cursor.position, ctx.options.data_bytes)
    if end < len(data):
        metadata |= {"truncated": True, "next_cursor": Cursor(end, metadata["version"]).render()}
        if cursor.position == 0 and output.endswith("\n"):
            metadata["next_offset"] = output.count("\n") + 1
    return ToolResult(
        success=True, output=output, metadata=metadata, model_text=None if end == shown_end else shown
    )


def _read_lines(ctx: ToolContext, args: FileReadArgs) -> ToolResult:
    encoding = args.encoding or ctx.options.default_encoding
    if encoding == "base64" or args.cursor is not None:
        other = "cursor" if args.cursor is not None else "encoding base64"
        raise ToolError("arguments", f"Wrong arguments: 'offset' and 'limit' cannot be combined with {other}")
    offset = args.offset or 1
    info = ctx.workspace.stat(args.path)
    count = WINDOW_LINES if args.limit is None else args.limit
    # More lines than this never fit, even if all are empty.
    count = min(count, ctx.options.answer_bytes // len(numbered_line(1, "")) + 1)
    window = ctx.workspace.read_lines(args.path, start=offset, count=count, encoding=encoding)
    metadata = _metadata(ctx, info, encoding)
    metadata["offset"] = offset
    if args.limit is not None:
        metadata["limit"] = args.limit
    metadata["total_lines"] = window.total_lines
    lines = window.text.split("\n")[: window.count]
    fitting = fit_lines(
        (numbered_line(number, line) for number, line in enumerate(lines, offset)), ctx.options.answer_bytes
    )
    if fitting.kept < len(lines) or fitting.is_cut:
        metadata["truncated"] = True
    after = offset + fitting.kept
    if fitting.kept and after <= window.total_lines:
        metadata["next_offset"] = after
    note = lines_note(
        offset,
        fitting.kept,
        window.total_lines,
        is_line_cut=fitting.is_cut,
        advice=": without offset, it can be read by cursor",
    )
    if note:
        metadata["note"] = note
    return ToolResult(success=True, output=fitting.text, metadata=metadata)
