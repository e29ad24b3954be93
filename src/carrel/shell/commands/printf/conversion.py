"""Conversions of `printf`: 80-bit floating point, and fields such as `%-5.2f`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

_BITS = 64
_LARGEST, _SMALLEST = 4932, -4951
"""Decimal exponents beyond which a value is infinite or zero."""
_PARSING = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""Rounds values out of range to infinity or zero, and never raises."""
_EXACT = Context(prec=40_000)
_NUMBER = re.compile(
    r"\s*([+-]?)(?:(inf(?:inity)?)|(nan)|0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p([+-]?[0-9]+))?"
    r"|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class LongDouble:
    """An 80-bit floating-point number: its sign, and *mantissa* times two to the power of *exponent*."""

    is_negative: bool = False
    mantissa: int = 0
    exponent: int = 0
    word: str = ""
    """`inf` or `nan` for those values, otherwise empty."""

    def digits(self, letter: str, precision: int | None, *, keeps_zeros: bool) -> str:
        """Render the number without its sign for the conversion *letter*, one of `eEfFgGaA`."""
        text = self.word or self._digits(letter.lower(), precision, keeps_zeros)
        return text.upper() if letter.isupper() else text

    def _digits(self, letter: str, precision: int | None, keeps_zeros: bool) -> str:
        if letter == "a":
            return self._hexadecimal(precision, keeps_zeros)
        places = 6 if precision is None else precision
        if letter == "g":
            return self._general(max(1, places), keeps_zeros)
        text = f"{self._decimal():.{places}f}" if letter == "f" else self._scientific(places)
        if keeps_zeros and places == 0:
            mantissa, sign, exponent = text.partition("e")
            return f"{mantissa}.{sign}{exponent}"
        return text

    def _decimal(self) -> Decimal:
        if not self.mantissa:
            return Decimal(0)
        if self.exponent >= 0:
            return Decimal(self.mantissa << self.exponent)
        scaled = Decimal(self.mantissa * 5**-self.exponent)
        return _EXACT.scaleb(scaled, self.exponent)

    def _scientific(self, places: int) -> str:
        if not self.mantissa:
            return f"{0.0:.{places}e}"
        mantissa, _, exponent = f"{self._decimal():.{places}e}".partition("e")
        return f"{mantissa}e{exponent[0]}{exponent[1:]:0>2}"

    def _general(self, places: int, keeps_zeros: bool) -> str:
        text = self._scientific(places - 1)
        power = int(text.partition("e")[2])
        if -4 <= power < places:
            text = f"{self._decimal():.{places - 1 - power}f}"
        mantissa, sign, exponent = text.partition("e")
        if keeps_zeros:
            mantissa += "" if "." in mantissa else "."
        elif "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}{sign}{exponent}"

    def _hexadecimal(self, precision: int | None, keeps_point: bool) -> str:
        if not self.mantissa:
            return "0x0" + ("." if precision or keeps_point else "") + "0" * (precision or 0) + "p+0"
        digits = f"{self.mantissa:016x}"
        if precision is not None and precision < 15:
            step = 1 << 4 * (15 - precision)
            digits = f"{round(Fraction(self.mantissa, step)):x}"
        whole, part = digits[:1], digits[1:]
        part = part.rstrip("0") if precision is None else part.ljust(precision, "0")[:precision]
        return f"0x{whole}{'.' if part or keeps_point else ''}{part}p{self.exponent + 60:+d}"


def long_double_of(value: int) -> LongDouble:
    """Return the long double nearest to *value*."""
    return _round(value < 0, Fraction(abs(value)))


def parse_long_double(text: str) -> tuple[LongDouble, str]:
    """Parse the number at the start of *text*, 0 if there is none; return it and the rest."""
    match = _NUMBER.match(text)
    if match is None:
        return LongDouble(), text
    sign, infinite, not_a_number, hexadecimal, power, decimal = match.groups()
    rest = text[match.end() :]
    if infinite or not_a_number:
        return LongDouble(sign == "-", word="inf" if infinite else "nan"), rest
    if hexadecimal:
        return _round(sign == "-", _from_hexadecimal(hexadecimal, power or "0")), rest
    value = _PARSING.create_decimal(decimal)
    if value.is_infinite() or (value and value.adjusted() > _LARGEST):
        return LongDouble(sign == "-", word="inf"), rest
    if not value or value.adjusted() < _SMALLEST:
        return LongDouble(sign == "-"), rest
    return _round(sign == "-", Fraction(value)), rest


def _from_hexadecimal(digits: str, power: str) -> Fraction:
    whole, _, part = digits[:1000].partition(".")
    exponent = max(-20_000, min(int(power[:8]), 16_000)) - 4 * len(part)
    number = Fraction(int(whole + part, 16))
    return number * (1 << exponent) if exponent >= 0 else number / (1 << -exponent)


def _round(is_negative: bool, value: Fraction) -> LongDouble:
    """Return the nearest number with a 64-bit mantissa."""
    if not value:
        return LongDouble(is_negative)
    numerator, denominator = value.numerator, value.denominator
    exponent = numerator.bit_length() - denominator.bit_length() - _BITS
    for candidate in (exponent, exponent + 1, exponent + 2):
        scaled = Fraction(numerator << max(0, -candidate), denominator << max(0, candidate))
        mantissa = round(scaled)
        if mantissa < 1 << _BITS:
            return LongDouble(is_negative, mantissa, candidate)
    return LongDouble(is_negative, 1 << (_BITS - 1), exponent + 3)


DIRECTIVE = re.compile(
    rb"%([-+ #0']*)(\*|[0-9]+|)(?:(\.)(\*|[0-9]+|))?(?:hh|h|ll|l|j|z|t|L)*([^hljztL])?", re.DOTALL
)
"""A conversion: flags, width, point, precision, and the letter, which may be missing."""
MAX_FIELD_WIDTH = 2**20
"""Most characters of a field."""


@dataclass(frozen=True, slots=True)
class Field:
    """Format of one conversion."""

    flags: str
    width: int
    precision: int | None
    letter: str

    def text(self, data: bytes) -> bytes:
        """Render bytes, truncated to the precision and padded."""
        return self._pad(data if self.precision is None else data[: self.precision])

    def _pad(self, data: bytes) -> bytes:
        return data.ljust(self.width) if "-" in self.flags else data.rjust(self.width)

    def integer(self, value: int) -> bytes:
        """Render an integer."""
        kind = "d" if self.letter in "diu" else self.letter
        digits = f"{abs(value):{kind}}"
        if self.precision is not None:
            digits = digits.rjust(self.precision, "0") if value or self.precision else ""
        prefix = ""
        if "#" in self.flags and kind == "o" and not digits.startswith("0"):
            digits = "0" + digits
        elif "#" in self.flags and kind in "xX" and value:
            prefix = "0" + kind
        sign = self._sign(value < 0) if self.letter in "di" else ""
        return self._number(sign + prefix, digits, zeros=self.precision is None)

    def floating(self, value: LongDouble) -> bytes:
        """Render a floating-point number."""
        digits = value.digits(self.letter, self.precision, keeps_zeros="#" in self.flags)
        prefix = self._sign(value.is_negative)
        if self.letter in "aA" and not value.word:
            prefix, digits = prefix + digits[:2], digits[2:]
        return self._number(prefix, digits, zeros=not value.word)

    def _sign(self, is_negative: bool) -> str:
        if is_negative:
            return "-"
        return "+" if "+" in self.flags else " " if " " in self.flags else ""

    def _number(self, prefix: str, digits: str, *, zeros: bool) -> bytes:
        if zeros and "0" in self.flags and "-" not in self.flags:
            digits = digits.rjust(self.width - len(prefix), "0")
        return self._pad((prefix + digits).encode())
