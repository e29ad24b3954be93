"""Which commands of a script of `sed` are run for a line."""

from __future__ import annotations

from carrel.shell.regex import Found, Regex
from carrel.shell.sed_command import Address, At, Command, Pattern, ScriptError
from carrel.shell.sed_space import Lines, Space


class Selection:
    """Knows the line, and tells whether addresses select it."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._space = Space()
        self._last: Pattern | None = None
        """The expression that was used last."""

    def _selects(self, command: Command) -> bool:
        if command.first is None:
            return True
        if command.last is None:
            return self._matches(command.first)
        if not command.is_active:
            return self._begins(command, command.first, command.last)
        return self._continues(command, command.last)

    def _matches(self, address: Address) -> bool:
        number = self._lines.number
        if address.at is At.LINE:
            return number == address.number
        if address.at is At.LAST:
            return self._lines.is_last()
        if address.at is At.STEP:
            return number >= address.number and (number - address.number) % address.step == 0
        pattern = address.pattern
        if pattern is not None and pattern.literal is not None:
            self._last = pattern
            return pattern.literal in self._space.text
        return self._search(pattern) is not None

    def _begins(self, command: Command, first: Address, last: Address) -> bool:
        number = self._lines.number
        if first.at is At.LINE:
            # The line may have been passed by, when commands took several lines.
            if command.has_begun or number < first.number:
                return False
            command.has_begun = True
            if last.at is At.LINE and number > max(first.number, last.number):
                return False
        elif not self._matches(first):
            return False
        if last.at is At.PLUS:
            command.ends = number + last.number
        elif last.at is At.MULTIPLE:
            command.ends = (number // last.number + 1) * last.number if last.number else number
        elif last.at is At.LINE:
            command.ends = last.number
        command.is_active = last.at in (At.MATCH, At.LAST) or command.ends > number
        return True

    def _continues(self, command: Command, last: Address) -> bool:
        if last.at in (At.MATCH, At.LAST):
            command.is_active = not self._matches(last)
            return True
        number = self._lines.number
        command.is_active = number < command.ends
        return number <= command.ends or last.at is not At.LINE

    def _search(self, pattern: Pattern | None) -> Found | None:
        text = self._space.text
        return self._resolved(pattern)[0].search(text, 0, len(text))

    def _resolved(self, pattern: Pattern | None) -> tuple[Regex, int]:
        """An expression and the number of its groups; an empty one is the last that was used."""
        if pattern is None or pattern.regex is None:
            pattern = self._last
        if pattern is None or pattern.regex is None:
            raise ScriptError("-e expression #1, char 0: no previous regular expression")
        self._last = pattern
        return pattern.regex, pattern.groups
