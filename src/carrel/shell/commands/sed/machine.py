"""Run a `sed` script on each line of the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from carrel.shell.budget import Meter
from carrel.shell.commands.sed.addresses import AddressMatcher
from carrel.shell.commands.sed.replacement import find_matches
from carrel.shell.commands.sed.script import SedCommand, Substitution
from carrel.shell.commands.sed.space import LineSource, Space
from carrel.shell.text.quoting import decode, encode

_FREE_BYTES = 2**16
"""Bytes that may be held without being charged."""
_TEXT_BYTES = 12
"""Memory of a byte during `y`: decoded, translated, and encoded again."""
_VISIBLE_AT_ONCE = 4096
_MATCHES_AT_ONCE = 64
"""Matches between two checks of the meter; in a long line each may take a millisecond."""
_APPENDED_BYTES = 16
"""Memory charged for each text or file to print at the end of the cycle."""


class NextStep(Enum):
    """Continuation after a command, if not the next command."""

    END = "end"
    """Continue with the next line."""
    AGAIN = "again"
    """Restart the script with the rest of the pattern space."""
    JUMP = "jump"
    """Continue at the target of the command."""


class Machine(AddressMatcher):
    """Runs a script: keeps the pattern space, the hold space and the state of the commands."""

    def __init__(
        self,
        commands: Sequence[SedCommand],
        meter: Meter,
        read: Callable[[str], Iterator[bytes]],
        lines: LineSource,
        *,
        quiet: bool,
        end: bytes,
        wrap: int,
    ) -> None:
        """Run *commands*; *read* returns the content of a file for `r`."""
        super().__init__(lines)
        self._commands = commands
        self._meter = meter
        self._read = read
        self._write: Callable[[bytes], None] = _discard
        self._quiet = quiet
        self._end = end
        self._wrap = wrap
        self._hold_space = Space()
        self._charged_bytes = _FREE_BYTES
        self._needs_newline = False
        self._appended: list[SedCommand] = []
        self._is_replaced = False
        self.exit_status: int | None = None
        """Exit status of `q` or `Q`; `None` until one of them runs."""

    def write_to(self, write: Callable[[bytes], None]) -> None:
        """Write with *write* from now on, to another file than before."""
        self._write = write
        self._needs_newline = False

    def cycles(self, lines: LineSource) -> Iterator[None]:
        """Run the script for each line of *lines*, and yield after each cycle."""
        self._lines = lines
        self._hold_space = Space()
        for command in self._commands:
            command.is_active = command.has_started = command.starts_active
        restarts = False
        while self.exit_status is None and (restarts or self._read_line()):
            restarts = self._run() is NextStep.AGAIN
            self._flush_appended()
            if restarts:
                self._meter.check()
            yield

    def _read_line(self) -> bool:
        line = self._lines.next()
        if line is None:
            return False
        self._space.text, self._space.has_newline = line
        self._charge()
        self._is_replaced = False
        return True

    def _run(self) -> NextStep:
        """Run the script once on the pattern space."""
        index = 0
        commands = self._commands
        while index < len(commands):
            command = commands[index]
            index += 1
            if (command.first is None or self._selects(command)) == command.negated:
                index = command.target if command.name == "{" else index
                continue
            action = _ACTIONS.get(command.name)
            step = None if action is None else action(self, command)
            if step is NextStep.JUMP:
                self._meter.check()
                index = command.target
            elif step is not None:
                return step
        self._print_unless_quiet()
        return NextStep.END

    # Writing

    def _print_line(self, text: bytes, has_newline: bool = True) -> None:
        if not has_newline:
            self._print(text)
        elif len(text) <= _FREE_BYTES:
            self._print(text + self._end)
        else:
            self._print(text)
            self._write(self._end)
        self._needs_newline = not has_newline

    def _print(self, data: bytes) -> None:
        if self._needs_newline:
            self._write(self._end)
            self._needs_newline = False
        self._write(data)

    def _print_unless_quiet(self) -> None:
        if not self._quiet:
            self._print_line(self._space.text, self._space.has_newline)

    def _flush_appended(self) -> None:
        if not self._appended:
            return
        for command in self._appended:
            if command.name == "a":
                self._print(command.text)
                continue
            for chunk in self._read(decode(command.text)):
                self._print(chunk)
        self._drop_appended()

    def _charge(self, more: int = 0) -> None:
        """Charge for both spaces, a copy of them and *more* bytes, unless already charged."""
        size = 2 * (self._space.size + self._hold_space.size) + more
        if size > self._charged_bytes:
            self._meter.charge_memory(size - self._charged_bytes)
            self._charged_bytes = size

    def _drop_appended(self) -> None:
        self._meter.charge_memory(-_APPENDED_BYTES * len(self._appended))
        self._appended.clear()

    # Commands

    def append(self, command: SedCommand) -> None:
        """`a`, `r`: print text or a file at the end of the cycle."""
        self._meter.charge_memory(_APPENDED_BYTES)
        self._appended.append(command)

    def insert(self, command: SedCommand) -> None:
        """`i`: print text now."""
        if command.text:
            self._print_line(command.text[:-1])

    def change(self, command: SedCommand) -> NextStep:
        """`c`: print text instead of the lines."""
        if command.last is None or command.negated or not command.is_active:
            self.insert(command)
        return NextStep.END

    def print_space(self, command: SedCommand) -> None:
        """`p`: print the pattern space."""
        self._print_line(self._space.text, self._space.has_newline)

    def print_first_line(self, command: SedCommand) -> None:
        """`P`: print the pattern space up to the first newline."""
        text = self._space.text
        end = text.find(b"\n")
        self._print_line(text if end < 0 else text[:end], end >= 0 or self._space.has_newline)

    def print_number(self, command: SedCommand) -> None:
        """`=`: print the line number."""
        self._print_line(b"%d" % self._lines.number)

    def print_name(self, command: SedCommand) -> None:
        """`F`: print the file name."""
        self._print_line(encode(self._lines.name))

    def print_escaped(self, command: SedCommand) -> None:
        """`l`: print the pattern space with nonprinting characters escaped."""
        wrap = self._wrap if command.number is None else command.number
        width = 0
        parts: list[bytes] = []
        for byte in self._space.text:
            unit = _VISIBLE[byte]
            if wrap and width + len(unit) > wrap - 1:
                parts.append(b"\\\n")
                width = 0
            parts.append(unit)
            width += len(unit)
            if len(parts) >= _VISIBLE_AT_ONCE:
                self._meter.check()
                self._print(b"".join(parts))
                parts.clear()
        self._print_line(b"".join(parts) + b"$")

    def delete(self, command: SedCommand) -> NextStep:
        """`d`: delete the pattern space and start the next cycle."""
        return NextStep.END

    def delete_first_line(self, command: SedCommand) -> NextStep:
        """`D`: delete up to the first newline and restart the script."""
        text = self._space.text
        end = text.find(b"\n")
        if end < 0:
            return NextStep.END
        self._space.text = text[end + 1 :]
        return NextStep.AGAIN

    def next_line(self, command: SedCommand) -> NextStep | None:
        """`n`: print the pattern space and replace it with the next line."""
        if self._lines.is_last():
            self._print_unless_quiet()
            return NextStep.END
        self._print_unless_quiet()
        self._flush_appended()
        is_replaced = self._is_replaced
        self._read_line()
        self._is_replaced = is_replaced
        return None

    def append_line(self, command: SedCommand) -> NextStep | None:
        """`N`: append the next line to the pattern space."""
        self._flush_appended()
        line = self._lines.next()
        if line is None:
            self._print_unless_quiet()
            return NextStep.END
        self._space.append(line[0])
        self._space.has_newline = line[1]
        self._charge()
        return None

    def copy_hold_space(self, command: SedCommand) -> None:
        """`g`: copy the hold space to the pattern space."""
        self._space.copy(self._hold_space)

    def append_hold_space(self, command: SedCommand) -> None:
        """`G`: append the hold space to the pattern space."""
        self._space.append_space(self._hold_space)
        self._charge()

    def copy_to_hold_space(self, command: SedCommand) -> None:
        """`h`: copy the pattern space to the hold space."""
        self._hold_space.copy(self._space)

    def append_to_hold_space(self, command: SedCommand) -> None:
        """`H`: append the pattern space to the hold space."""
        self._hold_space.append_space(self._space)
        self._charge()

    def exchange_spaces(self, command: SedCommand) -> None:
        """`x`: exchange the pattern space and the hold space."""
        self._space, self._hold_space = self._hold_space, self._space

    def empty_space(self, command: SedCommand) -> None:
        """`z`: empty the pattern space."""
        self._space.text = b""

    def quit(self, command: SedCommand) -> NextStep:
        """`q`: print the pattern space and quit."""
        self._print_unless_quiet()
        return self.quit_now(command)

    def quit_now(self, command: SedCommand) -> NextStep:
        """`Q`: quit without printing."""
        if command.name == "Q":
            self._drop_appended()
        self.exit_status = command.number or 0
        return NextStep.END

    def branch(self, command: SedCommand) -> NextStep:
        """`b`: branch."""
        return NextStep.JUMP

    def branch_if_replaced(self, command: SedCommand) -> NextStep | None:
        """`t`: branch if a substitution was made."""
        was, self._is_replaced = self._is_replaced, False
        return NextStep.JUMP if was else None

    def branch_unless_replaced(self, command: SedCommand) -> NextStep | None:
        """`T`: branch if no substitution was made."""
        was, self._is_replaced = self._is_replaced, False
        return None if was else NextStep.JUMP

    def translate_characters(self, command: SedCommand) -> None:
        """`y`: translate characters."""
        self._charge(_TEXT_BYTES * self._space.size)
        self._space.text = encode(decode(self._space.text).translate(command.table))

    def substitute(self, command: SedCommand) -> None:
        """`s`: replace matches."""
        if command.substitution is None:
            return
        if command.substitution.constant is None:
            changed = self._replace_matches(command.substitution, self._space.text)
        else:
            changed = self._replace_literal(command.substitution, self._space.text)
        if changed is None:
            return
        self._space.text = changed
        self._is_replaced = True
        if command.substitution.prints_result:
            self._print_line(changed, self._space.has_newline)

    def _replace_literal(self, substitution: Substitution, text: bytes) -> bytes | None:
        self._last = substitution.pattern
        old, new = substitution.pattern.literal, substitution.constant
        if old is None or new is None or old not in text:
            return None
        count = text.count(old) if substitution.everywhere else 1
        self._charge(len(text) + count * max(0, len(new) - len(old)))
        return text.replace(old, new, count)

    def _replace_matches(self, substitution: Substitution, text: bytes) -> bytes | None:
        regex, groups = self._resolve(substitution.pattern)
        replacement = substitution.replacement
        result = bytearray()
        offset = room = 0
        is_replaced = False
        for count, match in enumerate(find_matches(regex, text), 1):
            if not count % _MATCHES_AT_ONCE:
                self._meter.check()
            if count < substitution.number:
                continue
            start, end = match.span()
            size = len(result) + start - offset + replacement.max_bytes(end - start)
            if size > room:
                room = size + _FREE_BYTES
                # Twice the result: it is copied when it grows, and at the end.
                self._charge(2 * room)
            result += text[offset:start]
            result += replacement.expand(text, match, groups)
            offset = end
            is_replaced = True
            if not substitution.everywhere:
                break
        if not is_replaced:
            return None
        self._charge(2 * (len(result) + len(text) - offset))
        result += text[offset:]
        return bytes(result)


def _discard(data: bytes) -> None:
    """Discard *data*."""


_VISIBLE = [bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte for byte in range(256)]
for _byte, _letter in zip(b"\\\a\b\f\n\r\t\v", b"\\abfnrtv", strict=True):
    _VISIBLE[_byte] = b"\\%c" % _letter

_ACTIONS: dict[str, Callable[[Machine, SedCommand], NextStep | None]] = {
    "a": Machine.append,
    "r": Machine.append,
    "i": Machine.insert,
    "c": Machine.change,
    "p": Machine.print_space,
    "P": Machine.print_first_line,
    "=": Machine.print_number,
    "F": Machine.print_name,
    "l": Machine.print_escaped,
    "d": Machine.delete,
    "D": Machine.delete_first_line,
    "n": Machine.next_line,
    "N": Machine.append_line,
    "g": Machine.copy_hold_space,
    "G": Machine.append_hold_space,
    "h": Machine.copy_to_hold_space,
    "H": Machine.append_to_hold_space,
    "x": Machine.exchange_spaces,
    "z": Machine.empty_space,
    "q": Machine.quit,
    "Q": Machine.quit_now,
    "b": Machine.branch,
    "t": Machine.branch_if_replaced,
    "T": Machine.branch_unless_replaced,
    "y": Machine.translate_characters,
    "s": Machine.substitute,
}
