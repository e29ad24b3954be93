"""One conversion of a format of `printf`, such as `%-5.2f`, and how it makes text of a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from carrel.shell.long_double import LongDouble

DIRECTIVE = re.compile(
    rb"%([-+ #0']*)(\*|[0-9]+|)(?:(\.)(\*|[0-9]+|))?(?:hh|h|ll|l|j|z|t|L)*([^hljztL])?", re.DOTALL
)
"""Flags, width, a point, precision and the letter, which may be missing."""
WIDEST = 2**20
"""Most characters that a field may be made of."""


@dataclass(frozen=True, slots=True)
class Field:
    """How a value is printed."""

    flags: str
    width: int
    precision: int | None
    letter: str

    def text(self, data: bytes) -> bytes:
        """Bytes, cut and padded."""
        return self._padded(data if self.precision is None else data[: self.precision])

    def _padded(self, data: bytes) -> bytes:
        return data.ljust(self.width) if "-" in self.flags else data.rjust(self.width)

    def integer(self, value: int) -> bytes:
        """A whole number."""
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
        """A floating point number."""
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
        return self._padded((prefix + digits).encode())
