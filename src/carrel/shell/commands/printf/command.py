"""Print values in a format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from carrel.shell.command.context import Context
from carrel.shell.command.flags import UsageError
from carrel.shell.commands.printf.conversion import (
    DIRECTIVE,
    MAX_FIELD_WIDTH,
    Field,
    LongDouble,
    of_int,
    parse_long_double,
)
from carrel.shell.state import MAX_VARIABLES_CHARACTERS
from carrel.shell.text.escapes import unescape_argument, unescape_format
from carrel.shell.text.quoting import decode, encode, quote_for_shell

USAGE = "[-v NAME] FORMAT [ARGUMENT]..."
NOTES = """\
  -v NAME    set the variable NAME instead of printing

FORMAT is used again until no argument is left. It may hold %d %i %u %o %x %X, %e %f %g %a, %c, %s,
%b (a string with escapes), %q (a string that can be pasted into a command line) and %%, with flags,
a width and a precision, and the escapes \\a \\b \\e \\f \\n \\r \\t \\v \\\\ \\NNN \\xHH \\uHHHH."""
_INTEGER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNED, _UNSIGNED = "di", "uoxX"
_PART_BYTES = 512
"""Memory that a conversion of a format takes."""
_LONGEST_CHARACTER = 4
"""Most bytes of a character."""
_MOST_DIGITS = 100
"""A number with more digits is out of range in any case."""


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Print the arguments as the format says."""
    variable, words = _options(argv)
    printer = _Printer(ctx, words[1:])
    pieces = printer.print(encode(words[0]))
    if variable is None:
        for piece in pieces:
            ctx.write(piece)
    else:
        ctx.state.assign({variable: decode(b"".join(_held(ctx, pieces)))})
    return ctx.status


