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
    selected_runs,
    unselected_runs,
    windows,
)


class BinaryFiles(StrEnum):
    """Treatment of files with NUL bytes."""

    REPORT = "binary"
    """Report only that they match."""
    TEXT = "text"
    """Treat them as text."""
    SKIP = "without-match"
    """Treat them as if they did not match."""


class Buffer(NamedTuple):
    """Part of a file with its selected lines."""

    data: bytes
    begin: int
    """Start of the lines that are new in this buffer."""
    end: int
    """End of those lines."""
    runs: Iterator[Span]
    """Runs of selected lines."""
    is_binary: bool
    """Whether the lines must not be printed."""


class LineSearch:
    """Selects lines, one file after another."""

    def __init__(
        self, find: Find, meter: Meter, *, invert: bool, binary: BinaryFiles, nul_lines: bool
    ) -> None:
        """Select the lines in which *find* finds a match, or with *invert* the others."""
        self._find = find
        self._meter = meter
        self._invert = invert
        self._binary = BinaryFiles.TEXT if nul_lines else binary
        self._nul_lines = nul_lines

    def is_without_match(self, chunks: Iterable[bytes]) -> bool:
        """Whether a file read in one chunk has no selected line; a fast path, since most files have none."""
        if type(chunks) is not tuple or self._invert or self._nul_lines:
            return False
        (content,) = chunks
        return self._find(content, 0, len(content)) is None and b"\0" not in content

    def buffers(self, chunks: Iterator[bytes]) -> Iterator[Buffer]:
        """Yield the buffers of a file with their selected lines."""
        if self._nul_lines:
            chunks = (chunk.translate(NEWLINE_FOR_NUL) for chunk in chunks)
        return self._search_windows(chunks)

    def _search_windows(self, chunks: Iterable[bytes]) -> Iterator[Buffer]:
        is_binary = False
        for window, begin, end in windows(chunks, self._meter):
            buffer = window
            if self._binary is not BinaryFiles.TEXT:
                is_binary = is_binary or b"\0" in buffer
            if is_binary:
                if self._binary is BinaryFiles.SKIP:
                    return
                # In a binary file a NUL ends a line too, so that lines stay short.
                buffer = buffer.replace(b"\0", b"\n")
            del window
            runs = selected_runs(self._find, buffer, begin, end)
            if self._invert:
                runs = unselected_runs(runs, begin, end)
            yield Buffer(buffer, begin, end, runs, is_binary)

    def count(self, buffer: Buffer) -> int:
        """Count the selected lines of *buffer*."""
        if not isinstance(self._find, LiteralFinder):
            return sum(count_lines(buffer.data, run) for run in buffer.runs)
        whole = buffer.begin, buffer.end
        found = self._find.count_lines(buffer.data, *whole)
        return count_lines(buffer.data, whole) - found if self._invert else found


class MatchLimit:
    """Limits the number of selected lines."""

    def __init__(self, max_count: int | None) -> None:
        self._max_count = max_count
        self.count = 0

    @property
    def is_reached(self) -> bool:
        """Whether the limit is reached."""
        return self._max_count is not None and self.count >= self._max_count

    def limit(self, buffer: bytes, runs: Iterable[Span]) -> Iterator[Span]:
        """Yield *runs* of *buffer* up to the limit."""
        if self._max_count is None:
            for run in runs:
                self.count = 1
                yield run
            return
        for run in runs:
            if self.is_reached:
                return
            stop = first_lines(buffer, run, self._max_count - self.count)
            self.count += count_lines(buffer, (run[0], stop))
            yield run[0], stop
