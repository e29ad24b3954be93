r"""POSIX regular expressions with GNU extensions, translated to RE2 and matched in linear time.

Basic and extended expressions are read by one `translate`; RE2 then matches them in linear time, leftmost and
longest as POSIX wants.

Not covered: back-references, which no linear matcher has, are refused. `\<` and `\>` are taken for `\b`,
though a single `.` next to them is a word character; for all three, as for `\b` of RE2, words are made of
ASCII letters, digits and `_`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from carrel.shell.text.quoting import encode

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


def translate_bracket(text: str, at: int) -> tuple[str, int]:
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
        return escape_literal(low), at
    high, at = _bracket_character(text, at + 1)
    if high < low:
        raise RegexError("Invalid range end")
    return f"{escape_literal(low)}-{escape_literal(high)}", at


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


def escape_literal(character: str) -> str:
    """A character that stands for itself, also in a bracket."""
    if character.isalnum() or not character.isascii():
        return character
    return f"\\x{ord(character):02x}"


MAX_REGEX_BYTES = 2**20
"""Most memory that each of several expressions may take, compiled and while it matches."""
MAX_PATTERN_CHARACTERS = 2**20
"""Longest expression that is compiled; RE2 refuses those that are much shorter."""
TOO_BIG = "Regular expression too big"
RE_DUP_MAX = 32767
"""The most repetitions that POSIX lets an interval ask for."""
_ESCAPES = {
    "w": f"[{WORD}]", "W": f"[^{WORD}]", "s": f"[{SPACE}]", "S": f"[^{SPACE}]",
    "b": r"\b", "B": r"\B", "<": r"\b", ">": r"\b", "`": "^", "'": "$",
}  # fmt: skip
_INTERVAL = re.compile(r"([0-9]*)(,?)([0-9]*)")


class Syntax(StrEnum):
    """The kinds of regular expressions."""

    BASIC = "basic"
    EXTENDED = "extended"


class RegexMatch(Protocol):
    """One match, as `re2` tells it."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Where a group begins and ends; (-1, -1) if it took no part."""
        ...

    def start(self, group: int = 0, /) -> int:
        """Where it begins."""
        ...

    def end(self, group: int = 0, /) -> int:
        """Where it ends."""
        ...


