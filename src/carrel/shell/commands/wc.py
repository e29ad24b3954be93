"""Count lines, words and bytes."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated
from unicodedata import category, combining, east_asian_width

from carrel.errors import CarrelError, IsDirectoryError
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt
from carrel.shell.text.quoting import encode, quote_if_needed

_BLANKS = b" \t\n\v\f\r"
_INVISIBLE = bytes(byte for byte in range(128) if not 32 <= byte < 127 and byte not in _BLANKS)
"""Bytes that neither belong to words nor separate them."""
_WORD_OR_NOT = bytes(32 if byte in _BLANKS else 120 for byte in range(256))
_CONTINUATIONS = bytes(range(0x80, 0xC0))
_INVISIBLE_IN_LINE = _INVISIBLE + b"\v"
_PART_BYTES = 2**14
"""Bytes to decode at a time, because each character may become an object."""
_STARTS_AGAIN = re.compile(rb"[\n\r\f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of a text."""

    lines: int = 0
    words: int = 0
    chars: int = 0
    bytes: int = 0
    longest: int = 0
    """Width of the widest line, in columns."""

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of two texts together."""
        return Counts(
            lines=self.lines + other.lines,
            words=self.words + other.words,
            chars=self.chars + other.chars,
            bytes=self.bytes + other.bytes,
            longest=max(self.longest, other.longest),
        )


class Counter:
    """Counts the *wanted* properties of a text, chunk by chunk."""

    def __init__(self, wanted: Container[str]) -> None:
        self._wants_words = "words" in wanted
        self._wants_chars = "chars" in wanted
        self._wants_longest = "longest" in wanted
        self._lines = self._words = self._chars = self._bytes = 0
        self._longest = self._column = 0
        self._in_word = False
        self._cut = b""

    def add(self, chunk: bytes) -> None:
        """Count *chunk*."""
        self._bytes += len(chunk)
        self._lines += chunk.count(b"\n")
        if self._wants_words:
            self._add_words(chunk)
        if self._wants_chars or self._wants_longest:
            for at in range(0, len(chunk), _PART_BYTES):
                self._add_characters(chunk[at : at + _PART_BYTES])

    def finish(self) -> Counts:
        """Return the counts."""
        return Counts(
            lines=self._lines,
            words=self._words,
            chars=self._chars,
            bytes=self._bytes,
            longest=max(self._longest, self._column),
        )

    def _add_words(self, chunk: bytes) -> None:
        """Count the starts of words: a non-blank byte after a blank one."""
        marks = chunk.translate(_WORD_OR_NOT, _INVISIBLE)
        if marks:
            self._words += marks.count(b" x") + (marks[0] == 120 and not self._in_word)
            self._in_word = marks[-1] == 120

    def _add_characters(self, chunk: bytes) -> None:
        if chunk.isascii() and not self._cut:
            self._chars += len(chunk)
        else:
            chunk, self._cut = _split_partial_character(self._cut + chunk)
            text = chunk.decode("utf-8", "ignore")
            self._chars += len(text)
        if self._wants_longest:
            self._add_columns(chunk)

    def _add_columns(self, chunk: bytes) -> None:
        pieces = _STARTS_AGAIN.split(chunk)
        self._column = _advance(self._column, pieces[0])
        for piece in pieces[1:]:
            self._longest = max(self._longest, self._column)
            self._column = _advance(0, piece)


def _split_partial_character(data: bytes) -> tuple[bytes, bytes]:
    """Split off an incomplete UTF-8 character at the end of *data*."""
    begin = len(data.rstrip(_CONTINUATIONS)) - 1 if data and data[-1] >= 0x80 else len(data)
    if begin < 0 or len(data) - begin > 3:
        return data, b""
    lead = data[begin] if begin < len(data) else 0
    needed = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 0
    return (data[:begin], data[begin:]) if needed > len(data) - begin else (data, b"")


def _advance(column: int, piece: bytes) -> int:
    """Return the column after printing *piece*, which has no newline, at *column*."""
    if piece.isascii():
        first, *others = piece.translate(None, _INVISIBLE_IN_LINE).split(b"\t")
        widths = [len(first), *map(len, others)]
    else:
        widths = [sum(map(_columns, part)) for part in piece.decode("utf-8", "ignore").split("\t")]
    column += widths[0]
    for width in widths[1:]:
        column += 8 - column % 8 + width
    return column


def _columns(character: str) -> int:
    if category(character) in ("Cc", "Cf", "Mn", "Me", "Zl", "Zp") or combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


USAGE = "[OPTION]... [FILE]..."
_DEFAULT_WIDTH = 7
"""Width of the columns if the size of the input is not known in advance."""
_DIRECTORY_COUNTS = Counts()


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `wc`."""

    lines: Annotated[bool, Opt("-l", "--lines", help="print the number of newlines")] = False
    words: Annotated[bool, Opt("-w", "--words", help="print the number of words")] = False
    chars: Annotated[bool, Opt("-m", "--chars", help="print the number of characters of UTF-8")] = False
    bytes: Annotated[bool, Opt("-c", "--bytes", help="print the number of bytes")] = False
    longest: Annotated[bool, Opt("-L", "--max-line-length", help="print the width of the widest line")] = (
        False
    )


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the counts of each file, and the total."""
    wanted = _wanted_counts(flags)
    # The width for a single file follows from its counts.
    width = 0 if len(files) == 1 and files[0] != STDIN else _width(ctx, files, len(wanted))
    total = Counts()
    for file in files or (STDIN,):
        counts = _count(ctx, file, wanted)
        if counts is not None:
            _print(ctx, counts, wanted, width or _single_width(counts, len(wanted)), file if files else None)
            total += counts
    if len(files) > 1:
        _print(ctx, total, wanted, width, "total")
    return ctx.status


def _wanted_counts(flags: Flags) -> list[str]:
    """Return the names of the counts to print, in order."""
    names = [name for name in ("lines", "words", "chars", "bytes", "longest") if getattr(flags, name)]
    return names or ["lines", "words", "bytes"]


def _width(ctx: Context, files: Sequence[str], columns: int) -> int:
    """Return the width of the columns: that of the sum of all sizes, if they are known."""
    if columns == 1 and len(files) <= 1:
        return 1
    total, minimum = 0, 1
    for file in files or (STDIN,):
        size = _size(ctx, file)
        if size is None:
            minimum = _DEFAULT_WIDTH
        else:
            total += size
    return max(minimum, len(str(total)))


def _single_width(counts: Counts, columns: int) -> int:
    """Return the width of the columns for a single operand."""
    if columns == 1:
        return 1
    return _DEFAULT_WIDTH if counts is _DIRECTORY_COUNTS else len(str(counts.bytes))


def _size(ctx: Context, file: str) -> int | None:
    """Return the size of a regular file, 0 for a missing one, `None` if it is not known."""
    if file == STDIN:
        return ctx.stdin.size_bytes
    try:
        info = ctx.stat(file)
    except CarrelError:
        return 0
    return info.size_bytes if info.is_file else None


def _count(ctx: Context, file: str, wanted: Sequence[str]) -> Counts | None:
    """Return the counts of a file; zeros for a directory, and `None` if it cannot be read."""
    counts: Counts | None = None
    with ctx.reporting(file):
        try:
            counts = _count_file(ctx, file, wanted)
        except IsDirectoryError:
            ctx.error(f"{quote_if_needed(file)}: Is a directory")
            counts = _DIRECTORY_COUNTS
    return counts


def _count_file(ctx: Context, file: str, wanted: Sequence[str]) -> Counts:
    if wanted == ["bytes"] and file != STDIN:
        info = ctx.stat(file)
        if info.is_file:
            return Counts(bytes=info.size_bytes)
    counter = Counter(wanted)
    for chunk in ctx.chunks(file):
        counter.add(chunk)
    return counter.finish()


def _print(ctx: Context, counts: Counts, wanted: Sequence[str], width: int, name: str | None) -> None:
    numbers = " ".join(f"{getattr(counts, each):{width}}" for each in wanted)
    # A name with a newline would look like two lines.
    suffix = "" if name is None else " " + (quote_if_needed(name) if "\n" in name else name)
    ctx.write(encode(numbers + suffix) + b"\n")
