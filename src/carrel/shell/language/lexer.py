"""Split a command line into words and operators; nothing is looked up, expanded or run here.

Quotes, escapes and comments follow the rules of POSIX, with `$'...'` in addition. Command substitutions are
refused here wherever they appear, except in single quotes and after a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from carrel.errors import MetacharacterError, ShellSyntaxError
from carrel.shell.language.ast import LiteralText, OperatorToken, ParameterExpansion, Token, Word, WordPart
from carrel.shell.text.quoting import decode, encode

MAX_COMMAND_CHARACTERS = 2**18
"""Longest command line, in characters."""

_OPERATOR = re.compile(r"[0-9]?(?:>>|>&|>\||<<<|<<|<&|<>|>|<)|&>>|&>|\|\||&&|\|&|;;|[|&;()\n]")
_INVALID = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_UNQUOTED = re.compile(r"[^\s|&;()<>$`\\\"'\r]+")
_DOUBLE_QUOTED = re.compile(r"[^$`\\\"]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD_DELIMITERS = frozenset(" \t\n|&;()<>")
_C_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_C_NUMERIC_ESCAPE = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")


def lex(text: str) -> list[Token]:
    """Return the words and operators of *text* in order.

    Raises:
        MetacharacterError: The text has a command substitution or a carriage return.
        ShellSyntaxError: A quote is not closed, or the text is too long, or has a NUL or a lone surrogate.
    """
    if len(text) > MAX_COMMAND_CHARACTERS:
        raise ShellSyntaxError(
            f"command is too long: {len(text)} characters, the limit is {MAX_COMMAND_CHARACTERS}"
        )
    if invalid := _INVALID.search(text):
        problem = "a NUL" if invalid[0] == "\0" else "a lone surrogate"
        position = invalid.start() + 1
        raise ShellSyntaxError(f"syntax error at character {position}: {problem}", position=position)
    return list(_Lexer(text).tokens())


class _Lexer:
    """Reads one line; each `_read_*` method consumes one construct at the current offset."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0

    def tokens(self) -> Iterator[Token]:
        text = self._text
        while self._offset < len(text):
            character = text[self._offset]
            if character in " \t":
                self._offset += 1
            elif text.startswith("\\\n", self._offset):
                self._offset += 2
            elif character == "#":
                self._skip_comment()
            elif operator := _OPERATOR.match(text, self._offset):
                yield OperatorToken(operator[0], self._offset + 1)
                self._offset = operator.end()
            else:
                yield self._read_word()

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._offset)
        self._offset = len(self._text) if end < 0 else end

    def _read_word(self) -> Word:
        begin = self._offset
        parts: list[WordPart] = []
        while self._offset < len(self._text) and self._text[self._offset] not in _WORD_DELIMITERS:
            self._read_part(parts)
        return Word(tuple(parts), begin + 1)

    def _read_part(self, parts: list[WordPart]) -> None:
        text = self._text
        character = text[self._offset]
        if plain := _UNQUOTED.match(text, self._offset):
            self._offset = plain.end()
            parts.append(LiteralText(plain[0], False))
        elif character == "'":
            parts.append(LiteralText(self._read_until("'", self._offset, self._offset + 1), True))
        elif character == '"':
            self._read_double_quoted(parts)
        elif character == "\\":
            self._read_escape(parts)
        elif character == "$":
            self._read_expansion(parts, quoted=False)
        elif character == "`":
            raise self._metacharacter_error("`")
        elif character == "\r":
            raise self._metacharacter_error("\\r")
        else:
            # Whitespace that does not separate words, such as a form feed or a no-break space.
            parts.append(LiteralText(character, False))
            self._offset += 1

    def _read_escape(self, parts: list[WordPart]) -> None:
        following = self._text[self._offset + 1 : self._offset + 2]
        if following == "\r":
            raise self._metacharacter_error("\\r")
        if following != "\n":
            # A backslash at the end of the line is literal.
            parts.append(LiteralText(following or "\\", True))
        self._offset += 2

    def _read_until(self, quote: str, start: int, begin: int) -> str:
        end = self._text.find(quote, begin)
        if end < 0:
            raise self._unclosed_error(quote, start)
        self._offset = end + 1
        return self._text[begin:end]

    def _read_double_quoted(self, parts: list[WordPart]) -> None:
        start = self._offset
        self._offset += 1
        parts.append(LiteralText("", True))
        while self._offset < len(self._text):
            character = self._text[self._offset]
            if character == '"':
                self._offset += 1
                return
            if run := _DOUBLE_QUOTED.match(self._text, self._offset):
                parts.append(LiteralText(run[0], True))
                self._offset = run.end()
            elif character == "$":
                self._read_expansion(parts, quoted=True)
            elif character == "`":
                raise self._metacharacter_error("`")
            else:
                self._read_double_quoted_escape(parts)
        raise self._unclosed_error('"', start)

    def _read_double_quoted_escape(self, parts: list[WordPart]) -> None:
        following = self._text[self._offset + 1 : self._offset + 2]
        if following != "\n":
            parts.append(
                LiteralText(following if following and following in '$`"\\' else "\\" + following, True)
            )
        self._offset += 1 + len(following)

    def _read_expansion(self, parts: list[WordPart], *, quoted: bool) -> None:
        text, at = self._text, self._offset
        following = text[at + 1 : at + 2]
        if following == "(":
            raise self._metacharacter_error("$(")
        if match := _NAME.match(text, at + 1):
            parts.append(ParameterExpansion(match[0], quoted))
            self._offset = match.end()
        elif following == "{":
            self._read_braced_name(parts, quoted=quoted)
        elif following == "?":
            parts.append(ParameterExpansion("?", quoted))
            self._offset += 2
        elif following == "'" and not quoted:
            self._read_c_string(parts)
        elif following and following in "$!#*@-0123456789":
            raise self._syntax_error(f"${following} is not supported", at)
        else:
            parts.append(LiteralText("$", True))
            self._offset += 1

    def _read_braced_name(self, parts: list[WordPart], *, quoted: bool) -> None:
        begin = self._offset
        name = self._read_until("}", begin, begin + 2)
        if name != "?" and not _NAME.fullmatch(name):
            raise self._syntax_error("only ${NAME} is supported in braces", begin)
        parts.append(ParameterExpansion(name, quoted))

    def _read_c_string(self, parts: list[WordPart]) -> None:
        """Read `$'...'`, in which escapes denote bytes."""
        start = self._offset
        self._offset += 2
        found: list[bytes] = []
        text = self._text
        while self._offset < len(text) and text[self._offset] != "'":
            if text[self._offset] != "\\":
                found.append(encode(text[self._offset]))
                self._offset += 1
            else:
                found.append(self._read_c_escape())
        if self._offset >= len(text):
            raise self._unclosed_error("'", start)
        self._offset += 1
        joined = b"".join(found)
        if b"\0" in joined:
            raise self._syntax_error("a NUL", start)
        parts.append(LiteralText(decode(joined), True))

    def _read_c_escape(self) -> bytes:
        following = self._text[self._offset + 1 : self._offset + 2]
        if number := _C_NUMERIC_ESCAPE.match(self._text, self._offset + 1):
            self._offset = number.end()
            return self._decode_numeric_escape(number)
        self._offset += 1 + len(following)
        if following in _C_ESCAPES:
            return _C_ESCAPES[following].encode()
        return encode("\\" + following)

    def _decode_numeric_escape(self, number: re.Match[str]) -> bytes:
        if number[1] or number[4]:
            return bytes([int(number[1], 16) if number[1] else int(number[4], 8) & 0xFF])
        code = int(number[2] or number[3], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self._syntax_error(f"there is no character {code:#x}", number.start() - 1)
        return chr(code).encode()

    def _metacharacter_error(self, character: str) -> MetacharacterError:
        return MetacharacterError.of(character, self._offset + 1)

    def _unclosed_error(self, quote: str, start: int) -> ShellSyntaxError:
        return self._syntax_error(f"quoting: {quote} is not closed", start)

    def _syntax_error(self, problem: str, at: int) -> ShellSyntaxError:
        return ShellSyntaxError(f"syntax error at character {at + 1}: {problem}", position=at + 1)
