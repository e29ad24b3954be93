"""A directory as lines, one for each name."""

from __future__ import annotations

from collections.abc import Iterable

from carrel.tools.lines import one_line
from carrel.values import FileInfo, FileKind, Named

# It is asked for at every name, and to look up a member of an enum is slow.
_DIRECTORY = FileKind.DIRECTORY
_UNITS = ("B", "KB", "MB", "GB", "TB")


def marked(found: Iterable[Named]) -> list[str]:
    """The names, and before each whether it is a directory."""
    return [f"[{'DIR' if kind is _DIRECTORY else 'FILE'}] {one_line(name)}" for name, kind in found]


def sized(info: FileInfo) -> str:
    """The same with the size of a file, in columns."""
    (shown,) = marked([(info.name, info.kind)])
    return shown if info.is_directory else f"{shown:<37} {size(info.size_bytes):>10}"


def size(size_bytes: int) -> str:
    """A size that people can read, in steps of 1024."""
    number = float(size_bytes)
    for unit in _UNITS:
        if number < 1024 or unit == _UNITS[-1]:
            break
        number /= 1024
    return f"{size_bytes} {unit}" if unit == "B" else f"{number:.2f} {unit}"
