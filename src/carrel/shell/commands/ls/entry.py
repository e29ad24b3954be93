"""Entries of a listing: render their names, and sort them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from carrel.shell.text.attributes import may_execute
from carrel.shell.text.quoting import encode
from carrel.shell.text.version_order import version_key
from carrel.values import FileInfo, FileKind


class ListEntry(NamedTuple):
    """One file in a listing."""

    name: str
    """Name as displayed."""
    info: FileInfo
    target: FileInfo | None = None
    """Target of a link, if it was examined."""


class Indicator(Enum):
    """Which file types get an indicator after their names."""

    NONE = "none"
    SLASH = "slash"
    FILE_TYPE = "file-type"
    CLASSIFY = "classify"


class NameStyle(Enum):
    """How names with special characters are rendered."""

    LITERAL = "literal"
    HIDDEN = "hide-control-chars"
    ESCAPED = "escape"
    QUOTED = "c"


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
_NONPRINTING = re.compile(rb"[^ -~]")


def indicator_suffix(info: FileInfo, indicator: Indicator) -> bytes:
    """Return the indicator character for the type of a file."""
    if info.is_directory:
        return b"" if indicator is Indicator.NONE else b"/"
    if indicator in (Indicator.NONE, Indicator.SLASH):
        return b""
    if info.kind is FileKind.LINK:
        return b"@"
    executable = info.is_file and indicator is Indicator.CLASSIFY and may_execute(info)
    return b"*" if executable else b""


def render_name(name: str, style: NameStyle) -> bytes:
    """Render *name* in *style*."""
    raw = encode(name)
    if style is NameStyle.LITERAL:
        return raw
    if style is NameStyle.HIDDEN:
        return _NONPRINTING.sub(b"?", raw)
    special = b'"' if style is NameStyle.QUOTED else b" "
    text = b"".join(_escape(byte, special[0]) for byte in raw)
    return b'"' + text + b'"' if style is NameStyle.QUOTED else text


def render_heading(path: str, style: NameStyle) -> bytes:
    """Render the line above the entries of a directory, where spaces are not escaped."""
    text = render_name(path, style)
    return (text.replace(b"\\ ", b" ") if style is NameStyle.ESCAPED else text) + b":\n"


def _escape(byte: int, special: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte].encode()
    if byte == special:
        return b"\\" + bytes([byte])
    return bytes([byte]) if 32 <= byte < 127 else f"\\{byte:03o}".encode()


class ListOrder(Enum):
    """Sort order of a listing."""

    NAME = "name"
    NONE = "none"
    TIME = "time"
    SIZE = "size"
    EXTENSION = "extension"
    VERSION = "version"
    WIDTH = "width"


def sort_entries(
    entries: Iterable[ListEntry], order: ListOrder, *, reverse: bool, directories_first: bool
) -> list[ListEntry]:
    """Sort *entries*; `ListOrder.NONE` keeps their order."""
    ordered = list(entries)
    if order is ListOrder.NONE:
        return ordered
    ordered.sort(key=lambda entry: encode(entry.name))
    key = _KEYS.get(order)
    if key is not None:
        ordered.sort(key=key)
    if reverse:
        ordered.reverse()
    if directories_first:
        ordered.sort(key=lambda entry: not (entry.target or entry.info).is_directory)
    return ordered


def _extension(entry: ListEntry) -> bytes:
    _, dot, extension = encode(entry.name).rpartition(b".")
    return dot + extension if dot else b""


_KEYS: dict[ListOrder, Callable[[ListEntry], Any]] = {  # Any: keys of one order compare, of two they do not
    ListOrder.TIME: lambda entry: -entry.info.modified_ns,
    ListOrder.SIZE: lambda entry: -entry.info.host_bytes,
    ListOrder.EXTENSION: _extension,
    ListOrder.VERSION: lambda entry: version_key(encode(entry.name)),
    ListOrder.WIDTH: lambda entry: len(encode(entry.name)),
}
