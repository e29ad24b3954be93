r"""POSIX regular expressions with GNU extensions, translated to RE2 and matched in linear time.

`translate` reads basic and extended expressions; RE2 then matches them in linear time, leftmost-longest as
POSIX requires.

Not covered: back-references are refused, since no linear-time matcher has them. `\<` and `\>` are treated as
`\b`, except that a single `.` next to them matches a word character; for all three, as for `\b` of RE2, words
consist of ASCII letters, digits and `_`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from carrel.shell.text.quoting import encode

WORD = r"\p{L}\p{M}\p{Nd}\p{Nl}_"
"""Word characters, as the content of a bracket expression."""
SPACE = r"\t-\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}\p{S}"
_CLASSES = {
    "alnum": r"\p{L}\p{M}\p{Nd}\p{Nl}",
    "alpha": r"\p{L}\p{M}\p{Nl}",
    "blank": r" \t\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{205f}\x{3000}",
    "cntrl": r"\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}",
    "digit": "0-9",
    "graph": rf"\p{{L}}\p{{M}}\p{{N}}{_PUNCTUATION}",
    "lower": r"\p{Ll}",
    "print": rf"\p{{L}}\p{{M}}\p{{N}}\p{{Zs}}{_PUNCTUATION}",
    "punct": _PUNCTUATION,
    "space": SPACE,
    "upper": r"\p{Lu}\p{Lt}",
    "xdigit": "0-9A-Fa-f",
}


class RegexError(Exception):
    """The regular expression is invalid; the message is GNU's."""


def translate_bracket(text: str, at: int) -> tuple[str, int]:
    """Translate the bracket expression whose `[` ends at *at*; return it and its end."""
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
        part, at = _translate_bracket_item(text, at)
        parts.append(part)
    content = text[begin:at]
    if len(content) > 2 and content[0] == content[-1] == ":":
        raise RegexError("character class syntax is [[:space:]], not [:space:]")
    return f"[{'^' * negated}{''.join(parts)}]", at + 1


def _translate_bracket_item(text: str, at: int) -> tuple[str, int]:
    """Translate a character, a range or a class in a bracket expression; return it and its end."""
    if text.startswith("[:", at):
        end = text.find(":]", at + 2)
        if end < 0:
            raise RegexError("Unmatched [, [^, [:, [., or [=")
        name = text[at + 2 : end]
        if name not in _CLASSES:
            raise RegexError("Invalid character class name")
        return _CLASSES[name], end + 2
    low, at = _parse_bracket_character(text, at)
    if not text.startswith("-", at) or text[at + 1 : at + 2] in ("]", ""):
        return escape_literal(low), at
    high, at = _parse_bracket_character(text, at + 1)
    if high < low:
        raise RegexError("Invalid range end")
    return f"{escape_literal(low)}-{escape_literal(high)}", at


def _parse_bracket_character(text: str, at: int) -> tuple[str, int]:
    """Parse one character in a bracket expression, also as `[.x.]` or `[=x=]`; return it and its end."""
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
    """Escape *character* so that it is literal, also in a bracket expression."""
    if character.isalnum() or not character.isascii():
        return character
    return f"\\x{ord(character):02x}"


MAX_REGEX_BYTES = 2**20
"""Most memory of each of several expressions, compiled and during matching."""
MAX_PATTERN_CHARACTERS = 2**20
"""Longest expression passed to RE2, which itself refuses much shorter ones."""
TOO_BIG = "Regular expression too big"
RE_DUP_MAX = 32767
"""Most repetitions in an interval, as POSIX allows."""
_ESCAPES = {
    "w": f"[{WORD}]", "W": f"[^{WORD}]", "s": f"[{SPACE}]", "S": f"[^{SPACE}]",
    "b": r"\b", "B": r"\B", "<": r"\b", ">": r"\b", "`": "^", "'": "$",
}  # fmt: skip
_INTERVAL = re.compile(r"([0-9]*)(,?)([0-9]*)")


class Syntax(StrEnum):
    """Syntax of a regular expression."""

    BASIC = "basic"
    EXTENDED = "extended"


