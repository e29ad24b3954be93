"""Parse words and operators into pipelines of simple commands; reject unsupported syntax by position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from carrel.errors import MetacharacterError, ShellSyntaxError
from carrel.shell.language.ast import (
    Connector,
    LiteralText,
    OperatorToken,
    Pipeline,
    Redirect,
    SimpleCommand,
    Token,
    Word,
)
from carrel.shell.language.lexer import lex

MAX_PIPELINE_COMMANDS = 100
"""Most commands in one pipeline; each takes a thread."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_REDIRECT = re.compile(r"([0-9]?)(>>|>&|>\||>|<)|(&>>|&>)")
_RESERVED_WORDS = frozenset((
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then",
    "until", "while", "{", "}", "[[",
))  # fmt: skip
_UNSUPPORTED_OPERATORS = {
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


def parse(text: str, *, pipelines: bool) -> list[Pipeline]:
    """Parse a command line; more than one command, and redirections, are allowed only with *pipelines*.

    Raises:
        MetacharacterError: The line has an operator that is not allowed.
        ShellSyntaxError: The line has another syntax error.
    """
    tokens = _strip_newlines(lex(text))
    if not pipelines:
        _reject_operators(tokens)
    return _LineParser(tokens).parse_line()


def _strip_newlines(tokens: list[Token]) -> list[Token]:
    begin, end = 0, len(tokens)
    while begin < end and _is_operator(tokens[begin], "\n"):
        begin += 1
    while begin < end and _is_operator(tokens[end - 1], "\n"):
        end -= 1
    return tokens[begin:end]


def _reject_operators(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if isinstance(token, OperatorToken):
            operator = _without_stream(token)
            raise MetacharacterError.of("\\n" if operator == "\n" else operator, token.position)


@dataclass(slots=True)
class _CommandBuilder:
    """A command that is still being parsed."""

    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)

    def build(self) -> SimpleCommand:
        return SimpleCommand(tuple(self.assignments), tuple(self.words), tuple(self.redirects))

    def __bool__(self) -> bool:
        return bool(self.assignments or self.words or self.redirects)


class _LineParser:
    """Recursive-descent parser of one line: each `_parse_*` method consumes one rule of the grammar."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._index = 0

    def _peek(self) -> Token | None:
        """The next token; `None` at the end of the line."""
        return self._tokens[self._index] if self._index < len(self._tokens) else None

    def parse_line(self) -> list[Pipeline]:
        pipelines: list[Pipeline] = []
        connector = Connector.ALWAYS
        while self._peek() is not None:
            pipelines.append(self._parse_pipeline(connector))
            operator = self._peek()
            if operator is None:
                break
            assert isinstance(operator, OperatorToken)  # noqa: S101  # a command takes every word
            self._index += 1
            connector = Connector(";" if operator.text == "\n" else operator.text)
            self._skip_newlines()
            if connector is not Connector.ALWAYS and self._peek() is None:
                raise _syntax_error(f"nothing follows '{connector}'", operator.position)
        return pipelines

    def _skip_newlines(self) -> None:
        while _is_operator(self._peek(), "\n"):
            self._index += 1

    def _parse_pipeline(self, connector: Connector) -> Pipeline:
        negated = False
        while isinstance(token := self._peek(), Word) and token.unquoted_text == "!":
            negated = not negated
            self._index += 1
        commands = [self._parse_command()]
        while _is_operator(self._peek(), "|"):
            self._index += 1
            self._skip_newlines()
            if len(commands) == MAX_PIPELINE_COMMANDS:
                position = (self._peek() or self._tokens[-1]).position
                raise _syntax_error(f"more than {MAX_PIPELINE_COMMANDS} commands in one pipeline", position)
            commands.append(self._parse_command())
        return Pipeline(tuple(commands), connector, negated)

    def _parse_command(self) -> SimpleCommand:
        builder = _CommandBuilder()
        while (token := self._peek()) is not None:
            if isinstance(token, Word):
                self._index += 1
                self._add_word(builder, token)
            elif match := _REDIRECT.fullmatch(token.text):
                self._index += 1
                self._add_redirect(builder, token, match)
            elif feature := _UNSUPPORTED_OPERATORS.get(operator := _without_stream(token)):
                raise MetacharacterError.of(operator, token.position, f"; not supported: {feature}")
            else:
                break
        if not builder:
            raise self._missing_command_error()
        return builder.build()

    def _add_word(self, builder: _CommandBuilder, word: Word) -> None:
        if not builder.words and (assignment := _parse_assignment(word)):
            builder.assignments.append(assignment)
            return
        if not builder.words and word.unquoted_text in _RESERVED_WORDS:
            raise _syntax_error(f"'{word.unquoted_text}' is not supported", word.position)
        builder.words.append(word)

    def _add_redirect(self, builder: _CommandBuilder, token: OperatorToken, match: re.Match[str]) -> None:
        target = self._peek()
        if not isinstance(target, Word):
            raise _syntax_error(f"nothing follows '{token.text}'", token.position)
        self._index += 1
        operator = match[2] or match[3]
        stream = int(match[1]) if match[1] else (0 if operator == "<" else 1)
        if stream > 2 or (operator == "<" and stream != 0) or (operator != "<" and stream == 0):
            raise _syntax_error(f"'{token.text}': only <, >, 1> and 2> are supported", token.position)
        if operator == ">&":
            if target.unquoted_text not in ("1", "2"):
                raise _syntax_error("only streams 1 and 2 can follow '>&'", target.position)
            builder.redirects.append(Redirect(stream, ">&", target))
        elif match[3]:
            # `&>file` is `>file 2>&1`.
            builder.redirects.append(Redirect(1, operator[1:], target))
            builder.redirects.append(Redirect(2, ">&", Word((LiteralText("1", False),), target.position)))
        else:
            builder.redirects.append(Redirect(stream, ">" if operator == ">|" else operator, target))

    def _missing_command_error(self) -> ShellSyntaxError:
        token = self._peek()
        if token is None:
            last = self._tokens[-1]
            name = last.text if isinstance(last, OperatorToken) else "!"
            return _syntax_error(f"nothing follows '{name}'", last.position)
        assert isinstance(token, OperatorToken)  # noqa: S101  # a command takes every word
        display = "\\n" if token.text == "\n" else token.text
        return _syntax_error(f"unexpected '{display}'", token.position)


def _is_operator(token: Token | None, text: str) -> bool:
    return isinstance(token, OperatorToken) and token.text == text


def _without_stream(operator: OperatorToken) -> str:
    """Return the text of an operator without the number of its stream."""
    return operator.text.lstrip("0123456789")


def _parse_assignment(word: Word) -> tuple[str, Word] | None:
    """Return the name and the value of an assignment; `None` for any other word."""
    first = word.parts[0]
    if not isinstance(first, LiteralText) or first.quoted:
        return None
    match = _ASSIGNMENT.match(first.text)
    if match is None:
        return None
    value = (LiteralText(first.text[match.end() :], False), *word.parts[1:])
    return match[1], Word(value, word.position)


def _syntax_error(problem: str, position: int) -> ShellSyntaxError:
    return ShellSyntaxError(f"syntax error at character {position}: {problem}", position=position)
