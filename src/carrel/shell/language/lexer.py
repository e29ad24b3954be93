"""Split a command line into words and operators; nothing is looked up, expanded or run here.

The rules are those of POSIX for quotes, escapes and comments, and `$'...'`. What a shell would replace by the
output of another command is refused here, wherever it stands but in single quotes or behind a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from carrel.errors import MetacharacterError, ShellSyntaxError
from carrel.shell.language.ast import LiteralText, OperatorToken, ParameterExpansion, Token, Word, WordPart
from carrel.shell.text.quoting import decode, encode

MAX_COMMAND_CHARACTERS = 2**18
"""Longest command line."""

_OPERATOR = re.compile(r"[0-9]?(?:>>|>&|>\||<<<|<<|<&|<>|>|<)|&>>|&>|\|\||&&|\|&|;;|[|&;()\n]")
_UNFIT = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_PLAIN = re.compile(r"[^\s|&;()<>$`\\\"'\r]+")
_QUOTED = re.compile(r"[^$`\\\"]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDS_WORD = frozenset(" \t\n|&;()<>")
_C_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_C_NUMBER = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")


def lex(text: str) -> list[Token]:
    """The words and operators of *text*, in their order.

    Raises:
        MetacharacterError: It asks for the output of a command, or holds a carriage return.
        ShellSyntaxError: A quote is not closed, or it is too long, or holds a NUL.
    """
    if not isinstance(text, str):
        raise TypeError(f"a command must be str, not {type(text).__name__}")
    if len(text) > MAX_COMMAND_CHARACTERS:
        raise ShellSyntaxError(
            f"command is too long: {len(text)} characters, the limit is {MAX_COMMAND_CHARACTERS}"
        )
    if unfit := _UNFIT.search(text):
        problem = "a NUL" if unfit[0] == "\0" else "a lone surrogate"
        at = unfit.start() + 1
        raise ShellSyntaxError(f"syntax error at character {at}: {problem}", position=at)
    return list(_Lexer(text).tokens())


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def tokens(self) -> Iterator[Token]:
        text = self._text
        while self._at < len(text):
            character = text[self._at]
            if character in " \t":
                self._at += 1
            elif text.startswith("\\\n", self._at):
                self._at += 2
            elif character == "#":
                self._skip_comment()
            elif operator := _OPERATOR.match(text, self._at):
                yield OperatorToken(operator[0], self._at + 1)
                self._at = operator.end()
            else:
                yield self._word()

    def _skip_comment(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    def _word(self) -> Word:
        begin = self._at
        parts: list[WordPart] = []
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_WORD:
            self._read_piece(parts)
        return Word(tuple(parts), begin + 1)

    def _read_piece(self, parts: list[WordPart]) -> None:
        text = self._text
        character = text[self._at]
        if plain := _PLAIN.match(text, self._at):
            self._at = plain.end()
            parts.append(LiteralText(plain[0], False))
        elif character == "'":
            parts.append(LiteralText(self._until("'", self._at, self._at + 1), True))
        elif character == '"':
            self._read_double(parts)
        elif character == "\\":
            self._read_escape(parts)
        elif character == "$":
            self._read_dollar(parts, quoted=False)
        elif character == "`":
            raise self._refused("`")
        elif character == "\r":
            raise self._refused("\\r")
        else:
            # White space that does not separate words, such as a form feed or a no-break space.
            parts.append(LiteralText(character, False))
            self._at += 1

    def _read_escape(self, parts: list[WordPart]) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "\r":
            raise self._refused("\\r")
        if following != "\n":
            # A backslash at the very end stands for itself.
            parts.append(LiteralText(following or "\\", True))
        self._at += 2

    def _until(self, quote: str, opened: int, begin: int) -> str:
        end = self._text.find(quote, begin)
        if end < 0:
            raise self._unclosed(quote, opened)
        self._at = end + 1
        return self._text[begin:end]

    def _read_double(self, parts: list[WordPart]) -> None:
        opened = self._at
        self._at += 1
        parts.append(LiteralText("", True))
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == '"':
                self._at += 1
                return
            if run := _QUOTED.match(self._text, self._at):
                parts.append(LiteralText(run[0], True))
                self._at = run.end()
            elif character == "$":
                self._read_dollar(parts, quoted=True)
            elif character == "`":
                raise self._refused("`")
            else:
                self._read_escape_in_double(parts)
        raise self._unclosed('"', opened)

    def _read_escape_in_double(self, parts: list[WordPart]) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following != "\n":
            parts.append(
                LiteralText(following if following and following in '$`"\\' else "\\" + following, True)
            )
        self._at += 1 + len(following)

    def _read_dollar(self, parts: list[WordPart], *, quoted: bool) -> None:
        text, at = self._text, self._at
        following = text[at + 1 : at + 2]
        if following == "(":
            raise self._refused("$(")
        if name := _NAME.match(text, at + 1):
            parts.append(ParameterExpansion(name[0], quoted))
            self._at = name.end()
        elif following == "{":
            self._read_braces(parts, quoted=quoted)
        elif following == "?":
            parts.append(ParameterExpansion("?", quoted))
            self._at += 2
        elif following == "'" and not quoted:
            self._read_c_string(parts)
        elif following and following in "$!#*@-0123456789":
            raise self._wrong(f"${following} is not supported", at)
        else:
            parts.append(LiteralText("$", True))
            self._at += 1

    def _read_braces(self, parts: list[WordPart], *, quoted: bool) -> None:
        begin = self._at
        inside = self._until("}", begin, begin + 2)
        if inside != "?" and not _NAME.fullmatch(inside):
            raise self._wrong("only ${NAME} is supported in braces", begin)
        parts.append(ParameterExpansion(inside, quoted))

    def _read_c_string(self, parts: list[WordPart]) -> None:
        """Read `$'...'`, whose escapes stand for bytes."""
        opened = self._at
        self._at += 2
        found: list[bytes] = []
        text = self._text
        while self._at < len(text) and text[self._at] != "'":
            if text[self._at] != "\\":
                found.append(encode(text[self._at]))
                self._at += 1
            else:
                found.append(self._c_escape())
        if self._at >= len(text):
            raise self._unclosed("'", opened)
        self._at += 1
        joined = b"".join(found)
        if b"\0" in joined:
            raise self._wrong("a NUL", opened)
        parts.append(LiteralText(decode(joined), True))

    def _c_escape(self) -> bytes:
        following = self._text[self._at + 1 : self._at + 2]
        if number := _C_NUMBER.match(self._text, self._at + 1):
            self._at = number.end()
            return self._c_number(number)
        self._at += 1 + len(following)
        if following in _C_ESCAPES:
            return _C_ESCAPES[following].encode()
        return encode("\\" + following)

    def _c_number(self, number: re.Match[str]) -> bytes:
        if number[1] or number[4]:
            return bytes([int(number[1], 16) if number[1] else int(number[4], 8) & 0xFF])
        code = int(number[2] or number[3], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self._wrong(f"there is no character {code:#x}", number.start() - 1)
        return chr(code).encode()

    def _refused(self, character: str) -> MetacharacterError:
        return MetacharacterError.of(character, self._at + 1)

    def _unclosed(self, quote: str, opened: int) -> ShellSyntaxError:
        return self._wrong(f"quoting: {quote} is not closed", opened)

    def _wrong(self, problem: str, at: int) -> ShellSyntaxError:
        return ShellSyntaxError(f"syntax error at character {at + 1}: {problem}", position=at + 1)
