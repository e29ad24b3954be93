"""Sizes as people read them, rounded up as the tools of GNU do."""

from __future__ import annotations

_UNITS = "KMGTPEZY"


def human(size: int, base: int = 1024) -> str:
    """*size* in at most four characters: `999`, `1.5K`, `24M`."""
    if size < base:
        return str(size)
    unit = 1
    while size >= base ** (unit + 1) and unit < len(_UNITS):
        unit += 1
    tenths = ceil_divide(size * 10, base**unit)
    whole = ceil_divide(size, base**unit)
    if tenths >= 100 and whole >= base and unit < len(_UNITS):
        unit, tenths = unit + 1, 10
    letter = "k" if base == 1000 and unit == 1 else _UNITS[unit - 1]
    if tenths < 100:
        return f"{tenths // 10}.{tenths % 10}{letter}"
    return f"{whole}{letter}"


def ceil_divide(number: int, by: int) -> int:
    """*number* divided by *by*, rounded up."""
    return -(-number // by)
