"""One page of a file as deepagents reads it: lines of text, or all bytes of anything else."""

from __future__ import annotations

import base64
from pathlib import PurePosixPath

from deepagents.backends.protocol import FileData, ReadResult

from carrel.adapters.deepagents.errors import message_about
from carrel.errors import TextError
from carrel.tools.results.lines import fit_lines
from carrel.values import LineWindow
from carrel.workspace.workspace import Workspace

TEXT_BYTES = 500 * 1024
"""Maximum size of a page of text."""
BINARY_BYTES = 500 * 1024
"""Maximum size of a binary file that is returned."""
_CUT = "\n[This line is cut here, because it is longer than a page]"
_MEDIA = frozenset(
    {
        *(".png", ".jpeg", ".jpg", ".webp", ".gif", ".heic", ".heif"),
        *(".mp4", ".mpeg", ".mov", ".avi", ".flv", ".mpg", ".webm", ".wmv", ".3gpp", ".mkv"),
        *(".wav", ".mp3", ".aiff", ".aac", ".ogg", ".flac"),
        *(".pdf", ".ppt", ".pptx"),
    }
)
"""Suffixes that deepagents treats as media or documents, whatever the content."""


def read_page(workspace: Workspace, path: str, shown: str, *, offset: int, limit: int) -> ReadResult:
    """Lines *offset* to *offset* + *limit* - 1, counted from 0; *shown* is the path in error messages.

    Raises:
        CarrelError: The file cannot be read.
    """
    if PurePosixPath(path).suffix.lower() in _MEDIA:
        return _binary(workspace, path, shown)
    offset, limit = max(0, offset), max(0, limit)
    try:
        window = workspace.read_lines(path, start=offset + 1, count=limit)
    except TextError:
        return _binary(workspace, path, shown)
    if window.total_lines == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"))
    if limit == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
    if window.count == 0:
        return ReadResult(error=f"Line offset {offset} exceeds file length ({window.total_lines} lines)")
    return _text(window)


def _binary(workspace: Workspace, path: str, shown: str) -> ReadResult:
    info, data = workspace.read_with_info(path, length=BINARY_BYTES + 1)
    if info.size_bytes > BINARY_BYTES:
        return ReadResult(
            error=message_about(shown, f"Binary file exceeds maximum preview size of {BINARY_BYTES} bytes")
        )
    return ReadResult(file_data=FileData(content=base64.b64encode(data).decode("ascii"), encoding="base64"))


def _text(window: LineWindow) -> ReadResult:
    text = window.text.replace("\r\n", "\n")
    lines = text.removesuffix("\n").split("\n")
    kept = fit_lines(lines, TEXT_BYTES)
    last = window.start + kept.kept - 1
    is_end = last == window.total_lines
    # The end of the file keeps its last newline, since an edit must match it exactly.
    content = text if is_end and not kept.is_cut else kept.text
    return ReadResult(
        file_data=FileData(content=content + (_CUT if kept.is_cut else ""), encoding="utf-8"),
        total_lines=window.total_lines,
        start_line=window.start,
        end_line=last,
        next_offset=None if is_end else last,
    )