def _held(ctx: Context, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces of a value, at most one byte more than any variable may have."""
    left = MAX_VARIABLES_CHARACTERS * _LONGEST_CHARACTER + 1
    for piece in pieces:
        ctx.meter.charge_memory(3 * len(piece))
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _options(argv: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The variable to be set, and the format with its arguments."""
    variable = None
    words = list(argv)
    while words and words[0][:2] == "-v":
        joined = words.pop(0)[2:]
        variable = joined or (words.pop(0) if words else "")
        if not _NAME.fullmatch(variable):
            raise UsageError(f"`{variable}': not a valid identifier", hint=False)
    if words and words[0] == "--":
        del words[0]
    elif words and len(words[0]) > 1 and words[0][0] == "-":
        raise UsageError(f"{words[0][:2]}: invalid option")
    if not words:
        raise UsageError("usage: printf [-v var] format [arguments]", hint=False)
    return variable, words


class _Ended(Exception):  # nothing is wrong
    """An argument said that nothing more is printed."""


class _Printer:
    """Uses a format until no argument is left."""

    def __init__(self, ctx: Context, arguments: Sequence[str]) -> None:
        self._ctx = ctx
        self._arguments = arguments
        self._next = 0

    def print(self, template: bytes) -> Iterator[bytes]:
        """What is to be printed, piece by piece."""
        self._ctx.meter.charge_memory(_PART_BYTES * template.count(b"%"))
        parts = list(_parts(template))
        try:
            while True:
                begin = self._next
                for part in parts:
                    yield part if isinstance(part, bytes) else self._converted(part)
                if self._next == begin or self._next >= len(self._arguments):
                    return
        except _Ended as ended:
            yield ended.args[0]
        except _FormatError as error:
            self._ctx.error(str(error))

    def _argument(self) -> str | None:
        self._next += 1
        return self._arguments[self._next - 1] if self._next <= len(self._arguments) else None

    def _converted(self, found: re.Match[bytes]) -> bytes:
        letter = decode(found[5] or b"")
        if not letter:
            raise _FormatError(f"`{decode(found[0])}': missing format character")
        field = self._field(found, letter)
        convert = _CONVERSIONS.get(letter)
        if convert is None:
            raise _FormatError(f"`{letter}': invalid format character")
        return convert(self, field)

    def _field(self, found: re.Match[bytes], letter: str) -> Field:
        flags = decode(found[1])
        width = self._size(found[2]) or 0
        precision = None
        if found[3]:
            precision = self._size(found[4]) or 0
        if width < 0:
            flags, width = flags + "-", -width
        if precision is not None and precision < 0:
            precision = None
        if max(width, precision or 0) > MAX_FIELD_WIDTH:
            raise _FormatError(f"`{decode(found[0])}': field is wider than {MAX_FIELD_WIDTH}")
        return Field(flags, width, precision, letter)

    def _size(self, written: bytes) -> int | None:
        if written == b"*":
            return self._integer(signed=True)
        return int(written[:18]) if written else None

    # Values

    def _integer(self, *, signed: bool) -> int:
        text = self._argument()
        if not text:
            return 0
        if text[0] in "'\"":
            return _code(text)
        found = _INTEGER.match(text)
        sign, digits = found.groups() if found else ("", "0")
        if found is None or found.end() < len(text):
            self._complain_number(text)
        base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
        value = int(digits[:_MOST_DIGITS], base) * (-1 if sign == "-" else 1)
        return self._within(value, text, signed=signed)

    def _within(self, value: int, text: str, *, signed: bool) -> int:
        least, most = (-(2**63), 2**63 - 1) if signed else (-(2**64) + 1, 2**64 - 1)
        if not least <= value <= most:
            self._ctx.write_error_line(f"{self._ctx.name}: warning: {text}: Numerical result out of range")
            value = least if signed and value < 0 else most
        return value if signed else value % 2**64

    def _floating(self) -> LongDouble:
        text = self._argument()
        if not text:
            return LongDouble()
        if text[0] in "'\"":
            return of_int(_code(text))
        value, rest = parse_long_double(text)
        if rest:
            self._complain_number(text)
        return value

    def _complain_number(self, text: str) -> None:
        kind = "octal " if re.match("0[0-9]", text) else "hex " if text[:2] == "0x" else ""
        self._ctx.error(f"{text}: invalid {kind}number")

    # Conversions

    def as_integer(self, field: Field) -> bytes:
        """`%d` and the like."""
        return field.integer(self._integer(signed=field.letter in _SIGNED))

    def as_floating(self, field: Field) -> bytes:
        """`%f` and the like."""
        return field.floating(self._floating())

    def as_text(self, field: Field) -> bytes:
        """`%s`."""
        return field.text(encode(self._argument() or ""))

    def as_character(self, field: Field) -> bytes:
        """`%c`: the first byte, or NUL."""
        return Field(field.flags, field.width, None, "c").text(encode(self._argument() or "\0")[:1])

    def as_unescaped(self, field: Field) -> bytes:
        """`%b`."""
        data, ends = unescape_argument(encode(self._argument() or ""))
        if ends:
            raise _Ended(field.text(data))
        return field.text(data)

    def as_quoted(self, field: Field) -> bytes:
        """`%q`."""
        return field.text(encode(quote_for_shell(self._argument() or "")))


class _FormatError(Exception):
    """The format is wrong; what precedes it was printed."""


_CONVERSIONS: dict[str, Callable[[_Printer, Field], bytes]] = {
    **dict.fromkeys(_SIGNED + _UNSIGNED, _Printer.as_integer),
    **dict.fromkeys("eEfFgGaA", _Printer.as_floating),
    "s": _Printer.as_text,
    "c": _Printer.as_character,
    "b": _Printer.as_unescaped,
    "q": _Printer.as_quoted,
    "Q": _Printer.as_quoted,
}


def _parts(template: bytes) -> Iterator[bytes | re.Match[bytes]]:
    """The literal parts and the conversions of a format."""
    at = 0
    for found in DIRECTIVE.finditer(template):
        if found.start() > at:
            yield unescape_format(template[at : found.start()])
        at = found.end()
        yield b"%" if found[0] == b"%%" else found
    if at < len(template):
        yield unescape_format(template[at:])


def _code(text: str) -> int:
    """The number of the character after a quote; that of a byte which is not UTF-8 is its value."""
    if len(text) < 2:
        return 0
    code = ord(text[1])
    return code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code
