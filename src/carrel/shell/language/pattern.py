"""POSIX patterns for one name (`*`, `?`, `[...]`), matched in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from carrel.paths.glob import PATTERN_CHARACTERS

_MAGIC = re.compile(r"[*?\[]")
_CLASSES = {
    "[:alnum:]": "a-zA-Z0-9", "[:alpha:]": "a-zA-Z", "[:blank:]": " \\t", "[:cntrl:]": "\\x00-\\x1f\\x7f",
    "[:digit:]": "0-9", "[:graph:]": "!-~", "[:lower:]": "a-z", "[:print:]": " -~",
    "[:punct:]": "!-/:-@\\[-`{-~", "[:space:]": " \\t\\n\\r\\f\\v", "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}  # fmt: skip
_LONGEST_CLASS = max(map(len, _CLASSES))


class PatternSegment(NamedTuple):
    """Part of a pattern; a quoted part is literal."""

    text: str
    quoted: bool


Matcher = Callable[[str], bool]
"""Returns whether a whole name matches."""


def is_magic(segments: Sequence[PatternSegment]) -> bool:
    """Whether *segments* have an unquoted pattern character."""
    return any(not quoted and _MAGIC.search(text) for text, quoted in segments)


def matcher(segments: Sequence[PatternSegment]) -> Matcher:
    """Return a matcher for *segments*; one that matches nothing if the pattern is too long."""
    if sum(len(text) for text, _ in segments) > PATTERN_CHARACTERS:
        return lambda name: False
    match = _compile(tuple(segments)).fullmatch
    return lambda name: match(name) is not None


@lru_cache(maxsize=256)
def _compile(segments: tuple[PatternSegment, ...]) -> re.Pattern[str]:
    """Compile a regular expression without backtracking: a star is fixed once a later star has matched."""
    runs: list[list[str]] = [[]]
    for item in _translate([(character, quoted) for text, quoted in segments for character in text]):
        if item is None:
            runs.append([])
        else:
            runs[-1].append(item)
    first, *rest = ["".join(run) for run in runs]
    if not rest:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{run})" for run in rest[:-1] if run)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


_Characters = Sequence[tuple[str, bool]]


def _translate(characters: _Characters) -> Iterator[str | None]:
    """Yield a regular expression for each character of the pattern; `None` for a star."""
    last_close = max((at for at, each in enumerate(characters) if each == ("]", False)), default=-1)
    at = 0
    while at < len(characters):
        character, quoted = characters[at]
        may_open = character == "[" and not quoted and at < last_close
        bracket = _parse_bracket(characters, at) if may_open else None
        if bracket is not None:
            at = bracket.end
            yield bracket.expression
            continue
        at += 1
        if quoted or character not in "*?":
            yield re.escape(character)
        else:
            yield None if character == "*" else "."


class _Bracket(NamedTuple):
    expression: str
    end: int


def _parse_bracket(characters: _Characters, begin: int) -> _Bracket | None:
    """Return the bracket expression at *begin*; `None` if nothing closes it."""
    negated = characters[begin + 1 : begin + 2] in ([("!", False)], [("^", False)])
    first = at = begin + 1 + negated
    items: list[str] = []
    while at < len(characters):
        if characters[at] == ("]", False) and at > first:
            return _Bracket(_character_set(items, negated=negated), at + 1)
        item, at = _parse_bracket_item(characters, at)
        items.append(item)
    return None


def _character_set(items: list[str], *, negated: bool) -> str:
    content = "".join(items)
    if not content:
        return "." if negated else "(?!)"
    return f"[^{content}]" if negated else f"[{content}]"


def _parse_bracket_item(characters: _Characters, at: int) -> tuple[str, int]:
    """Return one class, range or character of a bracket, and its end; a reversed range is empty."""
    ahead = "".join("\0" if quoted else each for each, quoted in characters[at : at + _LONGEST_CLASS])
    if ahead.startswith("[:") and (name := ahead[: ahead.find(":]") + 2]) in _CLASSES:
        return _CLASSES[name], at + len(name)
    low = characters[at][0]
    if ahead[1:2] == "-" and ahead[2:3] not in ("", "]"):
        high = characters[at + 2][0]
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at + 3
    return re.escape(low), at + 1
