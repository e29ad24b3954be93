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
    """Part of a pattern; what is quoted matches only itself."""

    text: str
    quoted: bool


Matcher = Callable[[str], bool]
"""Tells whether a whole name matches."""


def is_magic(segments: Sequence[PatternSegment]) -> bool:
    """Whether anything in *segments* may match more than itself."""
    return any(not quoted and _MAGIC.search(text) for text, quoted in segments)


def matcher(segments: Sequence[PatternSegment]) -> Matcher:
    """What matches *segments*; nothing, if they are longer than a pattern may be."""
    if sum(len(text) for text, _ in segments) > PATTERN_CHARACTERS:
        return lambda name: False
    match = _compiled(tuple(segments)).fullmatch
    return lambda name: match(name) is not None


@lru_cache(maxsize=256)
def _compiled(segments: tuple[PatternSegment, ...]) -> re.Pattern[str]:
    """A regular expression in which no star is tried again after a later one has matched."""
    runs: list[list[str]] = [[]]
    for item in _items([(character, quoted) for text, quoted in segments for character in text]):
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


def _items(characters: _Characters) -> Iterator[str | None]:
    """What each character of a name must be, as a regular expression; `None` for a star."""
    last_close = max((at for at, each in enumerate(characters) if each == ("]", False)), default=-1)
    at = 0
    while at < len(characters):
        character, quoted = characters[at]
        may_begin = character == "[" and not quoted and at < last_close
        bracket = _bracket(characters, at) if may_begin else None
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


def _bracket(characters: _Characters, begin: int) -> _Bracket | None:
    """The set of characters that begins there, unless nothing closes it."""
    negated = characters[begin + 1 : begin + 2] in ([("!", False)], [("^", False)])
    first = at = begin + 1 + negated
    members: list[str] = []
    while at < len(characters):
        if characters[at] == ("]", False) and at > first:
            return _Bracket(_set_of(members, negated=negated), at + 1)
        member, at = _member(characters, at)
        members.append(member)
    return None


def _set_of(members: list[str], *, negated: bool) -> str:
    inside = "".join(members)
    if not inside:
        return "." if negated else "(?!)"
    return f"[^{inside}]" if negated else f"[{inside}]"


def _member(characters: _Characters, at: int) -> tuple[str, int]:
    """One class, range or character of a set, and where the next begins; a range backwards is empty."""
    ahead = "".join("\0" if quoted else each for each, quoted in characters[at : at + _LONGEST_CLASS])
    if ahead.startswith("[:") and (name := ahead[: ahead.find(":]") + 2]) in _CLASSES:
        return _CLASSES[name], at + len(name)
    low = characters[at][0]
    if ahead[1:2] == "-" and ahead[2:3] not in ("", "]"):
        high = characters[at + 2][0]
        return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at + 3
    return re.escape(low), at + 1
