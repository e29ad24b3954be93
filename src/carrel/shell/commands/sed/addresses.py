"""Decide whether the addresses of a `sed` command select the current line."""

from __future__ import annotations

from carrel.shell.commands.sed.script import AddressKind, LineAddress, ScriptError, ScriptPattern, SedCommand
from carrel.shell.commands.sed.space import LineSource, Space
from carrel.shell.text.regex import Regex, RegexMatch


class AddressMatcher:
    """Knows the line, and tells whether addresses select it."""

    def __init__(self, lines: LineSource) -> None:
        self._lines = lines
        self._space = Space()
        self._last: ScriptPattern | None = None
        """The expression that was used last."""

    def _selects(self, command: SedCommand) -> bool:
        if command.first is None:
            return True
        if command.last is None:
            return self._matches(command.first)
        if not command.is_active:
            return self._begins(command, command.first, command.last)
        return self._continues(command, command.last)

    def _matches(self, address: LineAddress) -> bool:
        number = self._lines.number
        if address.at is AddressKind.LINE:
            return number == address.number
        if address.at is AddressKind.LAST:
            return self._lines.is_last()
        if address.at is AddressKind.STEP:
            return number >= address.number and (number - address.number) % address.step == 0
        pattern = address.pattern
        if pattern is not None and pattern.literal is not None:
            self._last = pattern
            return pattern.literal in self._space.text
        return self._search(pattern) is not None

    def _begins(self, command: SedCommand, first: LineAddress, last: LineAddress) -> bool:
        number = self._lines.number
        if first.at is AddressKind.LINE:
            # The line may have been passed by, when commands took several lines.
            if command.has_begun or number < first.number:
                return False
            command.has_begun = True
            if last.at is AddressKind.LINE and number > max(first.number, last.number):
                return False
        elif not self._matches(first):
            return False
        if last.at is AddressKind.PLUS:
            command.ends = number + last.number
        elif last.at is AddressKind.MULTIPLE:
            command.ends = (number // last.number + 1) * last.number if last.number else number
        elif last.at is AddressKind.LINE:
            command.ends = last.number
        command.is_active = last.at in (AddressKind.MATCH, AddressKind.LAST) or command.ends > number
        return True

    def _continues(self, command: SedCommand, last: LineAddress) -> bool:
        if last.at in (AddressKind.MATCH, AddressKind.LAST):
            command.is_active = not self._matches(last)
            return True
        number = self._lines.number
        command.is_active = number < command.ends
        return number <= command.ends or last.at is not AddressKind.LINE

    def _search(self, pattern: ScriptPattern | None) -> RegexMatch | None:
        text = self._space.text
        return self._resolved(pattern)[0].search(text, 0, len(text))

    def _resolved(self, pattern: ScriptPattern | None) -> tuple[Regex, int]:
        """An expression and the number of its groups; an empty one is the last that was used."""
        if pattern is None or pattern.regex is None:
            pattern = self._last
        if pattern is None or pattern.regex is None:
            raise ScriptError("-e expression #1, char 0: no previous regular expression")
        self._last = pattern
        return pattern.regex, pattern.groups
