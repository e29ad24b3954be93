"""Parse a `find` expression into one predicate, which also performs its actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from carrel.shell.commands.find import predicates
from carrel.shell.commands.find.printf import compile_format
from carrel.shell.commands.find.search import ExpressionError, FoundFile, Predicate, QuitSearch, SearchState
from carrel.shell.text.quoting import encode, quote

_MAX_DEPTH = 100
"""Deepest nesting of parentheses."""
_WITH_ARGUMENT: dict[str, predicates.PredicateMaker] = {
    "-name": predicates.name,
    "-iname": predicates.iname,
    "-path": predicates.path,
    "-wholename": predicates.path,
    "-ipath": predicates.ipath,
    "-iwholename": predicates.ipath,
    "-lname": predicates.link_name,
    "-regex": predicates.regex,
    "-iregex": predicates.iregex,
    "-type": predicates.kind,
    "-size": predicates.size,
    "-links": predicates.links,
    "-inum": predicates.inode,
    "-user": predicates.owner,
    "-group": predicates.owner,
    "-uid": predicates.owner,
    "-gid": predicates.owner,
    "-perm": predicates.permissions,
    "-mtime": predicates.days,
    "-mmin": predicates.minutes,
    "-newer": predicates.newer,
    "-newermm": predicates.newer,
    "-newermt": predicates.newer_than_date,
    "-samefile": predicates.same_file,
}
_WITHOUT_ARGUMENT: dict[str, Callable[[SearchState], Predicate]] = {
    "-empty": predicates.empty,
    "-readable": predicates.readable,
    "-writable": predicates.writable,
    "-executable": predicates.executable,
    "-true": lambda search: _true,
    "-false": lambda search: _false,
    "-nouser": lambda search: _false,
    "-nogroup": lambda search: _false,
}
_IGNORED = ("-mount", "-xdev", "-noleaf", "-warn", "-nowarn", "-ignore_readdir_race", "-daystart")
_UNSUPPORTED = ("-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls", "-follow")
_REGEX_TYPES = ("findutils-default", "ed", "emacs", "gnu-awk", "grep", "posix-awk", "awk", "posix-basic",
                "posix-egrep", "egrep", "posix-extended", "posix-minimal-basic", "sed")  # fmt: skip
_EXTENDED = ("gnu-awk", "posix-awk", "awk", "posix-egrep", "egrep", "posix-extended")
_TERMINATORS = (")", "-o", "-or", ",")


def _true(file: FoundFile) -> bool:
    return True


def _false(file: FoundFile) -> bool:
    return False


def parse(search: SearchState, words: Sequence[str]) -> Predicate:
    """Parse an expression; without an action, `-print` is added.

    Raises:
        ExpressionError: The expression is invalid or not supported.
    """
    parser = _ExpressionParser(search, words)
    test = parser.parse() if words else _true
    return test if search.has_action else _all([test, _print(search, b"\n")])


class _ExpressionParser:
    """Recursive-descent parser: each `_parse_*` method consumes one level of operator precedence."""

    def __init__(self, search: SearchState, words: Sequence[str]) -> None:
        self._search = search
        self._words = words
        self._index = 0
        self._depth = 0

    def parse(self) -> Predicate:
        test = self._parse_list()
        if self._index < len(self._words):
            raise ExpressionError("you have too many ')'")
        return test

    def _peek(self) -> str | None:
        return self._words[self._index] if self._index < len(self._words) else None

    def _parse_list(self) -> Predicate:
        """Parse expressions joined by commas: all are evaluated, and the last one is the result."""
        operands = [self._parse_or()]
        while self._peek() == ",":
            self._index += 1
            self._require_more(",")
            operands.append(self._parse_or())
        return operands[0] if len(operands) == 1 else lambda file: [operand(file) for operand in operands][-1]

    def _parse_or(self) -> Predicate:
        operands = [self._parse_and()]
        while (word := self._peek()) in ("-o", "-or"):
            self._index += 1
            self._require_more(str(word))
            operands.append(self._parse_and())
        return operands[0] if len(operands) == 1 else _any(operands)

    def _parse_and(self) -> Predicate:
        operands = [self._parse_not()]
        while (word := self._peek()) is not None and word not in _TERMINATORS:
            if word in ("-a", "-and"):
                self._index += 1
                self._require_more(word)
            operands.append(self._parse_not())
        return _all(operands)

    def _require_more(self, operator: str) -> None:
        if self._peek() is None:
            raise ExpressionError(f"expected an expression after {quote(operator)}")

    def _parse_not(self) -> Predicate:
        count = 0
        while (word := self._peek()) in ("!", "-not"):
            self._index += 1
            self._require_more(str(word))
            count += 1
        test = self._parse_primary()
        return (lambda file: not test(file)) if count % 2 else test

    def _parse_primary(self) -> Predicate:
        word = self._words[self._index]
        if word in ("-a", "-and", "-o", "-or", ","):
            raise ExpressionError(
                f"invalid expression; you have used a binary operator {quote(word)} with nothing before it."
            )
        self._index += 1
        if word == "(":
            return self._parse_group()
        if word == ")":
            raise ExpressionError("invalid expression; you have used a ')' with nothing before it.")
        if not word.startswith("-"):
            raise ExpressionError(f"paths must precede expression: `{word}'")
        return self._parse_predicate(word)

    def _parse_group(self) -> Predicate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ExpressionError(f"more than {_MAX_DEPTH} nested parentheses")
        if self._peek() == ")":
            raise ExpressionError("invalid expression; empty parentheses are not allowed.")
        unclosed = "invalid expression; I was expecting to find a ')' somewhere but did not see one."
        if self._peek() is None:
            raise ExpressionError(unclosed)
        test = self._parse_list()
        if self._peek() != ")":
            raise ExpressionError(unclosed)
        self._index += 1
        self._depth -= 1
        return test

    def _parse_predicate(self, word: str) -> Predicate:
        if word in _WITHOUT_ARGUMENT:
            return _WITHOUT_ARGUMENT[word](self._search)
        if word in _WITH_ARGUMENT:
            return _WITH_ARGUMENT[word](self._search, self._next_argument(word))
        if word in _IGNORED:
            return _true
        if word in _UNSUPPORTED:
            hint = "; 'find ... -print0 | xargs -0 COMMAND' does it" if word.startswith(("-e", "-o")) else ""
            raise ExpressionError(f"{word} is not supported{hint}")
        return self._parse_action(word)

    def _next_argument(self, word: str) -> str:
        argument = self._peek()
        if argument is None:
            raise ExpressionError(f"missing argument to `{word}'")
        self._index += 1
        return argument

    def _parse_action(self, word: str) -> Predicate:
        """Parse an action or a global option."""
        search = self._search
        if word in ("-maxdepth", "-mindepth"):
            return self._set_depth(word)
        if word in ("-depth", "-d"):
            search.post_order = True
            return _true
        if word == "-regextype":
            return self._set_regex_type()
        if word == "-prune":
            return _prune(search)
        if word == "-quit":
            return _quit
        if word not in ("-print", "-print0", "-printf", "-delete"):
            raise ExpressionError(f"unknown predicate `{word}'")
        search.has_action = True
        if word == "-printf":
            return _print_formatted(search, self._next_argument(word))
        if word == "-delete":
            search.post_order = True
            return _delete(search)
        return _print(search, b"\n" if word == "-print" else b"\0")

    def _set_depth(self, word: str) -> Predicate:
        text = self._next_argument(word)
        if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
            message = f"Expected a positive decimal integer argument to {word}, but got {quote(text)}"
            raise ExpressionError(message)
        if word == "-maxdepth":
            self._search.max_depth = int(text)
        else:
            self._search.min_depth = int(text)
        return _true

    def _set_regex_type(self) -> Predicate:
        text = self._next_argument("-regextype")
        if text not in _REGEX_TYPES:
            known = ", ".join(quote(each) for each in _REGEX_TYPES)
            raise ExpressionError(f"Unknown regular expression type {quote(text)}; valid types are {known}.")
        self._search.regex_type = "extended" if text in _EXTENDED else "emacs"
        return _true


def _all(operands: Sequence[Predicate]) -> Predicate:
    if len(operands) == 1:
        return operands[0]
    return lambda file: all(operand(file) for operand in operands)


def _any(operands: Sequence[Predicate]) -> Predicate:
    return lambda file: any(operand(file) for operand in operands)


def _print(search: SearchState, end: bytes) -> Predicate:
    def act(file: FoundFile) -> bool:
        search.ctx.write(encode(file.path) + end)
        return True

    return act


def _print_formatted(search: SearchState, template: str) -> Predicate:
    render = compile_format(search.ctx, template)

    def act(file: FoundFile) -> bool:
        search.ctx.write_each(render(file))
        return True

    return act


def _prune(search: SearchState) -> Predicate:
    def act(file: FoundFile) -> bool:
        search.pruned = True
        return True

    return act


def _quit(file: FoundFile) -> bool:
    raise QuitSearch


def _delete(search: SearchState) -> Predicate:
    def act(file: FoundFile) -> bool:
        if file.path == ".":
            return True
        with search.ctx.reporting(file.path, f"cannot delete {quote(file.path)}"):
            search.ctx.workspace.remove(search.ctx.path(file.path))
            return True
        return False

    return act
