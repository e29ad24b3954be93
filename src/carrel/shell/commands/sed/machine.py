"""Run a `sed` script, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from carrel.shell.budget import Meter
from carrel.shell.commands.sed.addresses import AddressMatcher
from carrel.shell.commands.sed.replacement import matches
from carrel.shell.commands.sed.script import SedCommand, Substitution
from carrel.shell.commands.sed.space import LineSource, Space
from carrel.shell.text.quoting import decode, encode

_FREE_BYTES = 2**16
"""Bytes that may be held before they are charged."""
_TEXT_BYTES = 12
"""Memory that a byte takes while characters are exchanged: as text, as changed text, and as bytes again."""
_VISIBLE_AT_ONCE = 4096
_MATCHES_AT_ONCE = 64
"""Matches of an expression between two looks at the budget; in a long line each may take a millisecond."""
_APPENDED_BYTES = 16
"""Memory that a text or a file takes which is to be printed at the end of the cycle."""


class NextStep(Enum):
    """What comes after a command, if not the next."""

    END = "end"
    """The next line."""
    AGAIN = "again"
    """The script from its start, with what is left."""
    JUMP = "jump"
    """The target of the command."""


class Machine(AddressMatcher):
    """One run of a script."""

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
        """Run *commands*; *read* gives the content of a file for `r`."""
        super().__init__(lines)
        self._commands = commands
        self._meter = meter
        self._read = read
        self._out: Callable[[bytes], None] = _drop
        self._quiet = quiet
        self._end = end
        self._wrap = wrap
        self._hold = Space()
        self._held = _FREE_BYTES
        self._lacks_newline = False
        self._appended: list[SedCommand] = []
        self._is_replaced = False
        self.exit_status: int | None = None
        """What `q` or `Q` ended it with."""

    def write_to(self, out: Callable[[bytes], None]) -> None:
        """Write by *out* from now on, to another file than before."""
        self._out = out
        self._lacks_newline = False

    def cycles(self, lines: LineSource) -> Iterator[None]:
        """Run the script for each line of *lines*; gives nothing after each."""
        self._lines = lines
        self._hold = Space()
        for command in self._commands:
            command.is_active = command.has_begun = command.begins_active
        is_kept = False
        while self.exit_status is None and (is_kept or self._read_line()):
            is_kept = self._run() is NextStep.AGAIN
            self._flush_appended()
            if is_kept:
                self._meter.check()
            yield

    def _read_line(self) -> bool:
        line = self._lines.next()
        if line is None:
            return False
        self._space.text, self._space.has_end = line
        self._account()
        self._is_replaced = False
        return True

    def _run(self) -> NextStep:
        """Run the script once."""
        at = 0
        commands = self._commands
        while at < len(commands):
            command = commands[at]
            at += 1
            if (command.first is None or self._selects(command)) == command.negated:
                at = command.target if command.name == "{" else at
                continue
            action = _ACTIONS.get(command.name)
            then = None if action is None else action(self, command)
            if then is NextStep.JUMP:
                self._meter.check()
                at = command.target
            elif then is not None:
                return then
        self._print_unless_quiet()
        return NextStep.END

    # Writing

    def _print_line(self, text: bytes, has_end: bool = True) -> None:
        if not has_end:
            self._print(text)
        elif len(text) <= _FREE_BYTES:
            self._print(text + self._end)
        else:
            self._print(text)
            self._out(self._end)
        self._lacks_newline = not has_end

    def _print(self, data: bytes) -> None:
        if self._lacks_newline:
            self._out(self._end)
            self._lacks_newline = False
        self._out(data)

    def _print_unless_quiet(self) -> None:
        if not self._quiet:
            self._print_line(self._space.text, self._space.has_end)

    def _flush_appended(self) -> None:
        if not self._appended:
            return
        for command in self._appended:
            if command.name == "a":
                self._print(command.text)
                continue
            for chunk in self._read(decode(command.text)):
                self._print(chunk)
        self._clear_appended()

    def _account(self, more: int = 0) -> None:
        """Charge for the line, what is held, a copy of both and *more* bytes, as soon as that is much."""
        size = 2 * (self._space.size + self._hold.size) + more
        if size > self._held:
            self._meter.charge_memory(size - self._held)
            self._held = size

    def _clear_appended(self) -> None:
        self._meter.charge_memory(-_APPENDED_BYTES * len(self._appended))
        self._appended.clear()

    # Commands

    def append(self, command: SedCommand) -> None:
        """`a`, `r`: print a text or a file at the end of the cycle."""
        self._meter.charge_memory(_APPENDED_BYTES)
        self._appended.append(command)

    def insert(self, command: SedCommand) -> None:
        """`i`: print a text now."""
        if command.text:
            self._print_line(command.text[:-1])

    def change(self, command: SedCommand) -> NextStep:
        """`c`: print a text in the place of the lines."""
        if command.last is None or command.negated or not command.is_active:
            self.insert(command)
        return NextStep.END

    def print_space(self, command: SedCommand) -> None:
        """`p`: print the line."""
        self._print_line(self._space.text, self._space.has_end)

    def print_first(self, command: SedCommand) -> None:
        """`P`: print up to the first newline."""
        text = self._space.text
        end = text.find(b"\n")
        self._print_line(text if end < 0 else text[:end], end >= 0 or self._space.has_end)

    def print_number(self, command: SedCommand) -> None:
        """`=`: print the number of the line."""
        self._print_line(b"%d" % self._lines.number)

    def print_name(self, command: SedCommand) -> None:
        """`F`: print the name of the file."""
        self._print_line(encode(self._lines.name))

    def print_escaped(self, command: SedCommand) -> None:
        """`l`: print the line with all that cannot be seen."""
        wrap = self._wrap if command.number is None else command.number
        width = 0
        pieces: list[bytes] = []
        for byte in self._space.text:
            unit = _VISIBLE[byte]
            if wrap and width + len(unit) > wrap - 1:
                pieces.append(b"\\\n")
                width = 0
            pieces.append(unit)
            width += len(unit)
            if len(pieces) >= _VISIBLE_AT_ONCE:
                self._meter.check()
                self._print(b"".join(pieces))
                pieces.clear()
        self._print_line(b"".join(pieces) + b"$")

    def delete(self, command: SedCommand) -> NextStep:
        """`d`: go on with the next line."""
        return NextStep.END

    def delete_first(self, command: SedCommand) -> NextStep:
        """`D`: delete up to the first newline and start again."""
        text = self._space.text
        end = text.find(b"\n")
        if end < 0:
            return NextStep.END
        self._space.text = text[end + 1 :]
        return NextStep.AGAIN

    def next_line(self, command: SedCommand) -> NextStep | None:
        """`n`: print the line and take the next."""
        if self._lines.is_last():
            self._print_unless_quiet()
            return NextStep.END
        self._print_unless_quiet()
        self._flush_appended()
        is_replaced = self._is_replaced
        self._read_line()
        self._is_replaced = is_replaced
        return None

    def add_line(self, command: SedCommand) -> NextStep | None:
        """`N`: add the next line."""
        self._flush_appended()
        line = self._lines.next()
        if line is None:
            self._print_unless_quiet()
            return NextStep.END
        self._space.add(line[0])
        self._space.has_end = line[1]
        self._account()
        return None

    def get(self, command: SedCommand) -> None:
        """`g`: take what is held."""
        self._space.copy(self._hold)

    def add_held(self, command: SedCommand) -> None:
        """`G`: add what is held."""
        self._space.add_all(self._hold)
        self._account()

    def hold(self, command: SedCommand) -> None:
        """`h`: hold the line."""
        self._hold.copy(self._space)

    def hold_more(self, command: SedCommand) -> None:
        """`H`: hold the line too."""
        self._hold.add_all(self._space)
        self._account()

    def exchange(self, command: SedCommand) -> None:
        """`x`: exchange the line and what is held."""
        self._space, self._hold = self._hold, self._space

    def empty(self, command: SedCommand) -> None:
        """`z`: empty the line."""
        self._space.text = b""

    def quit(self, command: SedCommand) -> NextStep:
        """`q`: print the line and end."""
        self._print_unless_quiet()
        return self.quit_now(command)

    def quit_now(self, command: SedCommand) -> NextStep:
        """`Q`: end."""
        if command.name == "Q":
            self._clear_appended()
        self.exit_status = command.number or 0
        return NextStep.END

    def jump(self, command: SedCommand) -> NextStep:
        """`b`: go on elsewhere."""
        return NextStep.JUMP

    def jump_if_replaced(self, command: SedCommand) -> NextStep | None:
        """`t`: go on elsewhere if something was replaced."""
        was, self._is_replaced = self._is_replaced, False
        return NextStep.JUMP if was else None

    def jump_unless_replaced(self, command: SedCommand) -> NextStep | None:
        """`T`: go on elsewhere if nothing was replaced."""
        was, self._is_replaced = self._is_replaced, False
        return None if was else NextStep.JUMP

    def exchange_characters(self, command: SedCommand) -> None:
        """`y`: put characters for others."""
        self._account(_TEXT_BYTES * self._space.size)
        self._space.text = encode(decode(self._space.text).translate(command.table))

    def substitute(self, command: SedCommand) -> None:
        """`s`: replace what matches."""
        if command.substitution is None:
            return
        if command.substitution.constant is None:
            changed = self._replaced(command.substitution, self._space.text)
        else:
            changed = self._replaced_literal(command.substitution, self._space.text)
        if changed is None:
            return
        self._space.text = changed
        self._is_replaced = True
        if command.substitution.prints:
            self._print_line(changed, self._space.has_end)

    def _replaced_literal(self, substitution: Substitution, text: bytes) -> bytes | None:
        self._last = substitution.pattern
        old, new = substitution.pattern.literal, substitution.constant
        if old is None or new is None or old not in text:
            return None
        count = text.count(old) if substitution.everywhere else 1
        self._account(len(text) + count * max(0, len(new) - len(old)))
        return text.replace(old, new, count)

    def _replaced(self, substitution: Substitution, text: bytes) -> bytes | None:
        regex, groups = self._resolved(substitution.pattern)
        replacement = substitution.replacement
        made = bytearray()
        at = room = 0
        is_replaced = False
        for count, found in enumerate(matches(regex, text), 1):
            if not count % _MATCHES_AT_ONCE:
                self._meter.check()
            if count < substitution.number:
                continue
            start, end = found.span()
            size = len(made) + start - at + replacement.most_bytes(end - start)
            if size > room:
                room = size + _FREE_BYTES
                # Twice what is made: it is copied when it grows, and at the end.
                self._account(2 * room)
            made += text[at:start]
            made += replacement.fill(text, found, groups)
            at = end
            is_replaced = True
            if not substitution.everywhere:
                break
        if not is_replaced:
            return None
        self._account(2 * (len(made) + len(text) - at))
        made += text[at:]
        return bytes(made)


def _drop(data: bytes) -> None:
    """Write nowhere."""


_VISIBLE = [bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte for byte in range(256)]
for _byte, _letter in zip(b"\\\a\b\f\n\r\t\v", b"\\abfnrtv", strict=True):
    _VISIBLE[_byte] = b"\\%c" % _letter

_ACTIONS: dict[str, Callable[[Machine, SedCommand], NextStep | None]] = {
    "a": Machine.append,
    "r": Machine.append,
    "i": Machine.insert,
    "c": Machine.change,
    "p": Machine.print_space,
    "P": Machine.print_first,
    "=": Machine.print_number,
    "F": Machine.print_name,
    "l": Machine.print_escaped,
    "d": Machine.delete,
    "D": Machine.delete_first,
    "n": Machine.next_line,
    "N": Machine.add_line,
    "g": Machine.get,
    "G": Machine.add_held,
    "h": Machine.hold,
    "H": Machine.hold_more,
    "x": Machine.exchange,
    "z": Machine.empty,
    "q": Machine.quit,
    "Q": Machine.quit_now,
    "b": Machine.jump,
    "t": Machine.jump_if_replaced,
    "T": Machine.jump_unless_replaced,
    "y": Machine.exchange_characters,
    "s": Machine.substitute,
}
