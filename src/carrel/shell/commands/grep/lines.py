"""Select the lines of one file, text or binary, up to a maximum count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from carrel.shell.budget import Meter
from carrel.shell.commands.grep.matching import (
    NEWLINE_FOR_NUL,
    Find,
    LiteralFinder,
    Span,
    count_lines,
    first_lines,
    selected,
    unselected,
    windows,
)


class BinaryFiles(StrEnum):
    """What is done about files that hold NUL bytes."""

    TELL = "binary"
    """Tell that they match."""
    TEXT = "text"
    """Treat them as any other."""
    SKIP = "without-match"
    """Treat them as if they did not match."""


class Buffer(NamedTuple):
    """Part of a file."""

    data: bytes
    begin: int
    """Where its whole lines begin."""
    end: int
    """Where they end."""
    runs: Iterator[Span]
    """The lines that are selected."""
    is_binary: bool
    """Whether its lines are not to be shown."""


class LineSearch:
    """Selects lines, of one file after the other."""

    def __init__(
        self, find: Find, meter: Meter, *, invert: bool, binary: BinaryFiles, nul_lines: bool
    ) -> None:
        """Select the lines in which *find* finds something, or with *invert* the others."""
        self._find = find
        self._meter = meter
        self._invert = invert
        self._binary = BinaryFiles.TEXT if nul_lines else binary
        self._nul_lines = nul_lines

    def is_without_match(self, chunks: Iterable[bytes]) -> bool:
        """Whether a file that came at once holds nothing to be selected; most do not, so it is quick."""
        if type(chunks) is not tuple or self._invert or self._nul_lines:
            return False
        (content,) = chunks
        return self._find(content, 0, len(content)) is None and b"\0" not in content

    def buffers(self, chunks: Iterator[bytes]) -> Iterator[Buffer]:
        """The buffers of a file, with the lines that are selected."""
        if self._nul_lines:
            chunks = (chunk.translate(NEWLINE_FOR_NUL) for chunk in chunks)
        return self._search(chunks)

    def _search(self, chunks: Iterable[bytes]) -> Iterator[Buffer]:
        is_binary = False
        for window, begin, end in windows(chunks, self._meter):
            buffer = window
            if self._binary is not BinaryFiles.TEXT:
                is_binary = is_binary or b"\0" in buffer
            if is_binary:
                if self._binary is BinaryFiles.SKIP:
                    return
                # Lines of a binary file end with a NUL too, lest they be endless.
                buffer = buffer.replace(b"\0", b"\n")
            del window
            runs = selected(self._find, buffer, begin, end)
            if self._invert:
                runs = unselected(runs, begin, end)
            yield Buffer(buffer, begin, end, runs, is_binary)

    def count(self, buffer: Buffer) -> int:
        """How many lines of *buffer* are selected."""
        if not isinstance(self._find, LiteralFinder):
            return sum(count_lines(buffer.data, run) for run in buffer.runs)
        whole = buffer.begin, buffer.end
        found = self._find.count_lines(buffer.data, *whole)
        return count_lines(buffer.data, whole) - found if self._invert else found


class MatchLimit:
    """Lets a number of lines pass."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.count = 0

    @property
    def is_reached(self) -> bool:
        """Whether no more may pass."""
        return self._most is not None and self.count >= self._most

    def cut(self, buffer: bytes, runs: Iterable[Span]) -> Iterator[Span]:
        """The *runs* of *buffer* that may pass."""
        if self._most is None:
            for run in runs:
                self.count = 1
                yield run
            return
        for run in runs:
            if self.is_reached:
                return
            stop = first_lines(buffer, run, self._most - self.count)
            self.count += count_lines(buffer, (run[0], stop))
            yield run[0], stop
