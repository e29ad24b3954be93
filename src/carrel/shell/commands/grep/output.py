"""Print selected lines with file names, line numbers and context lines."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from carrel.shell.budget import Meter
from carrel.shell.commands.grep.matching import (
    NEWLINE_FOR_NUL,
    Find,
    Span,
    count_lines,
    first_lines,
    last_lines,
    matching_spans,
)

WriteBytes = Callable[[bytes], None]
_SELECTED = b":"
_CONTEXT = b"-"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLayout:
    """What is printed of a line, and how many lines of context."""

    numbers: bool = False
    offsets: bool = False
    find_match: Find | None = None
    """Finder for `-o`: print only the matches."""
    nul_after_name: bool = False
    nul_ends_lines: bool = False
    """Whether NUL and newline are swapped in the buffers."""
    any_bytes: bool = False
    """Whether to print lines that are not UTF-8."""
    before: int = 0
    after: int = 0
    separator: bytes | None = None
    """Printed between lines that are not adjacent."""


class LinePrinter:
    """Prints lines of one file, buffer by buffer."""

    def __init__(
        self, layout: OutputLayout, name: bytes | None, write: WriteBytes, meter: Meter, *, has_printed: bool
    ) -> None:
        """Print with *write*, each line after *name* if given; *has_printed* covers earlier files."""
        self._layout = layout
        self._name = name
        self._write = write
        self._meter = meter
        self._is_plain = name is None and not layout.numbers and not layout.offsets
        self._base = 0
        """Offset of the buffer in the file."""
        self._begin = 0
        """Offset of the new lines in the buffer."""
        self._number = 1
        self._counted = 0
        self._printed_to = -1 if has_printed else None
        """Offset in the file after the last printed line."""
        self._tail_lines = 0
        self._tail = b""
        """Last lines of earlier buffers, kept as context before a match in the next one."""
        self._pending = 0
        self.has_bad_lines = False
        """Whether a line was not printed because it is not UTF-8."""

    @property
    def has_printed(self) -> bool:
        """Whether any line was printed, in this file or before."""
        return self._printed_to is not None

    @property
    def needs_more(self) -> bool:
        """Whether context after the last selected line is still to be printed."""
        return self._pending > 0

    def print(self, buffer: bytes, new: Span, runs: Iterable[Span]) -> None:
        """Print *runs* of lines of a buffer with their context; *new* is the part not seen before."""
        layout = self._layout
        self._begin, end = new
        self._base -= self._begin
        self._counted = at = self._begin
        for start, stop in runs:
            if self._pending:
                at = self._print_after(buffer, (at, start))
            if layout.before:
                self._print_before(buffer, (at, start))
            self._print_run(buffer, (start, stop), _SELECTED)
            self._pending = layout.after
            at = stop
        if self._pending:
            at = self._print_after(buffer, (at, end))
        if layout.before:
            self._keep_tail(buffer, (at, end))
        if layout.numbers:
            self._number += count_lines(buffer, (self._counted, end))
        self._base += end

    def close(self) -> None:
        """Release the context that was kept."""
        self._set_tail(b"")

    def _keep_tail(self, buffer: bytes, run: Span) -> None:
        """Keep the last lines of *run* as context before the next buffer."""
        before = self._layout.before
        count = count_lines(buffer, run)
        begin = run[0] if count <= before else last_lines(buffer, run, before)
        if begin != self._begin:
            self._set_tail(buffer[begin : run[1]], min(count, before))
            return
        with self._meter.holding_memory(2 * (len(self._tail) + run[1] - begin)):
            tail = self._tail + buffer[begin : run[1]]
            count += self._tail_lines
            if count > before:
                tail = tail[first_lines(tail, (0, len(tail)), count - before) :]
            self._set_tail(tail, min(count, before))

    def _set_tail(self, tail: bytes, line_count: int = 0) -> None:
        """Keep *tail*, which has *line_count* lines."""
        self._tail_lines = line_count
        if len(tail) != len(self._tail):
            self._meter.charge_memory(len(tail) - len(self._tail))
        self._tail = tail

    def _print_after(self, buffer: bytes, run: Span) -> int:
        stop = first_lines(buffer, run, self._pending)
        self._pending -= count_lines(buffer, (run[0], stop))
        self._print_run(buffer, (run[0], stop), _CONTEXT)
        return stop

    def _print_before(self, buffer: bytes, run: Span) -> None:
        begin = last_lines(buffer, run, self._layout.before)
        if begin == self._begin and self._tail:
            missing = self._layout.before - count_lines(buffer, (begin, run[1]))
            self._print_tail(last_lines(self._tail, (0, len(self._tail)), missing))
        self._print_run(buffer, (begin, run[1]), _CONTEXT)
        self._set_tail(b"")

    def _print_tail(self, begin: int) -> None:
        """Print context from earlier buffers, with the offsets and numbers it had there."""
        tail = self._tail
        saved = self._base, self._number, self._counted
        self._base += self._begin - len(tail)
        self._number -= count_lines(tail, (0, len(tail)))
        self._counted = 0
        self._print_run(tail, (begin, len(tail)), _CONTEXT)
        self._base, self._number, self._counted = saved

    def _print_run(self, buffer: bytes, run: Span, separator: bytes) -> None:
        start, stop = run
        if start == stop:
            return
        layout = self._layout
        offset = self._base + start
        if layout.separator is not None and self._printed_to not in (None, offset):
            self._write(layout.separator)
        self._printed_to = self._base + stop
        if layout.find_match is not None:
            if separator == _SELECTED:
                self._print_parts(buffer, run, layout.find_match)
            return
        data = buffer[start:stop]
        if layout.nul_ends_lines:
            self._print_lines(buffer, run, separator)
        elif self._is_plain and (layout.any_bytes or _is_text(data)):
            self._write(data)
            if not data.endswith(b"\n"):
                self._write(b"\n")
        else:
            self._print_lines(buffer, run, separator)

    def _print_lines(self, buffer: bytes, run: Span, separator: bytes) -> None:
        number = self._number_at(buffer, run[0])
        offset = self._base + run[0]
        for line in io.BytesIO(buffer[run[0] : run[1]]):
            self._print_line(line.removesuffix(b"\n"), number, offset, separator)
            number += 1
            offset += len(line)

    def _print_parts(self, buffer: bytes, run: Span, find: Find) -> None:
        number = self._number_at(buffer, run[0])
        at = run[0]
        while at < run[1]:
            stop = buffer.find(b"\n", at, run[1]) + 1 or run[1]
            for start, end in matching_spans(find, buffer, (at, stop)):
                self._meter.check()
                self._print_line(buffer[start:end], number, self._base + start, _SELECTED)
            at = stop
            number += 1

    def _number_at(self, buffer: bytes, at: int) -> int:
        if self._layout.numbers:
            self._number += buffer.count(b"\n", self._counted, at)
            self._counted = at
        return self._number

    def _print_line(self, line: bytes, number: int, offset: int, separator: bytes) -> None:
        layout = self._layout
        if not layout.any_bytes and not _is_text(line):
            self.has_bad_lines = True
            return
        parts = []
        if self._name is not None:
            parts += [self._name, b"\0" if layout.nul_after_name else separator]
        if layout.numbers:
            parts += [b"%d" % number, separator]
        if layout.offsets:
            parts += [b"%d" % offset, separator]
        if layout.nul_ends_lines:
            parts += [line.translate(NEWLINE_FOR_NUL), b"\0"]
        else:
            parts += [line, b"\n"]
        for part in parts:
            self._write(part)


def _is_text(data: bytes) -> bool:
    """Whether *data* is UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
