"""`file_read`: read a file, whole or by lines."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import ToolError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.encoding import Encoding, decode_content
from carrel.tools.core.pagination import Cursor, NextCursor, cut_text
from carrel.tools.core.schema import Param
from carrel.tools.operations.reading import is_small_file, max_readable_bytes, require_size
from carrel.tools.results.lines import fit_lines, numbered_line
from carrel.tools.results.media import file_suffix, image_size, media_type
from carrel.tools.results.structured_data import NOTHING, YAML_SUFFIXES, parse_data
from carrel.values import MIB, FileInfo, ToolResult

FILE_READ_NOTES = (
    "JSON and YAML files are returned parsed, binary files as base64 with their media type. With offset or"
    " limit, lines are numbered. A long result is truncated: continue with next_offset or next_cursor from"
    " its metadata."
)
QUICK_BYTES = 2**16
"""Files up to this size are read on the event loop."""
QUICK_YAML_BYTES = 2**9
"""The same for YAML, which takes far longer to parse than to read."""
_UTF8_COMPATIBLE = ("utf-8", "ascii")
"""Encodings whose bytes are UTF-8 already."""
_CHARACTER_BYTES = 4
"""Longest UTF-8 character."""
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
    """Read the file: parsed, as text, as numbered lines or as base64."""
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
        return _base64_result(ctx, data, cursor, metadata)
    if cursor.position == 0 and len(data) <= ctx.options.answer_bytes:
        found = parse_data(text, metadata["file_type"])
        if found is not NOTHING:
            return ToolResult(success=True, output=found, metadata=metadata)
    if encoding not in _UTF8_COMPATIBLE:
        data = text.encode("utf-8", "surrogatepass")
    return _text_result(ctx, data, cursor, metadata)


def _metadata(ctx: ToolContext, info: FileInfo, encoding: str) -> dict[str, Any]:
    return {
        "path": ctx.display_path(info.path),
        "size_bytes": info.size_bytes,
        "encoding": encoding,
        "file_type": file_suffix(info.path),
        "version": info.version,
    }


def _base64_result(ctx: ToolContext, data: bytes, cursor: Cursor, metadata: dict[str, Any]) -> ToolResult:
    metadata["media_type"] = media_type(metadata["path"], data, is_text=False)
    if (size := image_size(data)) is not None:
        metadata |= {"width": size.width, "height": size.height}
    # A multiple of three bytes, so that the base64 of the pages can be joined.
    page_bytes = max(3, ctx.options.answer_bytes // 4 * 3)
    part = data[cursor.position : cursor.position + page_bytes]
    end = cursor.position + len(part)
    if end < len(data):
        metadata |= {"truncated": True, "next_cursor": Cursor(end, metadata["version"]).render()}
    return ToolResult(success=True, output=base64.b64encode(part).decode("ascii"), metadata=metadata)


def _text_result(ctx: ToolContext, data: bytes, cursor: Cursor, metadata: dict[str, Any]) -> ToolResult:
    """Return UTF-8 *data* from *cursor* on as text; only the part that fits is copied."""
    metadata["media_type"] = media_type(metadata["path"], b"", is_text=True)
    page_bytes = ctx.options.answer_bytes
    window = data[cursor.position : cursor.position + page_bytes + _CHARACTER_BYTES]
    size = cut_text(window, page_bytes)
    part = window[:size].decode("utf-8", "replace")
    end = cursor.position + size
    if end < len(data):
        metadata |= {"truncated": True, "next_cursor": Cursor(end, metadata["version"]).render()}
        if cursor.position == 0 and part.endswith("\n"):
            metadata["next_offset"] = part.count("\n") + 1
    return ToolResult(success=True, output=part, metadata=metadata)


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
    return ToolResult(success=True, output=fitting.text, metadata=metadata)
