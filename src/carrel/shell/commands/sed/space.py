"""Input lines, and the pattern and hold spaces of `sed`."""

from __future__ import annotations

from typing import Protocol

from carrel.shell.budget import RECORD_BYTES


class LineSource(Protocol):
    """Source of input lines."""

    number: int
    """Number of the last line returned."""
    name: str
    """Name of the file of that line."""

    def next(self) -> tuple[bytes, bool] | None:
        """Return the next line without its terminator, and whether it had one; `None` at the end."""
        ...

    def is_last(self) -> bool:
        """Whether there are no more lines."""
        ...


class Space:
    """Text that grows by lines, which are joined only when the text is read."""

    def __init__(self) -> None:
        self._lines = [b""]
        self.size = 0
        """Memory that the lines take, in bytes."""
        self.has_newline = True
        """Whether the text is followed by a newline; the last line of a file may lack it."""

    @property
    def text(self) -> bytes:
        """The whole text."""
        if len(self._lines) > 1:
            self._lines = [b"\n".join(self._lines)]
            self.size = len(self._lines[0])
        return self._lines[0]

    @text.setter
    def text(self, text: bytes) -> None:
        self._lines = [text]
        self.size = len(text)

    def copy(self, other: Space) -> None:
        """Replace the content with that of *other*."""
        self.text, self.has_newline = other.text, other.has_newline

    def append_space(self, other: Space) -> None:
        """Append the content of *other*."""
        self.append(other.text)
        self.has_newline = other.has_newline

    def append(self, line: bytes) -> None:
        """Append a line."""
        self._lines.append(line)
        self.size += len(line) + RECORD_BYTES
