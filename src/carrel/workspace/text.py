"""Text at the edge: encodings by name, and windows of lines."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Iterable

from carrel.errors import LimitError, TextError
from carrel.values import LineWindow

_CODECS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "us-ascii": "ascii",
    "latin-1": "latin-1",
    "latin1": "latin-1",
    "iso-8859-1": "latin-1",
    "base64": "base64",
}

_BLOCK_BYTES = 2**16
"""Number of bytes in which line ends are counted at once."""


def decode(data: bytes, encoding: str, path: str) -> str:
    """Decode *data*; with `base64`, encode any bytes as base64.

    Raises:
        TextError: The encoding is not supported, or the bytes are invalid in it.
    """
    codec = _codec(encoding)
    if codec == "base64":
        return base64.b64encode(data).decode("ascii")
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is {data[error.start]:#04x}"
    raise TextError(
        f"unable to decode {path!r} with encoding {encoding!r}: {problem}; read it as bytes or as base64",
        path=path,
    )


def encode(text: str, encoding: str, path: str) -> bytes:
    """Encode *text*; with `base64`, decode it from base64.

    Raises:
        TextError: The encoding is not supported, or the text cannot be represented in it.
    """
    codec = _codec(encoding)
    try:
        return base64.b64decode(text, validate=True) if codec == "base64" else text.encode(codec)
    except (UnicodeEncodeError, binascii.Error, ValueError) as error:
        problem = f"character {error.start}" if isinstance(error, UnicodeEncodeError) else "not base64"
    raise TextError(f"unable to encode text for {path!r} as {encoding!r}: {problem}", path=path)


def _codec(encoding: str) -> str:
    codec = _CODECS.get(str(encoding).lower())
    if codec is None:
        raise TextError(f"unknown encoding {encoding!r}; use one of utf-8, ascii, latin-1, base64")
    return codec


def line_window(
    chunks: Iterable[bytes],
    *,
    start: int,
    count: int | None,
    encoding: str,
    limit: int | None,
    path: str,
) -> LineWindow:
    """Return *count* lines from line *start* of a content that need not fit in memory."""
    if start < 1 or (count is not None and count < 0):
        raise ValueError(f"a window starts at line 1 and has no negative size: {start}, {count}")
    window = _Window(start, sys.maxsize if count is None else start + count)
    max_bytes = sys.maxsize if limit is None else limit
    for chunk in chunks:
        window.take(chunk)
        if window.size > max_bytes:
            raise LimitError(
                "read_bytes",
                limit=max_bytes,
                asked=window.size,
                message=f"the requested lines of {path!r} exceed {max_bytes} bytes, the limit of a read",
                path=path,
            )
    text = decode(b"".join(window.pieces), encoding, path)
    total = window.line - 1 + window.open_line
    last = min(window.end - 1, total)
    return LineWindow(
        text=text,
        start=start,
        count=max(0, last - start + 1),
        size_bytes=window.size,
        total_lines=total,
        next_start=last + 1 if start <= last < total else None,
    )


class _Window:
    """Collects the lines from *start* to before *end*."""

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.line = 1
        """Number of the line of the next byte."""
        self.open_line = False
        """Whether that line has bytes already."""
        self.pieces: list[bytes] = []
        self.size = 0

    def take(self, chunk: bytes) -> None:
        first = self._skip_to(self.start, chunk, 0)
        last = self._skip_to(self.end, chunk, first)
        if first < last:
            self.pieces.append(chunk[first:last])
            self.size += last - first
        self.line += chunk.count(b"\n", last)
        self.open_line = not chunk.endswith(b"\n")

    def _skip_to(self, line: int, chunk: bytes, position: int) -> int:
        """Skip to the first byte of *line*, or to the end of *chunk*; return the position."""
        newlines = chunk.count(b"\n", position)
        if self.line + newlines < line:
            self.line += newlines
            return len(chunk)
        while self.line < line:
            position = chunk.index(b"\n", position) + 1
            self.line += 1
        return position


def line_start(content: bytes, count: int) -> int:
    """Return the offset after the first *count* lines; the end, if there are fewer."""
    at = 0
    while count and at < len(content) and (ends := content.count(b"\n", at, at + _BLOCK_BYTES)) < count:
        at, count = at + _BLOCK_BYTES, count - ends
    for _ in range(count):
        end = content.find(b"\n", at)
        if end < 0:
            return len(content)
        at = end + 1
    return at


def line_count(content: bytes) -> int:
    """Count the lines; only a newline ends one, and the last need not have one."""
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
