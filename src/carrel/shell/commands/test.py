"""Evaluate a conditional expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.policy.rules import Access
from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.text.quoting import encode
from carrel.values import FileInfo, FileKind

USAGE = "EXPRESSION"
NOTES = """
Files:   -e -f -d -L -h -r -w -x -s FILE, FILE -nt -ot -ef FILE
Strings: -n -z STRING, STRING = == != < > STRING
Numbers: N -eq -ne -lt -le -gt -ge N
Operators: !, ( ), -a, -o

The status is 0 if EXPRESSION is true, 1 if false, 2 if not valid. [ is the same, with a closing ].
"""
_MAX_NESTING = 100
"""Deepest nesting of parentheses."""
_INTEGER = re.compile(r"[ \t]*([+-]?[0-9]{1,4000})[ \t]*")


class _ExpressionError(Exception):
    """An expression that is not valid."""


def accesses(argv: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands of file tests, whose metadata is read."""
    for before, sign, after in zip(["", *argv], argv, argv[1:], strict=False):
        if sign in _FILE_COMPARISONS:
            yield from inspects([before, after])
        elif sign in _FILE_TESTS and sign != "-a":
            yield from inspects([after])


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Return status 0 if the expression is true."""
    words = list(argv)
    if ctx.name == "[" and (not words or words.pop() != "]"):
        ctx.error("missing `]'", status=2)
        return ctx.status
    try:
        return 0 if _Expression(ctx, words).is_true() else 1
    except _ExpressionError as error:
        ctx.error(str(error), status=2)
        return ctx.status


class _Expression:
    """An expression, evaluated by its number of words as POSIX says, or by precedence if there are many."""

    def __init__(self, ctx: Context, words: Sequence[str]) -> None:
        self._ctx = ctx
        self._words = words
        self._at = 0
        self._depth = 0

    def is_true(self) -> bool:
        words = self._words
        negated = False
        while 1 < len(words) <= 4 and words[0] == "!" and not (len(words) == 3 and words[1] in _BINARY):
            words, negated = words[1:], not negated
        return self._evaluate(words) is not negated

    def _evaluate(self, words: Sequence[str]) -> bool:
        if not words:
            return False
        if len(words) == 1:
            return bool(words[0])
        if len(words) == 2:
            return self._unary(words[0], words[1])
        if len(words) == 3:
            return self._evaluate_three(*words)
        if len(words) == 4 and words[0] == "(" and words[3] == ")":
            return self._unary(words[1], words[2])
        value = self._or_expression()
        if self._at < len(self._words):
            word = self._words[self._at]
            if word.startswith("-"):
                raise _ExpressionError(f"syntax error: `{word}' unexpected")
            raise _ExpressionError("too many arguments")
        return value

    def _evaluate_three(self, first: str, second: str, third: str) -> bool:
        if second in _BINARY:
            return self._binary(first, second, third)
        if second in ("-a", "-o"):
            return bool(first and third) if second == "-a" else bool(first or third)
        if first == "!":
            return not self._unary(second, third)
        if first == "(" and third == ")":
            return bool(second)
        raise _ExpressionError(f"{second}: binary operator expected")

    # More than four words: recursive descent

    def _peek(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else None

    def _next(self) -> str:
        word = self._peek()
        if word is None:
            raise _ExpressionError("argument expected")
        self._at += 1
        return word

    def _or_expression(self) -> bool:
        value = self._and_expression()
        while self._peek() == "-o":
            self._at += 1
            value = self._and_expression() or value
        return value

    def _and_expression(self) -> bool:
        value = self._not_expression()
        while self._peek() == "-a":
            self._at += 1
            value = self._not_expression() and value
        return value

    def _not_expression(self) -> bool:
        negated = False
        while self._peek() == "!" and self._peek(1) is not None and self._peek(1) not in _BINARY:
            self._at += 1
            negated = not negated
        return self._primary() is not negated

    def _primary(self) -> bool:
        first, second = self._next(), self._peek()
        if first == "(":
            return self._group()
        if second in _BINARY and self._peek(1) is not None:
            self._at += 1
            return self._binary(first, str(second), self._next())
        if first in _UNARY and second is not None:
            return self._unary(first, self._next())
        return bool(first)

    def _group(self) -> bool:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise _ExpressionError(f"more than {_MAX_NESTING} nested parentheses")
        value = self._or_expression()
        if self._peek() != ")":
            word = self._peek()
            raise _ExpressionError("`)' expected" if word is None else f"`)' expected, found {word}")
        self._at += 1
        self._depth -= 1
        return value

    # One test

    def _unary(self, sign: str, word: str) -> bool:
        if sign == "!":
            return not word
        if sign == "-n":
            return bool(word)
        if sign == "-z":
            return not word
        if sign == "-t":
            _parse_integer(word)
            return False
        test = _FILE_TESTS.get(sign)
        if test is None:
            raise _ExpressionError(f"{sign}: unary operator expected")
        info = self._stat(word, follow=sign not in ("-L", "-h"))
        return info is not None and test(self._ctx, word, info)

    def _binary(self, first: str, sign: str, second: str) -> bool:
        if sign in _STRINGS:
            return _STRINGS[sign](encode(first), encode(second))
        if sign in _NUMBERS:
            return _NUMBERS[sign](_parse_integer(first), _parse_integer(second))
        return _FILE_COMPARISONS[sign](self._stat(first), self._stat(second))

    def _stat(self, operand: str, *, follow: bool = True) -> FileInfo | None:
        try:
            return self._ctx.stat(operand, follow=follow)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError:
            return None


def _parse_integer(text: str) -> int:
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise _ExpressionError(f"{text}: integer expression expected")
    return int(found[1])


def _is_writable(ctx: Context, operand: str, info: FileInfo) -> bool:
    return bool(info.mode & 0o222) and ctx.workspace.explain(ctx.path(operand), Access.WRITE).allowed


def _is_newer(one: FileInfo | None, other: FileInfo | None) -> bool:
    return one is not None and (other is None or one.modified_ns > other.modified_ns)


def _is_same(one: FileInfo | None, other: FileInfo | None) -> bool:
    return one is not None and other is not None and one.version == other.version


_FILE_TESTS: dict[str, Callable[[Context, str, FileInfo], bool]] = {
    "-e": lambda ctx, operand, info: True,
    "-a": lambda ctx, operand, info: True,
    "-f": lambda ctx, operand, info: info.is_file,
    "-d": lambda ctx, operand, info: info.is_directory,
    "-L": lambda ctx, operand, info: info.kind is FileKind.LINK,
    "-h": lambda ctx, operand, info: info.kind is FileKind.LINK,
    "-r": lambda ctx, operand, info: True,
    "-w": _is_writable,
    "-x": lambda ctx, operand, info: bool(info.mode & 0o111),
    "-s": lambda ctx, operand, info: info.host_bytes > 0,
    "-O": lambda ctx, operand, info: True,
    "-G": lambda ctx, operand, info: True,
    **{sign: lambda ctx, operand, info: False for sign in ("-b", "-c", "-g", "-k", "-o", "-p", "-S", "-u")},
}
_UNARY = {*_FILE_TESTS, "-n", "-z", "-t"}
_STRINGS: dict[str, Callable[[bytes, bytes], bool]] = {
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
}
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda one, other: one == other,
    "-ne": lambda one, other: one != other,
    "-lt": lambda one, other: one < other,
    "-le": lambda one, other: one <= other,
    "-gt": lambda one, other: one > other,
    "-ge": lambda one, other: one >= other,
}
_FILE_COMPARISONS: dict[str, Callable[[FileInfo | None, FileInfo | None], bool]] = {
    "-nt": _is_newer,
    "-ot": lambda one, other: _is_newer(other, one),
    "-ef": _is_same,
}
_BINARY = {*_STRINGS, *_NUMBERS, *_FILE_COMPARISONS}
