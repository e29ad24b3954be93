"""The replacement of `s///`: text, groups, changes of case and escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from carrel.shell.text.quoting import decode, encode
from carrel.shell.text.regex import Regex, RegexMatch

_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:([afnrtv])|c(.)|d([0-9]{3})|o([0-7]{3})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CASES = frozenset("ULElu")

_CONSTANT_BYTES = 2**16
"""Longest replacement that is made before it is needed."""
_CASE_BYTES = 10
"""Memory that a byte takes while its case is changed, which makes text of it and perhaps two characters."""

ReplacementPart = bytes | int | str
"""Text, the number of a group, or a change of case."""


def unescape(text: str, *, regex: bool = False, keep: bool = False) -> str:
    r"""Put characters for what stands for them: `\n`, `\t`, `\x41` and so on.

    Another character after a backslash stands for itself; in a *regex* both stay, and with *keep* both stay
    but for a second backslash.
    """

    def character(found: re.Match[str]) -> str:
        escaped = _character(found)
        if escaped is not None:
            return escaped
        if regex or (keep and found[6] != "\\"):
            return found[0]
        return found[6]

    return _ESCAPE.sub(character, text)


def _character(found: re.Match[str]) -> str | None:
    """What an escape stands for, if that is one special character."""
    if found[1]:
        return _CONTROLS[found[1]]
    if found[2]:
        return chr(ord(found[2].upper()) ^ 0x40)
    if found[3] or found[4] or found[5]:
        number = int(found[3]) if found[3] else int(found[4], 8) if found[4] else int(found[5], 16)
        return decode(bytes([number & 0xFF]))
    return None


@dataclass(frozen=True, slots=True)
class Replacement:
    """The right-hand side of an `s` command."""

    parts: Sequence[ReplacementPart]
    groups: int
    """The highest number of a group in it."""
    changes_case: bool
    fixed_bytes: int
    """How long its own text is."""
    references: int
    """How many groups, or whole matches, stand in it."""

    @classmethod
    def parse(cls, text: str) -> Replacement:
        """Read what stands after the second delimiter."""
        parts: list[ReplacementPart] = []
        at = 0
        for found in re.compile(rf"{_ESCAPE.pattern}|&", re.DOTALL).finditer(text):
            if found.start() > at:
                parts.append(encode(text[at : found.start()]))
            parts.append(_part(found))
            at = found.end()
        parts.append(encode(text[at:]))
        numbers = [part for part in parts if isinstance(part, int)]
        return cls(
            tuple(parts),
            max(numbers, default=0),
            any(isinstance(part, str) for part in parts),
            sum(len(part) for part in parts if isinstance(part, bytes)),
            len(numbers),
        )

    def constant(self, whole: bytes) -> bytes | None:
        """What comes in the place of every match, if all matches are *whole* and that is not too long."""
        if self.groups or self.changes_case:
            return None
        if self.fixed_bytes + self.references * len(whole) > _CONSTANT_BYTES:
            return None
        return b"".join(part if isinstance(part, bytes) else whole for part in self.parts)

    def most_bytes(self, matched: int) -> int:
        """Most memory that `fill` takes for a match of so many bytes, of which all groups are part."""
        return self.fixed_bytes + self.references * matched * (_CASE_BYTES if self.changes_case else 1)

    def fill(self, text: bytes, found: RegexMatch, groups: int) -> bytes:
        """What comes in the place of *found* in *text*, whose expression has so many *groups*."""
        taken: dict[int, bytes] = {}
        pieces: list[bytes | str] = []
        for part in self.parts:
            if not isinstance(part, int):
                pieces.append(part)
            elif part <= groups:
                if part not in taken:
                    start, end = found.span(part)
                    taken[part] = text[start:end] if start >= 0 else b""
                pieces.append(taken[part])
        if not self.changes_case:
            return b"".join(piece for piece in pieces if isinstance(piece, bytes))
        return _with_cases(pieces)


def _part(found: re.Match[str]) -> ReplacementPart:
    if found[0] == "&":
        return 0
    escaped = _character(found)
    if escaped is not None:
        return encode(escaped)
    following = found[6]
    if following.isascii() and following.isdigit():
        return int(following)
    return following if following in _CASES else encode(following)


def _with_cases(pieces: Sequence[bytes | str]) -> bytes:
    """Join *pieces*; between them stands from where on, or for which one character, the case changes."""
    done: list[str] = []
    lasting = once = ""
    for piece in pieces:
        if isinstance(piece, str):
            if piece in "lu":
                once = piece
            else:
                lasting, once = piece, ""
            continue
        text = decode(piece)
        if not text:
            continue
        text = text.upper() if lasting == "U" else text.lower() if lasting == "L" else text
        if once:
            text = (text[0].upper() if once == "u" else text[0].lower()) + text[1:]
            once = ""
        done.append(text)
    return encode("".join(done))


def matches(regex: Regex, text: bytes) -> Iterator[RegexMatch]:
    """All matches; an empty one does not follow another at once."""
    size = len(text)
    at, last = 0, -1
    while at <= size and (found := regex.search(text, at, size)) is not None:
        start, end = found.span()
        if end > start or start != last:
            yield found
            last = end
        at = end
        if end == start:
            at += 1
            while at < size and text[at] & 0xC0 == 0x80:
                at += 1
