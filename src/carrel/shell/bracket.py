"""Bracket expressions of POSIX, as `[[:alpha:]_-]`, in the words of RE2."""

from __future__ import annotations

WORD = r"\p{L}\p{M}\p{Nd}\p{Nl}_"
"""What words are made of, as it stands in a bracket."""
SPACE = r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
_PUNCT = r"!-/:-@\[-`{-~\p{P}\p{S}"
_CLASSES = {
    "alnum": r"\p{L}\p{M}\p{Nd}\p{Nl}",
    "alpha": r"\p{L}\p{M}\p{Nl}",
    "blank": r" \t\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}",
    "cntrl": r"\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}",
    "digit": "0-9",
    "graph": rf"\p{{L}}\p{{M}}\p{{N}}{_PUNCT}",
    "lower": r"\p{Ll}",
    "print": rf"\p{{L}}\p{{M}}\p{{N}}\p{{Zs}}{_PUNCT}",
    "punct": _PUNCT,
    "space": SPACE,
    "upper": r"\p{Lu}\p{Lt}",
    "xdigit": "0-9A-Fa-f",
}


class RegexError(Exception):
    """It is no regular expression; the message is GNU's."""


def bracket(text: str, at: int) -> tuple[str, int]:
    """The bracket expression whose `[` ends at *at*, and where it ends."""
    begin = at
    negated = text.startswith("^", at)
    at += negated
    parts: list[str] = []
    first = at
    while True:
        if at >= len(text):
            raise RegexError("Unmatched [, [^, [:, [., or [=")
        if text[at] == "]" and at > first:
            break
        part, at = _bracket_item(text, at)
        parts.append(part)
    content = text[begin:at]
    if len(content) > 2 and content[0] == content[-1] == ":":
        raise RegexError("character class syntax is [[:space:]], not [:space:]")
    return f"[{'^' * negated}{''.join(parts)}]", at + 1


def _bracket_item(text: str, at: int) -> tuple[str, int]:
    """A character, a range or a class in a bracket expression, and where it ends."""
    if text.startswith("[:", at):
        end = text.find(":]", at + 2)
        if end < 0:
            raise RegexError("Unmatched [, [^, [:, [., or [=")
        name = text[at + 2 : end]
        if name not in _CLASSES:
            raise RegexError("Invalid character class name")
        return _CLASSES[name], end + 2
    low, at = _bracket_character(text, at)
    if not text.startswith("-", at) or text[at + 1 : at + 2] in ("]", ""):
        return escaped(low), at
    high, at = _bracket_character(text, at + 1)
    if high < low:
        raise RegexError("Invalid range end")
    return f"{escaped(low)}-{escaped(high)}", at


def _bracket_character(text: str, at: int) -> tuple[str, int]:
    """One character in a bracket expression, be it written `[.x.]` or `[=x=]`, and where it ends."""
    sign = text[at + 1 : at + 2]
    if text[at] != "[" or sign not in (".", "="):
        return text[at], at + 1
    end = text.find(f"{sign}]", at + 2)
    if end < 0:
        raise RegexError("Unmatched [, [^, [:, [., or [=")
    if end != at + 3:
        raise RegexError("Invalid collation character")
    return text[at + 2], end + 2


def escaped(character: str) -> str:
    """A character that stands for itself, also in a bracket."""
    if character.isalnum() or not character.isascii():
        return character
    return f"\\x{ord(character):02x}"
