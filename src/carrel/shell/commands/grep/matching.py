"""Find matching lines in large buffers at once instead of line by line."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat

from carrel.shell.budget import Meter
from carrel.shell.text.quoting import encode
from carrel.shell.text.records import LongLine
from carrel.shell.text.regex import (
    MAX_PATTERN_CHARACTERS,
    TOO_BIG,
    WORD,
    RegexError,
    Syntax,
    compile_regex,
    translate,
)

Span = tuple[int, int]
"""Where something begins and ends."""
Find = Callable[[bytes, int, int], Span | None]
"""Finds the first match in a buffer between two offsets."""

_STEPS = 2**27
"""Steps that RE2 may take between two looks at the budget, if a line is not longer than that."""
_LEAST_BYTES = 2**12
_NEAR_BYTES = 2**13
_DENSE_LINES = 64
_DENSE_BYTES = 2**14
"""So many lines that match within so many bytes are many."""
NEWLINE_FOR_NUL = bytes.maketrans(b"\0\n", b"\n\0")
"""Exchanges the two, so that lines which end with a NUL are lines, and back again."""


class PatternKind(StrEnum):
    """How patterns are written."""

    BASIC = "G"
    EXTENDED = "E"
    FIXED = "F"
    PERL = "P"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """What to look for: lines that match any of *texts*."""

    texts: Sequence[str]
    kind: PatternKind = PatternKind.BASIC
    ignore_case: bool = False
    whole_words: bool = False
    whole_lines: bool = False

    def compile(self, warn: Callable[[str], None], check: Callable[[], None]) -> Find:
        """A function that finds matches; *warn* is told of what is odd, and *check* may stop it.

        Raises:
            RegexError: A pattern is wrong.
        """
        expressions: list[str] = []
        literals: list[str | None] = []
        size = 0
        for text in dict.fromkeys(self.texts):
            check()
            size += len(text)
            if size > MAX_PATTERN_CHARACTERS:
                raise RegexError(TOO_BIG)
            expression, literal = self._read(text, warn)
            expressions.append(expression)
            literals.append(literal)
        if not expressions:
            return _find_nothing
        bare = not (self.whole_words or self.whole_lines)
        if bare and "" in literals:
            return find_anything
        literal = literals[0] if len(literals) == 1 and not self.ignore_case else None
        if not literal:
            return self._regex_finder(expressions, check)
        if bare:
            return LiteralFinder(encode(literal), _late(lambda: self._regex_finder(expressions, check)))
        return _filtered(encode(literal), self._regex_finder(expressions, check))

    def _read(self, text: str, warn: Callable[[str], None]) -> tuple[str, str | None]:
        """A pattern in the words of RE2, and as plain text if it is that."""
        if self.kind is PatternKind.PERL:
            return text, None
        if self.kind is PatternKind.FIXED:
            # Backslashes make every character of it stand for itself.
            text = "".join(f"\\{c}" if c in "\\.[*^$" else c for c in text)
        syntax = Syntax.EXTENDED if self.kind is PatternKind.EXTENDED else Syntax.BASIC
        translation = translate(text, syntax)
        for warning in translation.warnings:
            warn(warning)
        return translation.text, translation.literal

    def _regex_finder(self, expressions: list[str], check: Callable[[], None]) -> Find:
        joined = "|".join(expressions) if len(expressions) == 1 else "|".join(f"(?:{e})" for e in expressions)
        group = 0
        if self.whole_lines:
            joined = f"^(?:{joined})$"
        elif self.whole_words:
            word = "0-9A-Za-z_" if self.kind is PatternKind.PERL else WORD
            joined = f"(?:^|[^{word}])({joined})(?:$|[^{word}])"
            group = 1
        regex = compile_regex(
            joined, ignore_case=self.ignore_case, by_line=True, longest=self.kind is not PatternKind.PERL
        )
        search = regex.search
        # RE2 may take as many steps as its program is long for each byte, and nothing stops it.
        most = max(_LEAST_BYTES, _STEPS // regex.programsize)

        def find(buffer: bytes, at: int, end: int) -> Span | None:
            while end - at > most:
                stop = buffer.find(b"\n", at + most, end) + 1 or end
                found = search(buffer, at, stop)
                # An empty match behind the last newline belongs to the next line.
                if found is not None and (found.start() < stop or stop == end):
                    return found.span(group)
                if stop == end:
                    return None
                check()
                at = stop
            found = search(buffer, at, end)
            return None if found is None else found.span(group)

        return find


class LiteralFinder:
    """Finds a plain text."""

    __slots__ = ("_far", "_size", "text")

    def __init__(self, text: bytes, far: Find) -> None:
        """Find *text*, or beyond the next few KiB have it found by *far*, which is faster there."""
        self.text = text
        self._far = far
        self._size = len(text)

    def __call__(self, buffer: bytes, at: int, end: int) -> Span | None:
        near = at + _NEAR_BYTES
        start = buffer.find(self.text, at, end if near >= end else near + self._size - 1)
        if start >= 0:
            return start, start + self._size
        return None if near >= end else self._far(buffer, near, end)

    def count_lines(self, buffer: bytes, start: int, end: int) -> int:
        """How many of the lines between *start* and *end* hold the text."""
        between = buffer[start:end].split(self.text)[1:]
        if not between:
            return 0
        between.pop()
        # Two matches are on one line unless a newline is between them.
        return 1 + sum(map(bytes.__contains__, between, repeat(b"\n")))


def _late(make: Callable[[], Find]) -> Find:
    """What *make* gives, made when it is first needed."""
    made: list[Find] = []

    def find(buffer: bytes, at: int, end: int) -> Span | None:
        if not made:
            made.append(make())
        return made[0](buffer, at, end)

    return find


def _filtered(literal: bytes, find: Find) -> Find:
    """Asks *find* only about lines that hold *literal*, which is found faster."""

    def find_filtered(buffer: bytes, at: int, end: int) -> Span | None:
        while (hit := buffer.find(literal, at, end)) >= 0:
            start = buffer.rfind(b"\n", at, hit) + 1 or at
            at = buffer.find(b"\n", hit, end) + 1 or end
            if span := find(buffer, start, at):
                return span
        return None

    return find_filtered


def _find_nothing(buffer: bytes, at: int, end: int) -> Span | None:
    return None


def find_anything(buffer: bytes, at: int, end: int) -> Span | None:
    """Match everywhere, as the empty pattern does."""
    return at, at


def selected(find: Find, buffer: bytes, begin: int, end: int) -> Iterator[Span]:
    """Runs of lines that match, among the whole lines between *begin* and *end*."""
    if find is find_anything:
        yield begin, end
        return
    at, count = begin, 0
    while at < end:
        span = find(buffer, at, end)
        # After the last newline there is no line.
        if span is None or (span[0] == end and buffer[end - 1] == 10):
            return
        start = buffer.rfind(b"\n", at, span[0]) + 1 or at
        at = buffer.find(b"\n", span[0], end) + 1 or end
        yield start, at
        count += 1
        if count == _DENSE_LINES and at - begin < _DENSE_BYTES and isinstance(find, LiteralFinder):
            yield from _dense(find.text, buffer, at, end)
            return


def _dense(text: bytes, buffer: bytes, at: int, end: int) -> Iterator[Span]:
    """Runs of lines that hold *text*, found line by line, which is faster if most lines do."""
    start = -1
    for line in io.BytesIO(buffer[at:end]):
        if text in line:
            if start < 0:
                start = at
        elif start >= 0:
            yield start, at
            start = -1
        at += len(line)
    if start >= 0:
        yield start, at


def unselected(runs: Iterable[Span], begin: int, end: int) -> Iterator[Span]:
    """The runs of lines between *begin* and *end* that are in none of *runs*."""
    at = begin
    for start, stop in runs:
        if start > at:
            yield at, start
        at = stop
    if at < end:
        yield at, end


def matching_spans(find: Find, buffer: bytes, run: Span) -> Iterator[Span]:
    """The parts of the lines of *run* that match; empty ones are left out."""
    at, end = run
    if buffer.endswith(b"\n", at, end):
        end -= 1
    while at <= end:
        span = find(buffer, at, end)
        if span is None:
            return
        if span[1] > span[0]:
            yield span
        at = max(span[1], at + 1)


def count_lines(buffer: bytes, run: Span) -> int:
    """How many lines *run* has; the last one may lack its newline."""
    start, stop = run
    return buffer.count(b"\n", start, stop) + (stop > start and buffer[stop - 1] != 10)


def first_lines(buffer: bytes, run: Span, count: int) -> int:
    """Where the first *count* lines of *run* end."""
    at, stop = run
    for _ in range(count):
        if at >= stop:
            break
        at = buffer.find(b"\n", at, stop) + 1 or stop
    return at


def last_lines(buffer: bytes, run: Span, count: int) -> int:
    """Where the last *count* lines of *run* begin."""
    start, at = run
    for _ in range(count):
        if at <= start:
            break
        at = buffer.rfind(b"\n", start, at - 1) + 1 or start
    return at


def windows(chunks: Iterable[bytes], meter: Meter) -> Iterator[tuple[bytes, int, int]]:
    """Buffers, and between which offsets each holds whole lines that were not given before."""
    long = LongLine(meter, b"")
    try:
        for chunk in chunks:
            last = chunk.rfind(b"\n") + 1
            first = 0
            if long.size and last:
                first = chunk.find(b"\n") + 1
                long.add(chunk[:first])
                size = long.size
                yield long.take(), 0, size
                long.release()
            if first < last:
                yield chunk, first, last
            if last < len(chunk):
                long.add(chunk[last:])
        if long.size:
            size = long.size
            yield long.take(), 0, size
    finally:
        long.release()
