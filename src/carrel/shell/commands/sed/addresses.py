"""Decide whether the addresses of a `sed` command select the current line."""

from __future__ import annotations

from carrel.shell.commands.sed.script import AddressKind, LineAddress, ScriptError, ScriptPattern, SedCommand
from carrel.shell.commands.sed.space import LineSource, Space
from carrel.shell.text.regex import Regex, RegexMatch


class AddressMatcher:
    """Matches the addresses of commands against the current line."""

    def __init__(self, lines: LineSource) -> None:
        self._lines = lines
        self._space = Space()
        self._last: ScriptPattern | None = None
        """The last regular expression used, which an empty one repeats."""

    def _selects(self, command: SedCommand) -> bool:
        if command.first is None:
            return True
        if command.last is None:
            return self._matches(command.first)
        if not command.is_active:
            return self._enters_range(command, command.first, command.last)
        return self._stays_in_range(command, command.last)

    def _matches(self, address: LineAddress) -> bool:
        number = self._lines.number
        if address.kind is AddressKind.LINE:
            return number == address.number
        if address.kind is AddressKind.LAST:
            return self._lines.is_last()
        if address.kind is AddressKind.STEP:
            return number >= address.number and (number - address.number) % address.step == 0
        pattern = address.pattern
        if pattern is not None and pattern.literal is not None:
            self._last = pattern
            return pattern.literal in self._space.text
        return self._search(pattern) is not None

    def _enters_range(self, command: SedCommand, first: LineAddress, last: LineAddress) -> bool:
        number = self._lines.number
        if first.kind is AddressKind.LINE:
            # A command such as N may have read past that line.
            if command.has_started or number < first.number:
                return False
            command.has_started = True
            if last.kind is AddressKind.LINE and number > max(first.number, last.number):
                return False
        elif not self._matches(first):
            return False
        if last.kind is AddressKind.PLUS:
            command.end = number + last.number
        elif last.kind is AddressKind.MULTIPLE:
            command.end = (number // last.number + 1) * last.number if last.number else number
        elif last.kind is AddressKind.LINE:
            command.end = last.number
        command.is_active = last.kind in (AddressKind.MATCH, AddressKind.LAST) or command.end > number
        return True

    def _stays_in_range(self, command: SedCommand, last: LineAddress) -> bool:
        if last.kind in (AddressKind.MATCH, AddressKind.LAST):
            command.is_active = not self._matches(last)
            return True
        number = self._lines.number
        command.is_active = number < command.end
        return number <= command.end or last.kind is not AddressKind.LINE

    def _search(self, pattern: ScriptPattern | None) -> RegexMatch | None:
        text = self._space.text
        return self._resolve(pattern)[0].search(text, 0, len(text))

    def _resolve(self, pattern: ScriptPattern | None) -> tuple[Regex, int]:
        """Return an expression and its number of groups; for an empty one, those of the last one used."""
        if pattern is None or pattern.regex is None:
            pattern = self._last
        if pattern is None or pattern.regex is None:
            raise ScriptError("-e expression #1, char 0: no previous regular expression")
        self._last = pattern
        return pattern.regex, pattern.groups
