"""Parse words and operators into pipelines of simple commands; reject unsupported syntax by position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from carrel.errors import MetacharacterError, ShellSyntaxError
from carrel.shell.language.ast import LiteralText, OperatorToken, Token, Word
from carrel.shell.language.lexer import lex

MAX_PIPELINE_COMMANDS = 100
"""Most commands of one pipeline; each of them takes a thread."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_REDIRECT = re.compile(r"([0-9]?)(>>|>&|>\||>|<)|(&>>|&>)")
_RESERVED = frozenset((
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "until", "while", "{", "}", "[[",
))  # fmt: skip
_NOT_OFFERED = {
    "&": "commands in the background",
    "(": "subshells",
    ")": "subshells",
    "<<": "here-documents",
    "<<<": "here-strings",
    "<>": "files opened for both",
    "<&": "copies of an input",
    ";;": "case",
    "|&": "|&; write 2>&1 |",
}


class Connector(StrEnum):
    """When a pipeline is run, seen from the one before it."""

    ALWAYS = ";"
    AND = "&&"
    OR = "||"


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where one stream of a command goes or comes from."""

    stream: int
    """0, 1 or 2."""
    sign: str
    """`<`, `>`, `>>`, or `>&` for another stream."""
    target: Word


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command: the variables set for it, its words and its redirects."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each of which reads what the one before it writes."""

    commands: tuple[SimpleCommand, ...]
    connector: Connector
    negated: bool


def parse(text: str, *, pipelines: bool) -> list[Pipeline]:
    """The commands of *text*; more than one, and redirects, only with *pipelines*.

    Raises:
        MetacharacterError: A sign is not allowed.
        ShellSyntaxError: It cannot be read otherwise.
    """
    tokens = _without_outer_newlines(lex(text))
    if not pipelines:
        _refuse_operators(tokens)
    return _Parser(tokens).line()


def _without_outer_newlines(tokens: list[Token]) -> list[Token]:
    begin, end = 0, len(tokens)
    while begin < end and _is(tokens[begin], "\n"):
        begin += 1
    while begin < end and _is(tokens[end - 1], "\n"):
        end -= 1
    return tokens[begin:end]


def _refuse_operators(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if isinstance(token, OperatorToken):
            sign = _sign(token)
            raise MetacharacterError.of("\\n" if sign == "\n" else sign, token.position)


@dataclass(slots=True)
class _Draft:
    """A command that is being read."""

    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)

    def finish(self) -> SimpleCommand:
        return SimpleCommand(tuple(self.assignments), tuple(self.words), tuple(self.redirects))

    def __bool__(self) -> bool:
        return bool(self.assignments or self.words or self.redirects)


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def line(self) -> list[Pipeline]:
        found: list[Pipeline] = []
        connector = Connector.ALWAYS
        while self._at < len(self._tokens):
            found.append(self._pipeline(connector))
            if self._at == len(self._tokens):
                break
            sign = self._operator()
            connector = Connector(";" if sign.text == "\n" else sign.text)
            self._skip_newlines()
            if connector is not Connector.ALWAYS and self._at == len(self._tokens):
                raise _wrong(f"nothing follows '{connector}'", sign.position)
        return found

    def _skip_newlines(self) -> None:
        while self._at < len(self._tokens) and _is(self._tokens[self._at], "\n"):
            self._at += 1

    def _position(self) -> int:
        return self._tokens[min(self._at, len(self._tokens) - 1)].position

    def _operator(self) -> OperatorToken:
        token = self._tokens[self._at]
        assert isinstance(token, OperatorToken)  # noqa: S101  # a command ends only before one
        self._at += 1
        return token

    def _pipeline(self, connector: Connector) -> Pipeline:
        negated = False
        while self._at < len(self._tokens) and _plain(self._tokens[self._at]) == "!":
            negated = not negated
            self._at += 1
        commands = [self._command()]
        while self._at < len(self._tokens) and _is(self._tokens[self._at], "|"):
            self._at += 1
            self._skip_newlines()
            if len(commands) == MAX_PIPELINE_COMMANDS:
                raise _wrong(f"more than {MAX_PIPELINE_COMMANDS} commands in one pipeline", self._position())
            commands.append(self._command())
        return Pipeline(tuple(commands), connector, negated)

    def _command(self) -> SimpleCommand:
        draft = _Draft()
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if isinstance(token, Word):
                self._at += 1
                self._add_word(draft, token)
            elif redirect := _REDIRECT.fullmatch(token.text):
                self._at += 1
                self._add_redirect(draft, token, redirect)
            elif what := _NOT_OFFERED.get(_sign(token)):
                raise MetacharacterError.of(_sign(token), token.position, f"; not supported: {what}")
            else:
                break
        if not draft:
            raise self._no_command()
        return draft.finish()

    def _add_word(self, draft: _Draft, word: Word) -> None:
        if not draft.words and (assignment := _assignment(word)):
            draft.assignments.append(assignment)
            return
        if not draft.words and word.unquoted_text in _RESERVED:
            raise _wrong(f"'{word.unquoted_text}' is not supported", word.position)
        draft.words.append(word)

    def _add_redirect(self, draft: _Draft, token: OperatorToken, found: re.Match[str]) -> None:
        if self._at == len(self._tokens) or not isinstance(self._tokens[self._at], Word):
            raise _wrong(f"nothing follows '{token.text}'", token.position)
        target = self._tokens[self._at]
        assert isinstance(target, Word)  # noqa: S101  # for the type checker
        self._at += 1
        sign = found[2] or found[3]
        stream = int(found[1]) if found[1] else (0 if sign == "<" else 1)
        if stream > 2 or (sign == "<" and stream != 0) or (sign != "<" and stream == 0):
            raise _wrong(f"'{token.text}': only <, >, 1> and 2> are supported", token.position)
        if sign == ">&":
            if target.unquoted_text not in ("1", "2"):
                raise _wrong("only streams 1 and 2 can follow '>&'", target.position)
            draft.redirects.append(Redirect(stream, ">&", target))
        elif found[3]:
            draft.redirects.append(Redirect(1, sign[1:], target))
            draft.redirects.append(Redirect(2, ">&", Word((LiteralText("1", False),), target.position)))
        else:
            draft.redirects.append(Redirect(stream, ">" if sign == ">|" else sign, target))

    def _no_command(self) -> ShellSyntaxError:
        if self._at == len(self._tokens):
            last = self._tokens[-1]
            name = last.text if isinstance(last, OperatorToken) else "!"
            return _wrong(f"nothing follows '{name}'", last.position)
        token = self._tokens[self._at]
        assert isinstance(token, OperatorToken)  # noqa: S101  # a word would have been taken
        shown = "\\n" if token.text == "\n" else token.text
        return _wrong(f"unexpected '{shown}'", token.position)


def _is(token: Token, sign: str) -> bool:
    return isinstance(token, OperatorToken) and token.text == sign


def _sign(operator: OperatorToken) -> str:
    """What it is, without the number of a stream."""
    return operator.text.lstrip("0123456789")


def _plain(token: Token) -> str | None:
    return token.unquoted_text if isinstance(token, Word) else None


def _assignment(word: Word) -> tuple[str, Word] | None:
    first = word.parts[0]
    if not isinstance(first, LiteralText) or first.quoted:
        return None
    found = _ASSIGNMENT.match(first.text)
    if found is None:
        return None
    value = (LiteralText(first.text[found.end() :], False), *word.parts[1:])
    return found[1], Word(value, word.position)


def _wrong(problem: str, position: int) -> ShellSyntaxError:
    return ShellSyntaxError(f"syntax error at character {position}: {problem}", position=position)
