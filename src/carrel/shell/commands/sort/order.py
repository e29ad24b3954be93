"""Orderings of `sort`: compare lines by keys, each with its own ordering."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from carrel.shell.command.flags import UsageError
from carrel.shell.text.version_order import version_key

KeyFunction = Callable[[bytes], Any]  # what keys are compared by differs from key to key
"""Returns the value that a line or a key is compared by."""

LETTERS = "bdfghiMnrV"
"""The letters of orderings, in the order of GNU's messages."""
_KINDS = "ghMn"
_BLANK = frozenset(b" \t\n")
_NOT_WORD = bytes(b for b in range(256) if b not in _BLANK and not (b < 128 and chr(b).isalnum()))
_NOT_PRINTED = bytes(b for b in range(256) if not 32 <= b < 127)
_UPPER = bytes(range(256)).upper()
_NUMBER = re.compile(rb"[ \t\n]*(-?[0-9]*(?:\.[0-9]*)?)")
_HUMAN = re.compile(rb"[ \t\n]*((-?)([0-9]*(?:\.[0-9]*)?))([KkMGTPEZY]?)")
_GENERAL = re.compile(
    rb"\s*([+-]?(?:inf(?:inity)?|nan|0x[0-9a-f]+(?:\.[0-9a-f]*)?(?:p[+-]?[0-9]+)?"
    rb"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?))",
    re.IGNORECASE,
)
_UNITS = {b"": 0, b"k": 1} | {b"%c" % unit: power for power, unit in enumerate(b"KMGTPEZY", 1)}
_MONTHS = b"JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
_MAX_INT_DIGITS = 18
_KEYS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key to compare lines by."""

    read: KeyFunction | None
    """Extracts the key; `None` for the whole line."""
    reverse: bool


@dataclass(frozen=True, slots=True)
class LineOrder:
    """Ordering of lines: by each key in turn, then by all bytes."""

    keys: tuple[SortKey, ...]
    last_resort: SortKey | None
    """Decides between lines with equal keys."""
    weight: int = 1
    """Memory charged for each byte of a line."""

    def sort(self, lines: list[bytes], check: Callable[[], None]) -> None:
        """Sort *lines* in place; *check* may stop it."""
        # The sort is stable, also in reverse, so the most important key comes last.
        for key in reversed(self._all_keys()):
            check()
            lines.sort(key=key.read and _with_checks(key.read, check), reverse=key.reverse)

    def rank(
        self, line: bytes, check: Callable[[], None]
    ) -> tuple[Any, ...]:  # what keys are compared by differs from key to key
        """Return a value that compares as *line* does; *check* may stop it."""
        check()
        values = ((line if key.read is None else key.read(line), key.reverse) for key in self._all_keys())
        return tuple(_Reversed(value) if reverse else value for value, reverse in values)

    def _all_keys(self) -> tuple[SortKey, ...]:
        return self.keys if self.last_resort is None else (*self.keys, self.last_resort)


def _with_checks(read: KeyFunction, check: Callable[[], None]) -> KeyFunction:
    """Return *read* with a periodic call of *check*."""
    count = 0

    def read_with_checks(line: bytes) -> Any:  # as in `KeyFunction`
        nonlocal count
        count += 1
        if not count % _KEYS_AT_ONCE:
            check()
        return read(line)

    return read_with_checks


class _Reversed:
    """A value with inverted comparison."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]  # it is only compared

    def __init__(self, value: Any) -> None:  # as in `KeyFunction`
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)


def require_compatible(letters: str) -> None:
    """Require orderings that can be combined.

    Raises:
        UsageError: They contradict each other.
    """
    count = sum(letter in letters for letter in _KINDS) + any(letter in letters for letter in "Vdi")
    if count > 1:
        incompatible = "".join(letter for letter in LETTERS if letter in letters and letter not in "br")
        raise UsageError(f"options '-{incompatible}' are incompatible", hint=False)


def value_reader(letters: str) -> KeyFunction | None:
    """Return a function for the orderings in *letters*; `None` if the key is compared as it is."""
    kind = next((_READERS[letter] for letter in letters if letter in _READERS), None)
    translate = _translator(letters)
    if translate is None or kind is None:
        return kind or translate
    return lambda text: kind(translate(text))


def _translator(letters: str) -> KeyFunction | None:
    table = _UPPER if "f" in letters else None
    dropped = _NOT_WORD if "d" in letters else _NOT_PRINTED if "i" in letters else b""
    if table is None and not dropped:
        return None
    return lambda text: text.translate(table, dropped)


def _parse_number(text: bytes) -> int | Decimal:
    """Return the value of a number with optional sign, digits and point."""
    if len(text) <= _MAX_INT_DIGITS and b"." not in text:
        return int(text) if text not in (b"", b"-") else 0
    return Decimal(text.decode()) if text not in (b".", b"-.", b"-") else 0


def _parse_numeric(text: bytes) -> int | Decimal:
    match = _NUMBER.match(text)
    return _parse_number(match[1]) if match else 0


def _parse_human(text: bytes) -> tuple[int, int | Decimal]:
    match = _HUMAN.match(text)
    if match is None:
        return 0, 0
    number, sign, digits, unit = match.groups()
    order = _UNITS[unit] if digits.strip(b"0.") else 0
    return (-order if sign else order), _parse_number(number)


def _parse_general(text: bytes) -> tuple[int, float]:
    """Rank text that is no number first, then NaN, then numbers."""
    match = _GENERAL.match(text)
    if match is None:
        return 0, 0.0
    digits = match[1].decode().lower()
    if "nan" in digits:
        return 1, 0.0
    try:
        return 2, float.fromhex(digits) if "x" in digits else float(digits)
    except OverflowError:
        return 2, float("-inf" if digits[0] == "-" else "inf")


def _parse_month(text: bytes) -> int:
    name = text.lstrip(b" \t\n")[:3].upper()
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


_READERS: dict[str, KeyFunction] = {
    "n": _parse_numeric,
    "h": _parse_human,
    "g": _parse_general,
    "M": _parse_month,
    "V": version_key,
}


def compose_readers(first: KeyFunction | None, second: KeyFunction | None) -> KeyFunction | None:
    """Return a function that applies *first*, then *second*; `None` is the identity."""
    if first is None or second is None:
        return first or second
    return lambda line: second(first(line))
