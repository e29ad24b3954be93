"""One entry of a listing: how its name is written, and how entries are sorted."""

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
    """As it is to be shown."""
    info: FileInfo
    leads_to: FileInfo | None = None
    """What is at the end of a link, if that was looked at."""


class Indicator(Enum):
    """Which signs follow names."""

    NONE = "none"
    SLASH = "slash"
    FILE_TYPE = "file-type"
    CLASSIFY = "classify"


class NameStyle(Enum):
    """How names with odd characters are written."""

    LITERAL = "literal"
    HIDDEN = "hide-control-chars"
    ESCAPED = "escape"
    QUOTED = "c"


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
_ODD = re.compile(rb"[^ -~]")


def indicator_suffix(info: FileInfo, indicator: Indicator) -> bytes:
    """The sign that tells what kind of file a name is."""
    if info.is_directory:
        return b"" if indicator is Indicator.NONE else b"/"
    if indicator in (Indicator.NONE, Indicator.SLASH):
        return b""
    if info.kind is FileKind.LINK:
        return b"@"
    executable = info.is_file and indicator is Indicator.CLASSIFY and may_execute(info)
    return b"*" if executable else b""


def render_name(name: str, style: NameStyle) -> bytes:
    """*name* in the style that was asked for."""
    raw = encode(name)
    if style is NameStyle.LITERAL:
        return raw
    if style is NameStyle.HIDDEN:
        return _ODD.sub(b"?", raw)
    special = b'"' if style is NameStyle.QUOTED else b" "
    text = b"".join(_escaped(byte, special[0]) for byte in raw)
    return b'"' + text + b'"' if style is NameStyle.QUOTED else text


def render_heading(path: str, style: NameStyle) -> bytes:
    """The line above the entries of a directory; a space needs no backslash before a colon."""
    text = render_name(path, style)
    return (text.replace(b"\\ ", b" ") if style is NameStyle.ESCAPED else text) + b":\n"


def _escaped(byte: int, special: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte].encode()
    if byte == special:
        return b"\\" + bytes([byte])
    return bytes([byte]) if 32 <= byte < 127 else f"\\{byte:03o}".encode()


class ListOrder(Enum):
    """By what a listing is sorted."""

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
    """*entries* in the order that was asked for; without one, in that in which they came."""
    found = list(entries)
    if order is ListOrder.NONE:
        return found
    found.sort(key=lambda entry: encode(entry.name))
    key = _KEYS.get(order)
    if key is not None:
        found.sort(key=key)
    if reverse:
        found.reverse()
    if directories_first:
        found.sort(key=lambda entry: not (entry.leads_to or entry.info).is_directory)
    return found


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
