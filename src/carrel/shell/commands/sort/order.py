"""How `sort` compares lines: by keys, each with an ordering of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

from carrel.shell.command.flags import UsageError
from carrel.shell.text.version_order import version_key

KeyFunction = Callable[[bytes], Any]  # what keys are compared by differs from key to key
"""Makes of a line or a key what it is compared by."""

LETTERS = "bdfghiMnrV"
"""The letters of orders, as they are shown."""
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
_SMALL_DIGITS = 18
_KEYS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class SortKey:
    """One thing that lines are compared by."""

    read: KeyFunction | None
    """`None` for the line as it is."""
    reverse: bool


@dataclass(frozen=True, slots=True)
class LineOrder:
    """How lines are compared: by each key in turn, and then by all their bytes."""

    keys: tuple[SortKey, ...]
    last_resort: SortKey | None
    """What decides between lines that no key tells apart."""
    weight: int = 1
    """How many bytes are held for each byte of a line."""

    def sort(self, lines: list[bytes], check: Callable[[], None]) -> None:
        """Put *lines* in order; *check* may stop it."""
        # The sort is stable, also in reverse, so the most important key comes last.
        for key in reversed(self._all()):
            check()
            lines.sort(key=key.read and _checked(key.read, check), reverse=key.reverse)

    def rank(
        self, line: bytes, check: Callable[[], None]
    ) -> tuple[Any, ...]:  # what keys are compared by differs from key to key
        """What *line* can be compared by with others; *check* may stop it."""
        check()
        values = ((line if key.read is None else key.read(line), key.reverse) for key in self._all())
        return tuple(_Reversed(value) if reverse else value for value, reverse in values)

    def _all(self) -> tuple[SortKey, ...]:
        return self.keys if self.last_resort is None else (*self.keys, self.last_resort)


def _checked(read: KeyFunction, check: Callable[[], None]) -> KeyFunction:
    """The same as *read*, but *check* is asked now and then."""
    count = 0

    def checked(line: bytes) -> Any:  # as in `KeyFunction`
        nonlocal count
        count += 1
        if not count % _KEYS_AT_ONCE:
            check()
        return read(line)

    return checked


class _Reversed:
    """A value that comes before what it would come after."""

    __slots__ = ("value",)
    __hash__ = None  # type: ignore[assignment]  # it is only compared

    def __init__(self, value: Any) -> None:  # as in `KeyFunction`
        self.value = value

    def __lt__(self, other: _Reversed) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)


def require_compatible(letters: str) -> None:
    """Refuse orders that contradict each other.

    Raises:
        UsageError: They do.
    """
    count = sum(letter in letters for letter in _KINDS) + any(letter in letters for letter in "Vdi")
    if count > 1:
        named = "".join(letter for letter in LETTERS if letter in letters and letter not in "br")
        raise UsageError(f"options '-{named}' are incompatible", hint=False)


def value_reader(letters: str) -> KeyFunction | None:
    """What the text of a key is compared by, in the order that *letters* name; `None` for the text itself."""
    kind = next((_READERS[letter] for letter in letters if letter in _READERS), None)
    translate = _translator(letters)
    if translate is None or kind is None:
        return kind or translate
    return lambda text: kind(translate(text))


def _translator(letters: str) -> KeyFunction | None:
    table = _UPPER if "f" in letters else None
    left_out = _NOT_WORD if "d" in letters else _NOT_PRINTED if "i" in letters else b""
    if table is None and not left_out:
        return None
    return lambda text: text.translate(table, left_out)


def _number(text: bytes) -> int | Decimal:
    """The value of digits, which may have a sign and a point, or be missing."""
    if len(text) <= _SMALL_DIGITS and b"." not in text:
        return int(text) if text not in (b"", b"-") else 0
    return Decimal(text.decode()) if text not in (b".", b"-.", b"-") else 0


def _numeric(text: bytes) -> int | Decimal:
    found = _NUMBER.match(text)
    return _number(found[1]) if found else 0


def _human(text: bytes) -> tuple[int, int | Decimal]:
    found = _HUMAN.match(text)
    if found is None:
        return 0, 0
    number, sign, digits, unit = found.groups()
    order = _UNITS[unit] if digits.strip(b"0.") else 0
    return (-order if sign else order), _number(number)


def _general(text: bytes) -> tuple[int, float]:
    """What is no number comes first, then NaN, then numbers."""
    found = _GENERAL.match(text)
    if found is None:
        return 0, 0.0
    digits = found[1].decode().lower()
    if "nan" in digits:
        return 1, 0.0
    try:
        return 2, float.fromhex(digits) if "x" in digits else float(digits)
    except OverflowError:
        return 2, float("-inf" if digits[0] == "-" else "inf")


def _month(text: bytes) -> int:
    name = text.lstrip(b" \t\n")[:3].upper()
    return _MONTHS.index(name) + 1 if name in _MONTHS else 0


_READERS: dict[str, KeyFunction] = {
    "n": _numeric,
    "h": _human,
    "g": _general,
    "M": _month,
    "V": version_key,
}


def compose_readers(*readers: KeyFunction | None) -> KeyFunction | None:
    """One reader after another."""
    some = [reader for reader in chain(readers) if reader is not None]
    if len(some) < 2:
        return some[0] if some else None
    first, second = some
    return lambda line: second(first(line))
