"""Find the line of each key in a TOML document, which the standard parser does not report."""

from __future__ import annotations

import re
import tomllib

from carrel.config.kind import KeyPath

_TOKEN = re.compile(
    r'''
      (?P<text> """ (?:[^\\]|\\.)*? "{3,5} | \'\'\' .*? '{3,5} | " (?:[^"\\]|\\.)* " | ' [^']* ' )
    | (?P<comment> \# [^\n]* )
    | (?P<mark> [\[\]{},=\n] )
    | (?P<bare> [^\s\[\]{},=.\#"']+ )
    ''',
    re.VERBOSE | re.DOTALL,
)


class TomlLines:
    """The lines of all keys, tables and list items in a text that is known to be valid TOML."""

    def __init__(self, text: str) -> None:
        self.found: dict[KeyPath, int] = {}
        """The line on which each key, table or item starts."""
        self._table: KeyPath = ()
        self._lists: dict[KeyPath, int] = {}
        """The number of tables read so far in each array of tables."""
        self._names: list[str] = []
        """The names of the key or header being read."""
        self._brackets = 0
        """The number of opening brackets of the header being read."""
        self._in_value = False
        self._here: KeyPath = ()
        """The path of the value being read."""
        self._nested: list[tuple[KeyPath, int | None]] = []
        """The enclosing lists and inline tables; a list with the number of items read so far."""
        self._line = 1
        for token in _TOKEN.finditer(text + "\n"):
            self._take(token)
            self._line += token[0].count("\n")

    def of(self, path: KeyPath) -> int:
        """Return the line of *path*, or of its nearest ancestor that has one."""
        while path and path not in self.found:
            path = path[:-1]
        return self.found.get(path, 1)

    def _take(self, token: re.Match[str]) -> None:
        if token["mark"] and self._in_value:
            self._value_mark(token["mark"])
        elif token["mark"]:
            self._key_mark(token["mark"])
        elif token["comment"]:
            return
        elif self._in_value:
            self._record(self._here)
        elif token["text"]:
            self._names.append(tomllib.loads(f"name = {token['text']}")["name"])
        else:
            self._names.append(token["bare"])

    def _record(self, path: KeyPath) -> None:
        self.found.setdefault(path, self._line)

    # Keys and headers

    def _key_mark(self, mark: str) -> None:
        if mark == "=":
            self._open_value()
        elif mark == "[":
            self._brackets += 1
        elif mark == "\n" and self._brackets:
            self._open_table()
        elif mark == "}":
            self._nested.pop()
            self._in_value = True

    def _open_value(self) -> None:
        self._here = self._nested[-1][0] if self._nested else self._table
        for name in self._names:
            self._here = (*self._here, name)
            self._record(self._here)
        self._names.clear()
        self._in_value = True

    def _open_table(self) -> None:
        """Enter the table of a header; the name of an array of tables means its last table."""
        *above, last = self._names
        self._table = ()
        for name in above:
            self._table = self._last_item((*self._table, name))
            self._record(self._table)
        self._table = (*self._table, last)
        self._record(self._table)
        if self._brackets == 2:
            self._lists[self._table] = self._lists.get(self._table, 0) + 1
            self._table = self._last_item(self._table)
            self._record(self._table)
        self._names.clear()
        self._brackets = 0

    def _last_item(self, path: KeyPath) -> KeyPath:
        return (*path, self._lists[path] - 1) if path in self._lists else path

    # Values

    def _value_mark(self, mark: str) -> None:
        if mark in "[{":
            self._record(self._here)
            self._nested.append((self._here, 0 if mark == "[" else None))
            self._here = (*self._here, 0)
            self._in_value = mark == "["
        elif mark in "]}":
            self._nested.pop()
        elif mark == "," and self._nested:
            self._next_item()
        elif mark == "\n" and not self._nested:
            self._in_value = False

    def _next_item(self) -> None:
        path, count = self._nested[-1]
        if count is None:
            self._in_value = False
            return
        self._nested[-1] = (path, count + 1)
        self._here = (*path, count + 1)
