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
"""Start and end offsets."""
Find = Callable[[bytes, int, int], Span | None]
"""Finds the first match in a buffer between two offsets."""

_STEPS = 2**27
"""Steps that RE2 may take between two checks of the meter, except in a longer line."""
_MIN_BYTES = 2**12
_NEAR_BYTES = 2**13
_DENSE_LINES = 64
_DENSE_BYTES = 2**14
"""Number of matching lines within `_DENSE_BYTES` from which lines are tested one by one."""
NEWLINE_FOR_NUL = bytes.maketrans(b"\0\n", b"\n\0")
"""Swaps NUL and newline, which turns NUL-terminated lines into ordinary ones, and back."""


class PatternKind(StrEnum):
    """Syntax of the patterns."""

    BASIC = "G"
    EXTENDED = "E"
    FIXED = "F"
    PERL = "P"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patterns:
    """Patterns to search for: a line matches if any of *texts* does."""

    texts: Sequence[str]
    kind: PatternKind = PatternKind.BASIC
    ignore_case: bool = False
    whole_words: bool = False
    whole_lines: bool = False

    def compile(self, warn: Callable[[str], None], check: Callable[[], None]) -> Find:
        """Compile the patterns into a finder; *warn* receives warnings, *check* may stop the work.

        Raises:
            RegexError: A pattern is invalid.
        """
        expressions: list[str] = []
        literals: list[str | None] = []
        size = 0
        for text in dict.fromkeys(self.texts):
            check()
            size += len(text)
            if size > MAX_PATTERN_CHARACTERS:
                raise RegexError(TOO_BIG)
            expression, literal = self._translate(text, warn)
            expressions.append(expression)
            literals.append(literal)
        if not expressions:
            return _find_nothing
        is_unanchored = not (self.whole_words or self.whole_lines)
        if is_unanchored and "" in literals:
            return find_anything
        literal = literals[0] if len(literals) == 1 and not self.ignore_case else None
        if not literal:
            return self._regex_finder(expressions, check)
        if is_unanchored:
            return LiteralFinder(encode(literal), _lazy(lambda: self._regex_finder(expressions, check)))
        return _prefiltered(encode(literal), self._regex_finder(expressions, check))

    def _translate(self, text: str, warn: Callable[[str], None]) -> tuple[str, str | None]:
        """Translate a pattern to RE2, and return its literal text too if it has no operators."""
        if self.kind is PatternKind.PERL:
            return text, None
        if self.kind is PatternKind.FIXED:
            # Backslashes make every special character literal.
            text = "".join(f"\\{c}" if c in "\\.[*^$" else c for c in text)
        syntax = Syntax.EXTENDED if self.kind is PatternKind.EXTENDED else Syntax.BASIC
        translation = translate(text, syntax)
        for warning in translation.warnings:
            warn(warning)
        return translation.text, translation.literal

    def _regex_finder(self, expressions: list[str], check: Callable[[], None]) -> Find:
        expression = expressions[0] if len(expressions) == 1 else "|".join(f"(?:{e})" for e in expressions)
        group = 0
        if self.whole_lines:
            expression = f"^(?:{expression})$"
        elif self.whole_words:
            word = "0-9A-Za-z_" if self.kind is PatternKind.PERL else WORD
            expression = f"(?:^|[^{word}])({expression})(?:$|[^{word}])"
            group = 1
        regex = compile_regex(
            expression, ignore_case=self.ignore_case, by_line=True, longest=self.kind is not PatternKind.PERL
        )
        search = regex.search
        # RE2 cannot be interrupted, and may take as many steps per byte as its program has instructions.
        max_bytes = max(_MIN_BYTES, _STEPS // regex.programsize)

        def find(buffer: bytes, at: int, end: int) -> Span | None:
            while end - at > max_bytes:
                stop = buffer.find(b"\n", at + max_bytes, end) + 1 or end
                match = search(buffer, at, stop)
                # An empty match after the last newline belongs to the next line.
                if match is not None and (match.start() < stop or stop == end):
                    return match.span(group)
                if stop == end:
                    return None
                check()
                at = stop
            match = search(buffer, at, end)
            return None if match is None else match.span(group)

        return find


class LiteralFinder:
    """Finds a literal text."""

    __slots__ = ("_find_far", "_size", "text")

    def __init__(self, text: bytes, find_far: Find) -> None:
        """Find *text* within the next few KiB, and with *find_far*, which is faster there, beyond them."""
        self.text = text
        self._find_far = find_far
        self._size = len(text)

    def __call__(self, buffer: bytes, at: int, end: int) -> Span | None:
        near = at + _NEAR_BYTES
        start = buffer.find(self.text, at, end if near >= end else near + self._size - 1)
        if start >= 0:
            return start, start + self._size
        return None if near >= end else self._find_far(buffer, near, end)

    def count_lines(self, buffer: bytes, start: int, end: int) -> int:
        """Count the lines between *start* and *end* that contain the text."""
        between = buffer[start:end].split(self.text)[1:]
        if not between:
            return 0
        between.pop()
        # Two matches are on one line unless there is a newline between them.
        return 1 + sum(map(bytes.__contains__, between, repeat(b"\n")))


def _lazy(make: Callable[[], Find]) -> Find:
    """Return a finder that *make* creates on first use."""
    finder: list[Find] = []

    def find(buffer: bytes, at: int, end: int) -> Span | None:
        if not finder:
            finder.append(make())
        return finder[0](buffer, at, end)

    return find


def _prefiltered(literal: bytes, find: Find) -> Find:
    """Return a finder that calls *find* only on lines with *literal*, which is faster to find."""

    def find_prefiltered(buffer: bytes, at: int, end: int) -> Span | None:
        while (hit := buffer.find(literal, at, end)) >= 0:
            start = buffer.rfind(b"\n", at, hit) + 1 or at
            at = buffer.find(b"\n", hit, end) + 1 or end
            if span := find(buffer, start, at):
                return span
        return None

    return find_prefiltered


def _find_nothing(buffer: bytes, at: int, end: int) -> Span | None:
    return None


def find_anything(buffer: bytes, at: int, end: int) -> Span | None:
    """Match everywhere, as the empty pattern does."""
    return at, at


def selected_runs(find: Find, buffer: bytes, begin: int, end: int) -> Iterator[Span]:
    """Yield runs of matching lines among the complete lines between *begin* and *end*."""
    if find is find_anything:
        yield begin, end
        return
    at, count = begin, 0
    while at < end:
        span = find(buffer, at, end)
        # There is no line after the last newline.
        if span is None or (span[0] == end and buffer[end - 1] == 10):
            return
        start = buffer.rfind(b"\n", at, span[0]) + 1 or at
        at = buffer.find(b"\n", span[0], end) + 1 or end
        yield start, at
        count += 1
        if count == _DENSE_LINES and at - begin < _DENSE_BYTES and isinstance(find, LiteralFinder):
            yield from _test_each_line(find.text, buffer, at, end)
            return


def _test_each_line(text: bytes, buffer: bytes, at: int, end: int) -> Iterator[Span]:
    """Yield runs of lines with *text*, testing each line, which is faster if most lines match."""
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


def unselected_runs(runs: Iterable[Span], begin: int, end: int) -> Iterator[Span]:
    """Yield the runs of lines between *begin* and *end* that are not in *runs*."""
    at = begin
    for start, stop in runs:
        if start > at:
            yield at, start
        at = stop
    if at < end:
        yield at, end


def matching_spans(find: Find, buffer: bytes, run: Span) -> Iterator[Span]:
    """Yield the matches in the lines of *run*, except empty ones."""
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
    """Count the lines of *run*; the last one may lack its newline."""
    start, stop = run
    return buffer.count(b"\n", start, stop) + (stop > start and buffer[stop - 1] != 10)


def first_lines(buffer: bytes, run: Span, count: int) -> int:
    """Return the end of the first *count* lines of *run*."""
    at, stop = run
    for _ in range(count):
        if at >= stop:
            break
        at = buffer.find(b"\n", at, stop) + 1 or stop
    return at


def last_lines(buffer: bytes, run: Span, count: int) -> int:
    """Return the start of the last *count* lines of *run*."""
    start, at = run
    for _ in range(count):
        if at <= start:
            break
        at = buffer.rfind(b"\n", start, at - 1) + 1 or start
    return at


def windows(chunks: Iterable[bytes], meter: Meter) -> Iterator[tuple[bytes, int, int]]:
    """Yield buffers with the offsets between which each has new complete lines."""
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
