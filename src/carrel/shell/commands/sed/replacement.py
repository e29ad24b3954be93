"""The replacement of `s///`: literal text, group references, case conversions and escapes."""

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
"""Longest replacement that is built in advance."""
_CASE_BYTES = 10
"""Memory of a byte during case conversion, which decodes it and may double the character."""

ReplacementPart = bytes | int | str
"""Literal text, the number of a group, or the letter of a case conversion."""


def unescape(text: str, *, regex: bool = False, keep: bool = False) -> str:
    r"""Decode escapes such as `\n`, `\t` and `\x41`.

    A backslash before any other character is removed. In a *regex* both are kept; with *keep* both are kept
    unless the character is a backslash.
    """

    def decode_one(match: re.Match[str]) -> str:
        escaped = _decode_escape(match)
        if escaped is not None:
            return escaped
        if regex or (keep and match[6] != "\\"):
            return match[0]
        return match[6]

    return _ESCAPE.sub(decode_one, text)


def _decode_escape(match: re.Match[str]) -> str | None:
    """Return the character that an escape denotes; `None` if it denotes no special character."""
    if match[1]:
        return _CONTROLS[match[1]]
    if match[2]:
        return chr(ord(match[2].upper()) ^ 0x40)
    if match[3] or match[4] or match[5]:
        number = int(match[3]) if match[3] else int(match[4], 8) if match[4] else int(match[5], 16)
        return decode(bytes([number & 0xFF]))
    return None


@dataclass(frozen=True, slots=True)
class Replacement:
    """The right-hand side of an `s` command."""

    parts: Sequence[ReplacementPart]
    groups: int
    """The highest group number in it."""
    changes_case: bool
    fixed_bytes: int
    """Length of the literal text, in bytes."""
    references: int
    """Number of references to groups or to the whole match."""

    @classmethod
    def parse(cls, text: str) -> Replacement:
        """Parse the text after the second delimiter."""
        parts: list[ReplacementPart] = []
        at = 0
        for match in re.compile(rf"{_ESCAPE.pattern}|&", re.DOTALL).finditer(text):
            if match.start() > at:
                parts.append(encode(text[at : match.start()]))
            parts.append(_parse_part(match))
            at = match.end()
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
        """Return the replacement if all matches are *whole*; `None` if it varies or is too long."""
        if self.groups or self.changes_case:
            return None
        if self.fixed_bytes + self.references * len(whole) > _CONSTANT_BYTES:
            return None
        return b"".join(part if isinstance(part, bytes) else whole for part in self.parts)

    def max_bytes(self, match_bytes: int) -> int:
        """Return the most memory that `expand` takes for a match of *match_bytes* bytes."""
        return self.fixed_bytes + self.references * match_bytes * (_CASE_BYTES if self.changes_case else 1)

    def expand(self, text: bytes, match: RegexMatch, group_count: int) -> bytes:
        """Return the replacement of *match* in *text*; the expression has *group_count* groups."""
        group_texts: dict[int, bytes] = {}
        expanded: list[bytes | str] = []
        for part in self.parts:
            if not isinstance(part, int):
                expanded.append(part)
            elif part <= group_count:
                if part not in group_texts:
                    start, end = match.span(part)
                    group_texts[part] = text[start:end] if start >= 0 else b""
                expanded.append(group_texts[part])
        if not self.changes_case:
            return b"".join(part for part in expanded if isinstance(part, bytes))
        return _convert_case(expanded)


def _parse_part(match: re.Match[str]) -> ReplacementPart:
    if match[0] == "&":
        return 0
    escaped = _decode_escape(match)
    if escaped is not None:
        return encode(escaped)
    character = match[6]
    if character.isascii() and character.isdigit():
        return int(character)
    return character if character in _CASES else encode(character)


def _convert_case(parts: Sequence[bytes | str]) -> bytes:
    """Join *parts*, applying the case conversions that stand between them."""
    converted: list[str] = []
    mode = once = ""
    for part in parts:
        if isinstance(part, str):
            if part in "lu":
                once = part
            else:
                mode, once = part, ""
            continue
        text = decode(part)
        if not text:
            continue
        text = text.upper() if mode == "U" else text.lower() if mode == "L" else text
        if once:
            text = (text[0].upper() if once == "u" else text[0].lower()) + text[1:]
            once = ""
        converted.append(text)
    return encode("".join(converted))


def find_matches(regex: Regex, text: bytes) -> Iterator[RegexMatch]:
    """Yield all matches; an empty one directly after another match is skipped."""
    size = len(text)
    at, last = 0, -1
    while at <= size and (match := regex.search(text, at, size)) is not None:
        start, end = match.span()
        if end > start or start != last:
            yield match
            last = end
        at = end
        if end == start:
            at += 1
            while at < size and text[at] & 0xC0 == 0x80:
                at += 1
