"""Parse a `find` expression into one predicate, which also performs its actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from carrel.shell.commands.find import predicates
from carrel.shell.commands.find.printf import compile_format
from carrel.shell.commands.find.search import ExpressionError, FoundFile, Predicate, QuitSearch, SearchState
from carrel.shell.text.quoting import encode, quote

_NESTING = 100
"""Most parentheses in each other."""
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
_ALONE: dict[str, Callable[[SearchState], Predicate]] = {
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
_REFUSED = ("-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls", "-follow")
_REGEX_TYPES = ("findutils-default", "ed", "emacs", "gnu-awk", "grep", "posix-awk", "awk", "posix-basic",
                "posix-egrep", "egrep", "posix-extended", "posix-minimal-basic", "sed")  # fmt: skip
_EXTENDED = ("gnu-awk", "posix-awk", "awk", "posix-egrep", "egrep", "posix-extended")
_ENDS = (")", "-o", "-or", ",")


def _true(visit: FoundFile) -> bool:
    return True


def _false(visit: FoundFile) -> bool:
    return False


def parse(search: SearchState, words: Sequence[str]) -> Predicate:
    """The test that *words* describe; without an action, what passes it is printed.

    Raises:
        ExpressionError: The words are no expression, or one that is not offered.
    """
    parser = _Parser(search, words)
    test = parser.parse() if words else _true
    return test if search.has_action else _all([test, _print(search, b"\n")])


class _Parser:
    """Reads words one after the other."""

    def __init__(self, search: SearchState, words: Sequence[str]) -> None:
        self._search = search
        self._words = words
        self._at = 0
        self._depth = 0

    def parse(self) -> Predicate:
        test = self._list()
        if self._at < len(self._words):
            raise ExpressionError("you have too many ')'")
        return test

    def _peek(self) -> str | None:
        return self._words[self._at] if self._at < len(self._words) else None

    def _list(self) -> Predicate:
        """Expressions with commas between them: all are asked, the last one answers."""
        parts = [self._either()]
        while self._peek() == ",":
            self._at += 1
            self._require_more(",")
            parts.append(self._either())
        return parts[0] if len(parts) == 1 else lambda visit: [part(visit) for part in parts][-1]

    def _either(self) -> Predicate:
        parts = [self._both()]
        while (word := self._peek()) in ("-o", "-or"):
            self._at += 1
            self._require_more(str(word))
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else _any(parts)

    def _both(self) -> Predicate:
        parts = [self._negated()]
        while (word := self._peek()) is not None and word not in _ENDS:
            if word in ("-a", "-and"):
                self._at += 1
                self._require_more(word)
            parts.append(self._negated())
        return _all(parts)

    def _require_more(self, operator: str) -> None:
        if self._peek() is None:
            raise ExpressionError(f"expected an expression after {quote(operator)}")

    def _negated(self) -> Predicate:
        count = 0
        while (word := self._peek()) in ("!", "-not"):
            self._at += 1
            self._require_more(str(word))
            count += 1
        test = self._primary()
        return (lambda visit: not test(visit)) if count % 2 else test

    def _primary(self) -> Predicate:
        word = self._words[self._at]
        if word in ("-a", "-and", "-o", "-or", ","):
            raise ExpressionError(
                f"invalid expression; you have used a binary operator {quote(word)} with nothing before it."
            )
        self._at += 1
        if word == "(":
            return self._group()
        if word == ")":
            raise ExpressionError("invalid expression; you have used a ')' with nothing before it.")
        if not word.startswith("-"):
            raise ExpressionError(f"paths must precede expression: `{word}'")
        return self._predicate(word)

    def _group(self) -> Predicate:
        self._depth += 1
        if self._depth > _NESTING:
            raise ExpressionError(f"more than {_NESTING} parentheses in each other")
        if self._peek() == ")":
            raise ExpressionError("invalid expression; empty parentheses are not allowed.")
        unclosed = "invalid expression; I was expecting to find a ')' somewhere but did not see one."
        if self._peek() is None:
            raise ExpressionError(unclosed)
        test = self._list()
        if self._peek() != ")":
            raise ExpressionError(unclosed)
        self._at += 1
        self._depth -= 1
        return test

    def _predicate(self, word: str) -> Predicate:
        if word in _ALONE:
            return _ALONE[word](self._search)
        if word in _WITH_ARGUMENT:
            return _WITH_ARGUMENT[word](self._search, self._argument(word))
        if word in _IGNORED:
            return _true
        if word in _REFUSED:
            hint = "; 'find ... -print0 | xargs -0 COMMAND' does it" if word.startswith(("-e", "-o")) else ""
            raise ExpressionError(f"{word} is not offered here{hint}")
        return self._action(word)

    def _argument(self, word: str) -> str:
        argument = self._peek()
        if argument is None:
            raise ExpressionError(f"missing argument to `{word}'")
        self._at += 1
        return argument

    def _action(self, word: str) -> Predicate:
        """What does something, or says how to search."""
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
            return _printf(search, self._argument(word))
        if word == "-delete":
            search.post_order = True
            return _delete(search)
        return _print(search, b"\n" if word == "-print" else b"\0")

    def _set_depth(self, word: str) -> Predicate:
        text = self._argument(word)
        if not re.fullmatch("[0-9]{1,9}", text, re.ASCII):
            message = f"Expected a positive decimal integer argument to {word}, but got {quote(text)}"
            raise ExpressionError(message)
        if word == "-maxdepth":
            self._search.max_depth = int(text)
        else:
            self._search.min_depth = int(text)
        return _true

    def _set_regex_type(self) -> Predicate:
        text = self._argument("-regextype")
        if text not in _REGEX_TYPES:
            known = ", ".join(quote(each) for each in _REGEX_TYPES)
            raise ExpressionError(f"Unknown regular expression type {quote(text)}; valid types are {known}.")
        self._search.regex_type = "extended" if text in _EXTENDED else "emacs"
        return _true


def _all(parts: Sequence[Predicate]) -> Predicate:
    if len(parts) == 1:
        return parts[0]

    return lambda visit: all(part(visit) for part in parts)


def _any(parts: Sequence[Predicate]) -> Predicate:
    return lambda visit: any(part(visit) for part in parts)


def _print(search: SearchState, end: bytes) -> Predicate:
    def act(visit: FoundFile) -> bool:
        search.ctx.write(encode(visit.path) + end)
        return True

    return act


def _printf(search: SearchState, form: str) -> Predicate:
    render = compile_format(search.ctx, form)

    def act(visit: FoundFile) -> bool:
        search.ctx.write_each(render(visit))
        return True

    return act


def _prune(search: SearchState) -> Predicate:
    def act(visit: FoundFile) -> bool:
        search.pruned = True
        return True

    return act


def _quit(visit: FoundFile) -> bool:
    raise QuitSearch


def _delete(search: SearchState) -> Predicate:
    def act(visit: FoundFile) -> bool:
        if visit.path == ".":
            return True
        with search.ctx.reporting(visit.path, f"cannot delete {quote(visit.path)}"):
            search.ctx.workspace.remove(search.ctx.path(visit.path))
            return True
        return False

    return act
