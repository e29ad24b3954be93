"""What `xargs` makes of its input: words with quotes and backslashes, whole lines, or records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from carrel.shell.budget import RECORD_BYTES, Meter
from carrel.shell.flags import UsageError
from carrel.shell.quoting import encode

_TOKEN = re.compile(
    rb"(?P<blank>[ \t\v\f\r]+)|(?P<plain>[^ \t\v\f\r\n'\"\\]+)|'(?P<single>[^'\n]*)'|\"(?P<double>[^\"\n]*)\""
    rb"|\\(?P<escaped>.)|(?P<end>\n)|(?P<stray>['\"])",
    re.DOTALL,
)
_SPECIAL = re.compile(rb"['\"\\]")
_ESCAPES = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\"}
_NUMBER = re.compile(r"x([0-9a-fA-F]{1,2})|([0-7]{1,3})")


class ItemError(Exception):
    """The input makes no arguments."""


def parse_delimiter(text: str) -> bytes:
    """Read the value of `-d`: a character or an escape."""
    data = encode(text)
    if len(data) == 1:
        return data
    if text.startswith("\\") and (number := _NUMBER.fullmatch(text, 1)):
        value = int(number[1], 16) if number[1] else int(number[2], 8)
        if value < 256:
            return bytes([value])
    if text[:1] == "\\" and text[1:] in _ESCAPES:
        return _ESCAPES[text[1:]]
    raise UsageError(
        f"Invalid input delimiter specification {text}: the delimiter must be either a single character or an"
        " escape sequence starting with \\.",
        status=1,
        hint=False,
    )


def delimited(records: Iterable[bytes], end: bytes) -> Iterator[bytes]:
    """Records without their ends; nothing else in them is special."""
    return (record.removesuffix(end) for record in records)


class Words:
    """The words of lines; those before an error are given before it is raised."""

    def __init__(self, lines: Iterable[bytes], meter: Meter) -> None:
        self._lines = lines
        self._meter = meter
        self._held = 0
        self._words: list[bytes] = []
        self._pieces: list[bytes] | None = None

    def by_line(self) -> Iterator[list[bytes]]:
        """The words of each line that has any; a line with a blank at its end goes on in the next."""
        for words in self._by_line():
            yield words
            words.clear()
            self._meter.hold(-self._held)
            self._held = 0

    def _by_line(self) -> Iterator[list[bytes]]:
        for line in self._lines:
            self._charge(line)
            if self._pieces is None and not _SPECIAL.search(line):
                self._words += line.split()
                if not line[-2:-1].isspace() and len(line) > 1 and self._words:
                    yield self._taken()
            else:
                yield from self._by_tokens(line)
        self._end_word()
        if self._words:
            yield self._taken()

    def _by_tokens(self, line: bytes) -> Iterator[list[bytes]]:
        is_after_word = self._pieces is not None
        for kind, text in _tokens([line]):
            if kind in ("blank", "end", "stray"):
                self._end_word()
                if self._words and (kind == "stray" or (kind == "end" and is_after_word)):
                    yield self._taken()
                is_after_word = False
                if kind == "stray":
                    raise _unmatched(text)
            else:
                is_after_word = True
                self._pieces = self._pieces or []
                self._pieces.append(text)

    def _end_word(self) -> None:
        if self._pieces is not None:
            self._words.append(b"".join(self._pieces))
            self._pieces = None

    def _charge(self, line: bytes) -> None:
        """Charge for the words of *line*, each of which has at least a byte and a blank."""
        charge = RECORD_BYTES * (len(line) // 2 + 1)
        self._meter.hold(charge)
        self._held += charge

    def _taken(self) -> list[bytes]:
        words, self._words = self._words, []
        return words


def whole_lines(lines: Iterable[bytes], meter: Meter) -> Iterator[bytes]:
    """Each line that is not empty, without blanks at its beginning and without quotes."""
    pieces: list[bytes] = []
    held = 0
    for kind, text in _tokens(lines):
        if kind == "stray":
            raise _unmatched(text)
        if kind == "end":
            if pieces:
                yield b"".join(pieces)
            pieces = []
            meter.hold(-held)
            held = 0
        elif kind != "blank" or pieces:
            charge = 2 * len(text) + RECORD_BYTES
            meter.hold(charge)
            held += charge
            pieces.append(text)
    if pieces:
        yield b"".join(pieces)


def _tokens(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    for line in lines:
        for found in _TOKEN.finditer(line):
            yield found.lastgroup or "", found[found.lastindex or 0]


def _unmatched(quote: bytes) -> ItemError:
    name = "double" if quote == b'"' else "single"
    return ItemError(
        f"unmatched {name} quote; by default quotes are special to xargs unless you use the -0 option"
    )
