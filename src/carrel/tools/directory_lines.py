"""A directory as lines, one for each name."""

from __future__ import annotations

from carrel.tools.lines import one_line
from carrel.values import FileInfo

_UNITS = ("B", "KB", "MB", "GB", "TB")


def marked(info: FileInfo) -> str:
    """The name, and before it whether it is a directory."""
    return f"[{'DIR' if info.is_directory else 'FILE'}] {one_line(info.name)}"


def sized(info: FileInfo) -> str:
    """The same with the size of a file, in columns."""
    if info.is_directory:
        return marked(info)
    return f"{marked(info):<37} {size(info.size_bytes):>10}"


def size(size_bytes: int) -> str:
    """A size that people can read, in steps of 1024."""
    number = float(size_bytes)
    for unit in _UNITS:
        if number < 1024 or unit == _UNITS[-1]:
            break
        number /= 1024
    return f"{size_bytes} {unit}" if unit == "B" else f"{number:.2f} {unit}"