class Regex(Protocol):
    """A compiled expression, as `re2` makes them."""

    @property
    def programsize(self) -> int:
        """How many steps matching a byte takes at most."""
        ...

    def search(self, text: bytes, pos: int, endpos: int, /) -> RegexMatch | None:
        """The leftmost match between two offsets; what lies around them is looked at by anchors."""
        ...


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression in the words of RE2."""

    text: str
    literal: str | None
    """What it matches, if that is a single text."""
    groups: int
    warnings: tuple[str, ...]


def compile_regex(
    text: str,
    *,
    ignore_case: bool = False,
    by_line: bool = False,
    multiline: bool = False,
    longest: bool = True,
    memory_bytes: int = 8 * MAX_REGEX_BYTES,
) -> Regex:
    """Compile an expression of RE2.

    With *by_line*, no match holds a newline and `^` and `$` stand for the ends of lines; with *multiline*
    only the latter. RE2 takes at most *memory_bytes*, for the program and for its states while it matches.

    Raises:
        RegexError: RE2 does not know it, or it would take too much memory.
    """
    import re2

    if len(text) > MAX_PATTERN_CHARACTERS:
        raise RegexError(TOO_BIG)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory_bytes
    options.longest_match = longest
    options.case_sensitive = not ignore_case
    options.never_nl = by_line
    options.dot_nl = not by_line
    try:
        pattern = text.encode()
    except UnicodeEncodeError:
        # No valid UTF-8: bytes are then characters.
        pattern = encode(text)
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        regex: Regex = re2.compile(b"(?m)" + pattern if by_line or multiline else pattern, options)
    except re2.error as error:
        problem = _reason(error)
    else:
        return regex
    raise RegexError(problem)


def _reason(error: Exception) -> str:
    detail = error.args[0] if error.args else b""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    if text.startswith(("bad repetition", "invalid repetition", "pattern too large")):
        return TOO_BIG
    return text.replace("(?m)", "", 1) or "Invalid regular expression"


def translate(pattern: str, syntax: Syntax, *, strict: bool = False) -> Translation:
    """Read a basic or an extended expression.

    What has no meaning is refused if *strict*, as by `sed`, and otherwise taken for what it may mean, as by
    `grep`.

    Raises:
        RegexError: It is none.
    """
    return _Translator(pattern, syntax, strict).run()


class _Translator:
    """One expression on its way."""

    def __init__(self, pattern: str, syntax: Syntax, strict: bool) -> None:
        self._text = pattern
        self._strict = strict
        self._basic = syntax is Syntax.BASIC
        self._at = 0
        self._out: list[str] = []
        self._atom: int | None = None
        """Where in the output what a repetition would repeat begins."""
        self._is_start = True
        """Whether an expression or subexpression begins here."""
        self._opened: list[int] = []
        self._groups = 0
        self._closed: set[int] = set()
        self._numbers: list[int] = []
        self._literal: list[str] | None = []
        self._begins_word = False
        self._warnings: list[str] = []

    def run(self) -> Translation:
        while self._at < len(self._text):
            character = self._text[self._at]
            self._at += 1
            if character == "\\":
                self._escape()
            else:
                self._plain(character)
        if self._opened:
            raise RegexError("Unmatched ( or \\(")
        literal = None if self._literal is None else "".join(self._literal)
        return Translation("".join(self._out), literal, self._groups, tuple(self._warnings))

    def _escape(self) -> None:
        if self._at == len(self._text):
            raise RegexError("Trailing backslash")
        character = self._text[self._at]
        self._at += 1
        if self._basic and character in "(){|+?":
            self._operator(character)
        elif character in "123456789":
            self._refuse_reference(int(character))
        elif character in _ESCAPES:
            if character == ">" and self._out[-1:] == ["."]:
                self._out[-1] = r"\w"
            self._add(_ESCAPES[character])
            self._begins_word = character == "<"
        else:
            self._add_literal(character)

    def _refuse_reference(self, number: int) -> None:
        if number not in self._closed:
            raise RegexError("Invalid back reference")
        raise RegexError("back-references are not supported")

    def _plain(self, character: str) -> None:
        if character == "*" or (not self._basic and character in "(){|+?"):
            self._operator(character)
        elif character == ".":
            self._add(r"\w" if self._begins_word and not self._is_repeated() else ".")
        elif character == "[":
            translated, self._at = translate_bracket(self._text, self._at)
            self._add(translated)
        elif (character == "^" and self._begins()) or (character == "$" and self._ends()):
            starts = self._is_start
            self._add(f"(?:{character})")
            if character == "^":
                # A star after it repeats nothing, as at the start.
                self._is_start = starts
        else:
            self._add_literal(character)

    def _is_repeated(self) -> bool:
        """Whether a repetition follows."""
        following = self._text[self._at : self._at + 2]
        return following.startswith(("*", "\\+", "\\?", "\\{") if self._basic else ("*", "+", "?", "{"))

    def _begins(self) -> bool:
        """Whether a `^` here is an anchor."""
        if not self._basic:
            return True
        return self._is_start and (not self._out or self._out[-1] != "(?:^)")

    def _ends(self) -> bool:
        """Whether a `$` before here is an anchor."""
        return not self._basic or self._at == len(self._text) or self._text[self._at :][:2] in ("\\)", "\\|")

    def _add(self, text: str) -> None:
        self._literal = None
        self._atom = len(self._out)
        self._out.append(text)
        self._is_start = self._begins_word = False

    def _add_literal(self, character: str) -> None:
        literal = self._literal
        self._add(escape_literal(character))
        self._literal = literal
        if literal is not None:
            literal.append(character)

    def _operator(self, character: str) -> None:
        if character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "|":
            self._out.append("|")
            self._literal, self._atom, self._is_start = None, None, True
        elif character == "{":
            self._interval()
        elif self._basic and self._is_start:
            self._add_literal(character)
        elif self._is_start:
            self._warn(f"{character} at start of expression")
        else:
            self._repeat(character)

    def _warn(self, warning: str) -> None:
        if self._strict:
            raise RegexError("Invalid preceding regular expression")
        self._warnings.append(warning)

    def _open(self) -> None:
        self._groups += 1
        self._numbers.append(self._groups)
        self._opened.append(len(self._out))
        self._out.append("(")
        self._literal, self._atom, self._is_start = None, None, True

    def _close(self) -> None:
        if not self._opened and not self._basic and not self._strict:
            self._add_literal(")")
            return
        if not self._opened:
            raise RegexError("Unmatched ) or \\)")
        self._out.append(")")
        self._closed.add(self._numbers.pop())
        self._atom = self._opened.pop()
        self._is_start = False

    def _repeat(self, quantifier: str) -> None:
        atom = self._atom if self._atom is not None else len(self._out)
        repeated = "".join(self._out[atom:])
        # In a group of its own, so that it can be repeated again.
        self._out[atom:] = [f"(?:{repeated}{quantifier})"]
        self._literal = None

    def _interval(self) -> None:
        """Read the interval after `{`; one that is none is text in an extended expression."""
        if self._basic and self._is_start and not self._strict:
            self._add_literal("{")
            return
        found = _INTERVAL.match(self._text, self._at)
        end = "\\}" if self._basic else "}"
        is_whole = found is not None and self._text.startswith(end, found.end())
        if found is None or not is_whole or not (found[1] or found[2]):
            self._no_interval(end)
            return
        self._at = found.end() + len(end)
        low, high = int(found[1][:9] or 0), found[3][:9]
        if high and int(high) < low:
            raise RegexError("Invalid content of \\{\\}")
        if max(low, int(high or 0)) > RE_DUP_MAX:
            raise RegexError(TOO_BIG)
        if self._is_start:
            self._warn("{...} at start of expression")
            return
        self._repeat(f"{{{low}}}" if not found[2] else f"{{{low},{high}}}")

    def _no_interval(self, end: str) -> None:
        if not self._basic and not self._strict:
            self._add_literal("{")
        elif end in self._text[self._at :]:
            raise RegexError("Invalid content of \\{\\}")
        else:
            raise RegexError("Unmatched \\{")
