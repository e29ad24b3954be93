"""Brace expansion: `{a,b}` stands for each part, `{1..9}` for each number or letter of a range.

They are read before anything else in a word is expanded, so a part may be a pattern or a variable. What is
quoted stands for itself, and so do braces that hold neither a comma nor a range.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from carrel.errors import ShellSyntaxError
from carrel.shell.language.ast import LiteralText, Word, WordPart

MAX_WORDS = 10_000
"""Most words that one word with braces stands for."""
_DEEPEST = 20
_WORD_BYTES = 192
"""Memory that each word takes before its text is made, and each part of braces."""
_PIECE_BYTES = 8
"""Memory that a piece of a word takes in each word that shares it."""
_SIGN_BYTES = 256
"""Memory that a brace or a comma takes, and the text behind it."""
_SIGNS = re.compile("[{},]|[^{},]+")

_NUMBERS = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?[0-9]{1,9}))?")

_Pieces = tuple[WordPart, ...]


ChargeMemory = Callable[[int], object]
"""Charges bytes that are kept in memory, before they are; a negative number gives some back."""


def _free(count: int) -> None:
    """Charge nothing."""


def expand_braces(
    word: Word, *, most: int = MAX_WORDS, charge_memory: ChargeMemory = _free
) -> Iterator[Word]:
    """The words that *word* stands for, at most *most*; itself, if it has no such braces.

    Raises:
        ShellSyntaxError: They are too many, or nested too deeply.
    """
    if not any(
        isinstance(piece, LiteralText) and not piece.quoted and "{" in piece.text for piece in word.parts
    ):
        return iter((word,))
    return _Expansion(word, most, charge_memory).words()


@dataclass(slots=True)
class _Group:
    """A pair of braces: where it begins and ends, and where its own commas are."""

    begin: int
    end: int = -1
    commas: list[int] = field(default_factory=list)


class _Expansion:
    """One word, in which each brace and comma that is not quoted is a piece of its own."""

    def __init__(self, word: Word, most: int, charge_memory: ChargeMemory) -> None:
        self._word = word
        self._most = most
        self._hold = charge_memory
        self._held = 0
        self._charge(_SIGN_BYTES * sum(map(_signs, word.parts)))
        self._items = list(_items(word))
        self._groups = {group.begin: group for group in self._closed() if self._stands_for_more(group)}

    def words(self) -> Iterator[Word]:
        """The words, each put together only when it is asked for."""
        found = self._expand(0, len(self._items), 0)
        for parts in found:
            yield Word(_joined(parts), self._word.position)
        self._hold(-self._held)

    def _closed(self) -> Iterator[_Group]:
        """All pairs of braces."""
        opened: list[_Group] = []
        for at, item in enumerate(self._items):
            sign = item.text if isinstance(item, LiteralText) and not item.quoted else ""
            if sign == "{":
                opened.append(_Group(at))
            elif sign == "," and opened:
                opened[-1].commas.append(at)
            elif sign == "}" and opened:
                group = opened.pop()
                group.end = at
                yield group

    def _stands_for_more(self, group: _Group) -> bool:
        return bool(group.commas) or self._range(group) is not None

    def _range(self, group: _Group) -> list[str] | None:
        inside = self._items[group.begin + 1 : group.end]
        if len(inside) > 40 or not all(isinstance(item, LiteralText) and not item.quoted for item in inside):
            return None
        text = "".join(item.text[:41] for item in inside if isinstance(item, LiteralText))
        if numbers := _NUMBERS.fullmatch(text):
            return self._numbers(*numbers.groups())
        if letters := _LETTERS.fullmatch(text):
            first, last = ord(letters[1]), ord(letters[2])
            return [chr(code) for code in self._steps(first, last, letters[3])]
        return None

    def _numbers(self, first: str, last: str, step: str | None) -> list[str]:
        padded = any(text.lstrip("-").startswith("0") and text.strip("-0") != text for text in (first, last))
        width = max(len(first), len(last)) if padded and max(len(first), len(last)) > 1 else 0
        return [f"{number:0{width}d}" for number in self._steps(int(first), int(last), step)]

    def _steps(self, first: int, last: int, step: str | None) -> range:
        size = abs(int(step or 1)) or 1
        count = abs(last - first) // size + 1
        self._require_few(count)
        self._charge(_WORD_BYTES * count)
        return range(first, last + 1, size) if first <= last else range(first, last - 1, -size)

    def _expand(self, begin: int, end: int, depth: int) -> list[_Pieces]:
        """What the items between *begin* and *end* stand for."""
        if depth > _DEEPEST:
            raise self._wrong(f"braces are nested more than {_DEEPEST} deep")
        found: list[_Pieces] = [()]
        at = begin
        while at < end:
            group = self._groups.get(at)
            if group is None:
                start = at
                while at < end and at not in self._groups:
                    at += 1
                parts = [_joined(self._items[start:at])]
            else:
                parts = self._parts(group, depth)
                at = group.end + 1
            self._require_few(len(found) * len(parts))
            part_count = sum(map(len, found)) * len(parts) + sum(map(len, parts)) * len(found)
            self._charge(_WORD_BYTES * len(found) * len(parts) + _PIECE_BYTES * part_count)
            found = [left + right for left in found for right in parts]
        return found

    def _charge(self, count: int) -> None:
        """Charge so many bytes until all words are made."""
        self._hold(count)
        self._held += count

    def _parts(self, group: _Group, depth: int) -> list[_Pieces]:
        if not group.commas:
            return [(LiteralText(text, False),) for text in self._range(group) or ()]
        parts: list[_Pieces] = []
        for begin, end in pairwise([group.begin, *group.commas, group.end]):
            parts += self._expand(begin + 1, end, depth + 1)
            self._require_few(len(parts))
        return parts

    def _require_few(self, count: int) -> None:
        if count > self._most:
            raise self._wrong(f"braces stand for more than {self._most} words")

    def _wrong(self, problem: str) -> ShellSyntaxError:
        position = self._word.position
        return ShellSyntaxError(f"syntax error at character {position}: {problem}", position=position)


def _signs(piece: WordPart) -> int:
    if not isinstance(piece, LiteralText) or piece.quoted:
        return 0
    return sum(map(piece.text.count, "{},"))


def _items(word: Word) -> Iterator[WordPart]:
    for piece in word.parts:
        if isinstance(piece, LiteralText) and not piece.quoted:
            yield from (LiteralText(part, False) for part in _SIGNS.findall(piece.text))
        else:
            yield piece


def _joined(parts: Sequence[WordPart]) -> _Pieces:
    """The same, with text that stands together in one piece again."""
    found: list[WordPart] = []
    run: list[str] = []
    for piece in parts:
        if isinstance(piece, LiteralText) and not piece.quoted:
            run.append(piece.text)
            continue
        if run:
            found.append(LiteralText("".join(run), False))
            run = []
        found.append(piece)
    if run:
        found.append(LiteralText("".join(run), False))
    return tuple(found)
