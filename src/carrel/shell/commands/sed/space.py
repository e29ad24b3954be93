"""Input lines, and the pattern and hold spaces of `sed`."""

from __future__ import annotations

from typing import Protocol

from carrel.shell.budget import RECORD_BYTES


class LineSource(Protocol):
    """Where lines come from."""

    number: int
    """Of the line that was given last."""
    name: str
    """Of its file."""

    def next(self) -> tuple[bytes, bool] | None:
        """The next line without its end, and whether it had one."""
        ...

    def is_last(self) -> bool:
        """Whether there is no next line."""
        ...


class Space:
    """Text that grows by lines; they are joined when somebody looks."""

    def __init__(self) -> None:
        self._lines = [b""]
        self.size = 0
        """Bytes of memory that it takes."""
        self.has_end = True
        """Whether a newline follows it; the last line of a file may lack it."""

    @property
    def text(self) -> bytes:
        """All of it."""
        if len(self._lines) > 1:
            self._lines = [b"\n".join(self._lines)]
            self.size = len(self._lines[0])
        return self._lines[0]

    @text.setter
    def text(self, text: bytes) -> None:
        self._lines = [text]
        self.size = len(text)

    def copy(self, other: Space) -> None:
        """Become the same as *other*."""
        self.text, self.has_end = other.text, other.has_end

    def add_all(self, other: Space) -> None:
        """Add what *other* holds."""
        self.add(other.text)
        self.has_end = other.has_end

    def add(self, line: bytes) -> None:
        """Add a line."""
        self._lines.append(line)
        self.size += len(line) + RECORD_BYTES
