"""File attributes as text: kind, permissions, owner, and human-readable sizes rounded up as GNU does."""

from __future__ import annotations

from functools import cache

from carrel.values import FileInfo, FileKind

OWNER = "root"
"""Owner and group of every file; a session has one owner."""
_LETTERS = {FileKind.FILE: "-", FileKind.DIRECTORY: "d", FileKind.LINK: "l", FileKind.OTHER: "?"}
_TYPES = {FileKind.FILE: 0o100000, FileKind.DIRECTORY: 0o040000, FileKind.LINK: 0o120000, FileKind.OTHER: 0}


def mode_letters(info: FileInfo) -> str:
    """Render type and permissions as `ls -l` does: `-rw-r--r--`."""
    return _LETTERS[info.kind] + _bits(info.mode)


@cache
def _bits(mode: int) -> str:
    return "".join(letter if mode >> (8 - at) & 1 else "-" for at, letter in enumerate("rwxrwxrwx"))


def raw_mode(info: FileInfo) -> int:
    """Return type and permissions as `st_mode` has them."""
    return _TYPES[info.kind] | info.mode


def kind_words(info: FileInfo) -> str:
    """Return the file type in the words of `stat`."""
    if info.kind is FileKind.FILE:
        return "regular file" if info.size_bytes else "regular empty file"
    return {FileKind.DIRECTORY: "directory", FileKind.LINK: "symbolic link"}.get(info.kind, "weird file")


def may_execute(info: FileInfo) -> bool:
    """Whether any class of users has execute permission."""
    return bool(info.mode & 0o111)


_UNITS = "KMGTPEZY"


def human(size: int, base: int = 1024) -> str:
    """Render *size* in at most four characters: `999`, `1.5K`, `24M`."""
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


def ceil_divide(number: int, divisor: int) -> int:
    """Return *number* divided by *divisor*, rounded up."""
    return -(-number // divisor)
