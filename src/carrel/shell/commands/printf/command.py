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
    long_double_of,
    parse_long_double,
)
from carrel.shell.state import MAX_VARIABLES_CHARACTERS
from carrel.shell.text.escapes import unescape_argument, unescape_format
from carrel.shell.text.quoting import decode, encode, quote_for_shell

USAGE = "[-v NAME] FORMAT [ARGUMENT]..."
NOTES = """\
  -v NAME    set the variable NAME instead of printing

FORMAT is reused until no argument is left. It may contain %d %i %u %o %x %X, %e %f %g %a, %c, %s,
%b (a string with escapes), %q (a string quoted for a command line) and %%, with flags, a width and
a precision, and the escapes \\a \\b \\e \\f \\n \\r \\t \\v \\\\ \\NNN \\xHH \\uHHHH."""
_INTEGER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SIGNED, _UNSIGNED = "di", "uoxX"
_PART_BYTES = 512
"""Memory charged for each conversion of a format."""
_MAX_CHARACTER_BYTES = 4
"""Most bytes of a character."""
_MAX_DIGITS = 100
"""Most digits that are parsed; a longer number is out of range anyway."""


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Print the arguments in the format."""
    variable, words = _parse_options(argv)
    printer = _Printer(ctx, words[1:])
    chunks = printer.print(encode(words[0]))
    if variable is None:
        for chunk in chunks:
            ctx.write(chunk)
    else:
        ctx.state.assign({variable: decode(b"".join(_limit_chunks(ctx, chunks)))})
    return ctx.status


def _limit_chunks(ctx: Context, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a value, at most one byte more than a variable may hold."""
    left = MAX_VARIABLES_CHARACTERS * _MAX_CHARACTER_BYTES + 1
    for chunk in chunks:
        ctx.meter.charge_memory(3 * len(chunk))
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            return


def _parse_options(argv: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Parse the options; return the variable to set, and the format with its arguments."""
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


class _OutputEnded(Exception):  # not an error
    """Raised by a `c` escape in an argument to end all output."""


class _Printer:
    """Applies a format until no argument is left."""

    def __init__(self, ctx: Context, arguments: Sequence[str]) -> None:
        self._ctx = ctx
        self._arguments = arguments
        self._index = 0

    def print(self, template: bytes) -> Iterator[bytes]:
        """Yield the output in chunks."""
        self._ctx.meter.charge_memory(_PART_BYTES * template.count(b"%"))
        parts = list(_split_format(template))
        try:
            while True:
                begin = self._index
                for part in parts:
                    yield part if isinstance(part, bytes) else self._convert(part)
                if self._index == begin or self._index >= len(self._arguments):
                    return
        except _OutputEnded as ended:
            yield ended.args[0]
        except _FormatError as error:
            self._ctx.error(str(error))

    def _next_argument(self) -> str | None:
        self._index += 1
        return self._arguments[self._index - 1] if self._index <= len(self._arguments) else None

    def _convert(self, match: re.Match[bytes]) -> bytes:
        letter = decode(match[5] or b"")
        if not letter:
            raise _FormatError(f"`{decode(match[0])}': missing format character")
        field = self._field(match, letter)
        convert = _CONVERSIONS.get(letter)
        if convert is None:
            raise _FormatError(f"`{letter}': invalid format character")
        return convert(self, field)

    def _field(self, match: re.Match[bytes], letter: str) -> Field:
        flags = decode(match[1])
        width = self._parse_size(match[2]) or 0
        precision = None
        if match[3]:
            precision = self._parse_size(match[4]) or 0
        if width < 0:
            flags, width = flags + "-", -width
        if precision is not None and precision < 0:
            precision = None
        if max(width, precision or 0) > MAX_FIELD_WIDTH:
            raise _FormatError(f"`{decode(match[0])}': field is wider than {MAX_FIELD_WIDTH}")
        return Field(flags, width, precision, letter)

    def _parse_size(self, text: bytes) -> int | None:
        if text == b"*":
            return self._next_integer(signed=True)
        return int(text[:18]) if text else None

    # Values

    def _next_integer(self, *, signed: bool) -> int:
        text = self._next_argument()
        if not text:
            return 0
        if text[0] in "'\"":
            return _code_point(text)
        match = _INTEGER.match(text)
        sign, digits = match.groups() if match else ("", "0")
        if match is None or match.end() < len(text):
            self._report_invalid_number(text)
        base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
        value = int(digits[:_MAX_DIGITS], base) * (-1 if sign == "-" else 1)
        return self._clamp(value, text, signed=signed)

    def _clamp(self, value: int, text: str, *, signed: bool) -> int:
        minimum, maximum = (-(2**63), 2**63 - 1) if signed else (-(2**64) + 1, 2**64 - 1)
        if not minimum <= value <= maximum:
            self._ctx.write_error_line(f"{self._ctx.name}: warning: {text}: Numerical result out of range")
            value = minimum if signed and value < 0 else maximum
        return value if signed else value % 2**64

    def _next_float(self) -> LongDouble:
        text = self._next_argument()
        if not text:
            return LongDouble()
        if text[0] in "'\"":
            return long_double_of(_code_point(text))
        value, rest = parse_long_double(text)
        if rest:
            self._report_invalid_number(text)
        return value

    def _report_invalid_number(self, text: str) -> None:
        kind = "octal " if re.match("0[0-9]", text) else "hex " if text[:2] == "0x" else ""
        self._ctx.error(f"{text}: invalid {kind}number")

    # Conversions

    def convert_integer(self, field: Field) -> bytes:
        """`%d` and the like."""
        return field.integer(self._next_integer(signed=field.letter in _SIGNED))

    def convert_floating(self, field: Field) -> bytes:
        """`%f` and the like."""
        return field.floating(self._next_float())

    def convert_text(self, field: Field) -> bytes:
        """`%s`."""
        return field.text(encode(self._next_argument() or ""))

    def convert_character(self, field: Field) -> bytes:
        """`%c`: the first byte, or NUL."""
        return Field(field.flags, field.width, None, "c").text(encode(self._next_argument() or "\0")[:1])

    def convert_unescaped(self, field: Field) -> bytes:
        """`%b`."""
        data, ends = unescape_argument(encode(self._next_argument() or ""))
        if ends:
            raise _OutputEnded(field.text(data))
        return field.text(data)

    def convert_quoted(self, field: Field) -> bytes:
        """`%q`."""
        return field.text(encode(quote_for_shell(self._next_argument() or "")))


class _FormatError(Exception):
    """The format is invalid; the output before the error was printed."""


_CONVERSIONS: dict[str, Callable[[_Printer, Field], bytes]] = {
    **dict.fromkeys(_SIGNED + _UNSIGNED, _Printer.convert_integer),
    **dict.fromkeys("eEfFgGaA", _Printer.convert_floating),
    "s": _Printer.convert_text,
    "c": _Printer.convert_character,
    "b": _Printer.convert_unescaped,
    "q": _Printer.convert_quoted,
    "Q": _Printer.convert_quoted,
}


def _split_format(template: bytes) -> Iterator[bytes | re.Match[bytes]]:
    """Yield the literal parts and the conversions of a format."""
    at = 0
    for match in DIRECTIVE.finditer(template):
        if match.start() > at:
            yield unescape_format(template[at : match.start()])
        at = match.end()
        yield b"%" if match[0] == b"%%" else match
    if at < len(template):
        yield unescape_format(template[at:])


def _code_point(text: str) -> int:
    """Return the code point after a quote; for a byte that is not UTF-8, its value."""
    if len(text) < 2:
        return 0
    code = ord(text[1])
    return code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code
