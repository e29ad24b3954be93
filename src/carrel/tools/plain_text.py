"""The text of a file as it stands, from its beginning or up to its end."""

from __future__ import annotations

from typing import NamedTuple

from carrel.errors import TextError, ToolError
from carrel.tools.answer import about
from carrel.tools.context import Context
from carrel.tools.cut import cut_text
from carrel.tools.encoding import is_binary
from carrel.tools.lines import lines_of
from carrel.tools.read_limit import readable
from carrel.tools.result import ToolResult
from carrel.values import FileInfo
from carrel.workspace import text as texts


class Part(NamedTuple):
    """As much of a text as there was room for."""

    info: FileInfo
    text: str
    is_cut: bool


def plain_text(ctx: Context, path: str, *, head: int | None, tail: int | None) -> ToolResult:
    """The whole text, its first *head* or its last *tail* lines; no more than an answer may hold.

    Raises:
        ToolError: Both are asked for.
        TextError: The file is no text.
    """
    if head is not None and tail is not None:
        raise ToolError("arguments", "Wrong arguments: 'head' and 'tail' cannot be given together")
    most = ctx.options.answer_bytes
    part = beginning(ctx, path, most, head) if tail is None else ending(ctx, path, most, tail)
    metadata = about(ctx, part.info)
    if not part.is_cut:
        return ToolResult(success=True, output=part.text, metadata=metadata)
    metadata["truncated"] = True
    size = part.info.size_bytes
    if tail is None:
        output = f"{part.text}\n[Cut: the file has {size} bytes. Use tail to read its last lines]"
    else:
        output = f"[Cut: the file has {size} bytes. Use head to read its first lines]\n{part.text}"
    return ToolResult(success=True, output=output, metadata=metadata)


def beginning(ctx: Context, path: str, most: int, lines: int | None = None) -> Part:
    """The text of a file, or its first *lines*, as far as *most* bytes hold it."""
    info, data = ctx.workspace.read_with_info(path, length=readable(ctx, most))
    _require_text(data, path)
    is_cut = len(data) < info.size_bytes
    if is_cut:
        data = data[: cut_text(data, len(data) - 1)]
    if lines is not None and data.count(b"\n") >= lines:
        data, is_cut = b"".join(lines_of(data)[:lines]), False
    return Part(info, _decoded(ctx, data, path), is_cut)


def ending(ctx: Context, path: str, most: int, lines: int) -> Part:
    """The last *lines* of a file, as far as *most* bytes hold them."""
    most = readable(ctx, most)
    start = max(0, ctx.workspace.stat(path).size_bytes - most)
    info, data = ctx.workspace.read_with_info(path, offset=start, length=most)
    _require_text(data, path)
    found = lines_of(data)
    if start and len(found) <= lines:
        # The first of them may have begun before what was read.
        found = found[1:] or [_whole_characters(data)]
        return Part(info, _decoded(ctx, b"".join(found), path), True)
    return Part(info, _decoded(ctx, b"".join(found[-lines:]), path), False)


def _whole_characters(data: bytes) -> bytes:
    """The data without the rest of a character that began before them."""
    start = 0
    while start < min(4, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]


def _require_text(data: bytes, path: str) -> None:
    if is_binary(data):
        raise TextError(f"{path!r} is not a text file", path=path)


def _decoded(ctx: Context, data: bytes, path: str) -> str:
    return texts.decode(data, ctx.options.default_encoding, path)
