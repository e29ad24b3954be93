"""Print a sequence of numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import count
from typing import Annotated, ClassVar, NamedTuple

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import encode, quote_argument

USAGE = "[OPTION]... LAST\n       seq [OPTION]... FIRST LAST\n       seq [OPTION]... FIRST INCREMENT LAST"
_MAX_DIGITS = 4000
"""Longer numbers count as infinite."""
_MAX_WIDTH = 10_000
"""Largest width and precision in a format."""
_NUMBER = re.compile(r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.I)
_HEXADECIMAL = re.compile(r"\s*([+-]?)0[xX]([0-9a-fA-F]{1,60})")
_DIRECTIVE = re.compile(r"%([-+ #0']*)([0-9]*)((?:\.[0-9]*)?)L?(.?)", re.S)


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `seq`."""

    NEGATIVE_OPERANDS: ClassVar[bool] = True
    format: Annotated[
        str | None,
        Opt("-f", "--format", metavar="FORMAT", help="print numbers with FORMAT, such as %g or %.2f"),
    ] = None
    separator: Annotated[
        str, Opt("-s", "--separator", metavar="STRING", help="separate numbers with STRING, not newline")
    ] = "\n"
    equal_width: Annotated[bool, Opt("-w", "--equal-width", help="pad with leading zeros to equal width")] = (
        False
    )


class _Number(NamedTuple):
    value: Decimal | None
    """`None` for infinity."""
    places: int
    """Digits after the decimal point."""
    width: int
    """Characters when printed."""
    is_negative: bool


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print numbers from the first to the last, in steps of the increment."""
    first, step, last = _parse_operands(operands)
    if flags.format is not None and flags.equal_width:
        raise UsageError("format string may not be specified when printing equal width strings", status=1)
    places = max(first.places, step.places)
    render = _renderer(flags, places, _width(first, last, places) if flags.equal_width else 0)
    texts = (render(value) for value in _values(first, step, last, places))
    if first.is_negative and first.value == 0:
        texts = (f"-{text}" if at == 0 else text for at, text in enumerate(texts))
    _print(ctx, texts, encode(flags.separator))
    return 0


def _print(ctx: Context, texts: Iterator[str], separator: bytes) -> None:
    first = next(texts, None)
    if first is not None:
        ctx.write(encode(first))
        ctx.write_each(separator + encode(text) for text in texts)
    if first is not None or not separator:
        ctx.write(b"\n")


def _parse_operands(operands: Sequence[str]) -> tuple[_Number, _Number, _Number]:
    """Return the first number, the increment and the last number."""
    if not operands:
        raise UsageError("missing operand", status=1)
    if len(operands) > 3:
        raise UsageError(f"extra operand {quote_argument(operands[3])}", status=1)
    numbers = [_parse(operand) for operand in operands]
    one = _parse("1")
    first = numbers[0] if len(numbers) > 1 else one
    step = numbers[1] if len(numbers) > 2 else one
    if step.value == 0:
        raise UsageError(f"invalid Zero increment value: {quote_argument(operands[1])}", status=1)
    if first.value is None or step.value is None:
        raise UsageError(f"invalid floating point argument: {quote_argument(operands[0])}", status=1)
    return first, step, numbers[-1]


def _parse(text: str) -> _Number:
    if hexadecimal := _HEXADECIMAL.fullmatch(text):
        value = Decimal(int(hexadecimal[1] + hexadecimal[2], 16))
        return _Number(value, 0, len(str(value)), value < 0)
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"invalid floating point argument: {quote_argument(text)}", status=1)
    bare = text.strip().lstrip("+")
    if "nan" in bare.lower():
        raise UsageError(f"invalid 'not-a-number' argument: {quote_argument(text)}", status=1)
    is_negative = bare.startswith("-")
    try:
        value = Decimal(bare)
    except InvalidOperation:
        value = Decimal("inf")
    if value.is_infinite() or abs(value.adjusted()) > _MAX_DIGITS or len(bare) > _MAX_DIGITS:
        return _Number(None, 0, 0, is_negative)
    places = max(0, -int(value.as_tuple().exponent))
    return _Number(value, places, _printed_width(bare, value), is_negative)


def _printed_width(bare: str, value: Decimal) -> int:
    """Return the width of a number as the caller wrote it, with leading zeros."""
    if "e" in bare.lower():
        return len(f"{value:f}")
    return len(bare) + bare.lstrip("-").startswith(".") - bare.endswith(".")


def _width(first: _Number, last: _Number, places: int) -> int:
    """Return the common width of numbers that are printed with *places* decimals."""
    return max(_whole_width(first), _whole_width(last)) + (places + 1 if places else 0)


def _whole_width(number: _Number) -> int:
    return number.width - (number.places + 1 if number.places else 0)


def _values(first: _Number, step: _Number, last: _Number, places: int) -> Iterator[int]:
    """Return the numbers, multiplied by ten to the power of *places*."""
    start, increment = _scale(first.value, places), _scale(step.value, places)
    if last.value is None:
        return iter(()) if last.is_negative == (increment > 0) else count(start, increment)
    # A last number with more decimals is never reached exactly, so it is rounded towards the start.
    end = _scale(last.value, places, up=increment < 0)
    return iter(range(start, end + (1 if increment > 0 else -1), increment))


def _scale(value: Decimal | None, places: int, *, up: bool = False) -> int:
    """Return *value* times ten to the power of *places*, rounded down, or *up*."""
    sign, digits, exponent = (value or Decimal(0)).as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    power = int(exponent) + places
    if power >= 0:
        return int(number * 10**power)
    return int(-(-number // 10**-power) if up else number // 10**-power)


def _renderer(flags: Flags, places: int, width: int) -> Callable[[int], str]:
    """Return the function that renders a scaled number."""
    if flags.format is not None:
        template = _parse_format(flags.format)
        return lambda value: template % _to_float(value, places)
    if not places:
        return lambda value: f"{value:0{width}d}" if width else str(value)

    def render(value: int) -> str:
        whole, part = divmod(abs(value), 10**places)
        sign = "-" if value < 0 else ""
        return f"{sign}{whole:0{max(1, width - places - 1 - len(sign))}d}.{part:0{places}d}"

    return render


def _to_float(value: int, places: int) -> float:
    divisor: int = 10**places
    try:
        return value / divisor
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _parse_format(text: str) -> str:
    """Check that a format has exactly one valid directive, and return it for the `%` operator."""
    found = [each for each in _DIRECTIVE.finditer(text.replace("%%", "\0\0")) if each[0]]
    problem = ""
    if not found:
        problem = "has no % directive"
    elif not found[0][4] or found[0][4] == "\0":
        problem = "ends in %"
    elif found[0][4] not in "eEfFgG":
        problem = f"has unknown %{found[0][4]} directive"
    elif len(found) > 1:
        problem = "has too many % directives"
    elif int(found[0][2] or "0") > _MAX_WIDTH or int(found[0][3][1:] or "0") > _MAX_WIDTH:
        problem = "is too wide"
    if problem:
        raise UsageError(f"format {quote_argument(text)} {problem}", status=1, hint=False)
    flags, width, precision, letter = found[0].groups()
    directive = f"%{flags.replace(chr(39), '')}{width}{precision}{letter}"
    begin, end = found[0].span()
    return text[:begin] + directive + text[end:]