class RegexMatch(Protocol):
    """One match, as `re2` returns it."""

    def span(self, group: int = 0, /) -> tuple[int, int]:
        """Return the start and end of a group; (-1, -1) if it did not participate."""
        ...

    def start(self, group: int = 0, /) -> int:
        """Return the start of a group."""
        ...

    def end(self, group: int = 0, /) -> int:
        """Return the end of a group."""
        ...


class Regex(Protocol):
    """A compiled expression, as `re2` returns it."""

    @property
    def programsize(self) -> int:
        """Most steps that matching a byte takes."""
        ...

    def search(self, text: bytes, pos: int, endpos: int, /) -> RegexMatch | None:
        """Return the leftmost match between two offsets; anchors see the text around them."""
        ...


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression translated to the syntax of RE2."""

    text: str
    literal: str | None
    """The only text that it matches, if there is just one."""
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

    With *by_line*, no match contains a newline, and `^` and `$` match at the ends of lines; with *multiline*
    only the latter. RE2 takes at most *memory_bytes* for the program and its states during matching.

    Raises:
        RegexError: RE2 rejects the expression, or it would take too much memory.
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
        # Not valid UTF-8: match bytes instead of characters.
        pattern = encode(text)
        options.encoding = re2.Options.Encoding.LATIN1
    try:
        regex: Regex = re2.compile(b"(?m)" + pattern if by_line or multiline else pattern, options)
    except re2.error as error:
        problem = _error_message(error)
    else:
        return regex
    raise RegexError(problem)


def _error_message(error: Exception) -> str:
    detail = error.args[0] if error.args else b""
    text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
    if text.startswith(("bad repetition", "invalid repetition", "pattern too large")):
        return TOO_BIG
    return text.replace("(?m)", "", 1) or "Invalid regular expression"


def translate(pattern: str, syntax: Syntax, *, strict: bool = False) -> Translation:
    """Translate a basic or extended expression to RE2.

    Constructs that POSIX leaves undefined are refused if *strict*, as in `sed`, and otherwise given the
    meaning they have in `grep`, with warnings.

    Raises:
        RegexError: The expression is invalid.
    """
    return _Translator(pattern, syntax, strict).run()


class _Translator:
    """Translates one expression."""

    def __init__(self, pattern: str, syntax: Syntax, strict: bool) -> None:
        self._text = pattern
        self._strict = strict
        self._basic = syntax is Syntax.BASIC
        self._offset = 0
        self._output: list[str] = []
        self._atom: int | None = None
        """Index in the output of the atom that a repetition would apply to."""
        self._is_start = True
        """Whether this is the start of an expression or subexpression."""
        self._open_groups: list[int] = []
        self._group_count = 0
        self._closed_groups: set[int] = set()
        self._open_numbers: list[int] = []
        self._literal: list[str] | None = []
        self._is_word_start = False
        self._warnings: list[str] = []

    def run(self) -> Translation:
        while self._offset < len(self._text):
            character = self._text[self._offset]
            self._offset += 1
            if character == "\\":
                self._translate_escape()
            else:
                self._translate_character(character)
        if self._open_groups:
            raise RegexError("Unmatched ( or \\(")
        literal = None if self._literal is None else "".join(self._literal)
        return Translation("".join(self._output), literal, self._group_count, tuple(self._warnings))

    def _translate_escape(self) -> None:
        if self._offset == len(self._text):
            raise RegexError("Trailing backslash")
        character = self._text[self._offset]
        self._offset += 1
        if self._basic and character in "(){|+?":
            self._translate_operator(character)
        elif character in "123456789":
            self._reject_reference(int(character))
        elif character in _ESCAPES:
            if character == ">" and self._output[-1:] == ["."]:
                self._output[-1] = r"\w"
            self._add(_ESCAPES[character])
            self._is_word_start = character == "<"
        else:
            self._add_literal(character)

    def _reject_reference(self, number: int) -> None:
        if number not in self._closed_groups:
            raise RegexError("Invalid back reference")
        raise RegexError("back-references are not supported")

    def _translate_character(self, character: str) -> None:
        if character == "*" or (not self._basic and character in "(){|+?"):
            self._translate_operator(character)
        elif character == ".":
            self._add(r"\w" if self._is_word_start and not self._is_repeated() else ".")
        elif character == "[":
            translated, self._offset = translate_bracket(self._text, self._offset)
            self._add(translated)
        elif (character == "^" and self._is_start_anchor()) or (character == "$" and self._is_end_anchor()):
            starts = self._is_start
            self._add(f"(?:{character})")
            if character == "^":
                # A star after the anchor is literal, as at the start.
                self._is_start = starts
        else:
            self._add_literal(character)

    def _is_repeated(self) -> bool:
        """Whether a repetition operator follows."""
        following = self._text[self._offset : self._offset + 2]
        return following.startswith(("*", "\\+", "\\?", "\\{") if self._basic else ("*", "+", "?", "{"))

    def _is_start_anchor(self) -> bool:
        """Whether a `^` here is an anchor."""
        if not self._basic:
            return True
        return self._is_start and (not self._output or self._output[-1] != "(?:^)")

    def _is_end_anchor(self) -> bool:
        """Whether a `$` just before is an anchor."""
        return (
            not self._basic
            or self._offset == len(self._text)
            or self._text[self._offset :][:2] in ("\\)", "\\|")
        )

    def _add(self, text: str) -> None:
        self._literal = None
        self._atom = len(self._output)
        self._output.append(text)
        self._is_start = self._is_word_start = False

    def _add_literal(self, character: str) -> None:
        literal = self._literal
        self._add(escape_literal(character))
        self._literal = literal
        if literal is not None:
            literal.append(character)

    def _translate_operator(self, character: str) -> None:
        if character == "(":
            self._open_group()
        elif character == ")":
            self._close_group()
        elif character == "|":
            self._output.append("|")
            self._literal, self._atom, self._is_start = None, None, True
        elif character == "{":
            self._translate_interval()
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

    def _open_group(self) -> None:
        self._group_count += 1
        self._open_numbers.append(self._group_count)
        self._open_groups.append(len(self._output))
        self._output.append("(")
        self._literal, self._atom, self._is_start = None, None, True

    def _close_group(self) -> None:
        if not self._open_groups and not self._basic and not self._strict:
            self._add_literal(")")
            return
        if not self._open_groups:
            raise RegexError("Unmatched ) or \\)")
        self._output.append(")")
        self._closed_groups.add(self._open_numbers.pop())
        self._atom = self._open_groups.pop()
        self._is_start = False

    def _repeat(self, quantifier: str) -> None:
        atom = self._atom if self._atom is not None else len(self._output)
        repeated = "".join(self._output[atom:])
        # In its own group, so that it can be repeated again.
        self._output[atom:] = [f"(?:{repeated}{quantifier})"]
        self._literal = None

    def _translate_interval(self) -> None:
        """Translate the interval after `{`; an invalid one is literal in an extended expression."""
        if self._basic and self._is_start and not self._strict:
            self._add_literal("{")
            return
        match = _INTERVAL.match(self._text, self._offset)
        end = "\\}" if self._basic else "}"
        is_whole = match is not None and self._text.startswith(end, match.end())
        if match is None or not is_whole or not (match[1] or match[2]):
            self._translate_invalid_interval(end)
            return
        self._offset = match.end() + len(end)
        low, high = int(match[1][:9] or 0), match[3][:9]
        if high and int(high) < low:
            raise RegexError("Invalid content of \\{\\}")
        if max(low, int(high or 0)) > RE_DUP_MAX:
            raise RegexError(TOO_BIG)
        if self._is_start:
            self._warn("{...} at start of expression")
            return
        self._repeat(f"{{{low}}}" if not match[2] else f"{{{low},{high}}}")

    def _translate_invalid_interval(self, end: str) -> None:
        if not self._basic and not self._strict:
            self._add_literal("{")
        elif end in self._text[self._offset :]:
            raise RegexError("Invalid content of \\{\\}")
        else:
            raise RegexError("Unmatched \\{")
