"""Brace expansion: `{a,b}` makes a word of each alternative, `{1..9}` of each number or letter of a range.

Braces are expanded before anything else in a word, so an alternative may contain a pattern or a variable.
Quoted braces are literal, and so are braces with neither a comma nor a range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from carrel.errors import ShellSyntaxError
from carrel.shell.budget import ChargeMemory, charge_nothing
from carrel.shell.language.ast import LiteralText, Word, WordPart

MAX_WORDS = 10_000
"""Most words that one word may expand to."""
_MAX_DEPTH = 20
"""Deepest nesting of braces."""
_WORD_BYTES = 192
"""Memory charged for each word and each alternative, before its text is made."""
_PART_BYTES = 8
"""Memory charged for a part of a word in each word that shares it."""
_TOKEN_BYTES = 256
"""Memory charged for a brace or a comma and the text after it."""
_TOKENS = re.compile("[{},]|[^{},]+")

_NUMBERS = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?[0-9]{1,9}))?")

_Parts = tuple[WordPart, ...]


def expand_braces(
    word: Word, *, max_words: int = MAX_WORDS, charge_memory: ChargeMemory = charge_nothing
) -> Iterator[Word]:
    """Return the words that *word* expands to; *word* itself if it has no braces to expand.

    Raises:
        ShellSyntaxError: There are more than *max_words*, or the braces are nested too deeply.
    """
    if not any(isinstance(part, LiteralText) and not part.quoted and "{" in part.text for part in word.parts):
        return iter((word,))
    return _Expansion(word, max_words, charge_memory).words()


@dataclass(slots=True)
class _Group:
    """A pair of braces, by the indexes of its tokens; `commas` excludes those of nested pairs."""

    begin: int
    end: int = -1
    commas: list[int] = field(default_factory=list)


class _Expansion:
    """The expansion of one word; each unquoted brace and comma is a token of its own."""

    def __init__(self, word: Word, max_words: int, charge_memory: ChargeMemory) -> None:
        self._word = word
        self._max_words = max_words
        self._charge_memory = charge_memory
        self._charged_bytes = 0
        self._charge(_TOKEN_BYTES * sum(map(_count_tokens, word.parts)))
        self._tokens = list(_tokenize(word))
        self._groups = {group.begin: group for group in self._find_groups() if self._is_expandable(group)}

    def words(self) -> Iterator[Word]:
        """Yield the words, each assembled only when it is requested."""
        words = self._expand(0, len(self._tokens), 0)
        for parts in words:
            yield Word(_merge_literals(parts), self._word.position)
        self._charge_memory(-self._charged_bytes)

    def _find_groups(self) -> Iterator[_Group]:
        """Yield all pairs of braces."""
        open_groups: list[_Group] = []
        for at, token in enumerate(self._tokens):
            text = token.text if isinstance(token, LiteralText) and not token.quoted else ""
            if text == "{":
                open_groups.append(_Group(at))
            elif text == "," and open_groups:
                open_groups[-1].commas.append(at)
            elif text == "}" and open_groups:
                group = open_groups.pop()
                group.end = at
                yield group

    def _is_expandable(self, group: _Group) -> bool:
        return bool(group.commas) or self._range(group) is not None

    def _range(self, group: _Group) -> list[str] | None:
        """Return the elements of a range such as `1..9`; `None` if the group is no range."""
        inside = self._tokens[group.begin + 1 : group.end]
        if len(inside) > 40 or not all(
            isinstance(token, LiteralText) and not token.quoted for token in inside
        ):
            return None
        text = "".join(token.text[:41] for token in inside if isinstance(token, LiteralText))
        if numbers := _NUMBERS.fullmatch(text):
            return self._numbers(*numbers.groups())
        if letters := _LETTERS.fullmatch(text):
            first, last = ord(letters[1]), ord(letters[2])
            return [chr(code) for code in self._sequence(first, last, letters[3])]
        return None

    def _numbers(self, first: str, last: str, step: str | None) -> list[str]:
        padded = any(text.lstrip("-").startswith("0") and text.strip("-0") != text for text in (first, last))
        width = max(len(first), len(last)) if padded and max(len(first), len(last)) > 1 else 0
        return [f"{number:0{width}d}" for number in self._sequence(int(first), int(last), step)]

    def _sequence(self, first: int, last: int, step: str | None) -> range:
        size = abs(int(step or 1)) or 1
        count = abs(last - first) // size + 1
        self._require_within_limit(count)
        self._charge(_WORD_BYTES * count)
        return range(first, last + 1, size) if first <= last else range(first, last - 1, -size)

    def _expand(self, begin: int, end: int, depth: int) -> list[_Parts]:
        """Return the words that the tokens between *begin* and *end* expand to."""
        if depth > _MAX_DEPTH:
            raise self._syntax_error(f"braces are nested more than {_MAX_DEPTH} deep")
        words: list[_Parts] = [()]
        at = begin
        while at < end:
            group = self._groups.get(at)
            if group is None:
                start = at
                while at < end and at not in self._groups:
                    at += 1
                parts = [_merge_literals(self._tokens[start:at])]
            else:
                parts = self._alternatives(group, depth)
                at = group.end + 1
            self._require_within_limit(len(words) * len(parts))
            part_count = sum(map(len, words)) * len(parts) + sum(map(len, parts)) * len(words)
            self._charge(_WORD_BYTES * len(words) * len(parts) + _PART_BYTES * part_count)
            words = [left + right for left in words for right in parts]
        return words

    def _charge(self, count: int) -> None:
        """Charge memory until all words have been produced."""
        self._charge_memory(count)
        self._charged_bytes += count

    def _alternatives(self, group: _Group, depth: int) -> list[_Parts]:
        if not group.commas:
            return [(LiteralText(text, False),) for text in self._range(group) or ()]
        parts: list[_Parts] = []
        for begin, end in pairwise([group.begin, *group.commas, group.end]):
            parts += self._expand(begin + 1, end, depth + 1)
            self._require_within_limit(len(parts))
        return parts

    def _require_within_limit(self, count: int) -> None:
        if count > self._max_words:
            raise self._syntax_error(f"braces expand to more than {self._max_words} words")

    def _syntax_error(self, problem: str) -> ShellSyntaxError:
        position = self._word.position
        return ShellSyntaxError(f"syntax error at character {position}: {problem}", position=position)


def _count_tokens(part: WordPart) -> int:
    if not isinstance(part, LiteralText) or part.quoted:
        return 0
    return sum(map(part.text.count, "{},"))


def _tokenize(word: Word) -> Iterator[WordPart]:
    for part in word.parts:
        if isinstance(part, LiteralText) and not part.quoted:
            yield from (LiteralText(token, False) for token in _TOKENS.findall(part.text))
        else:
            yield part


def _merge_literals(parts: Sequence[WordPart]) -> _Parts:
    """Return *parts* with adjacent unquoted literals joined."""
    merged: list[WordPart] = []
    run: list[str] = []
    for part in parts:
        if isinstance(part, LiteralText) and not part.quoted:
            run.append(part.text)
            continue
        if run:
            merged.append(LiteralText("".join(run), False))
            run = []
        merged.append(part)
    if run:
        merged.append(LiteralText("".join(run), False))
    return tuple(merged)
