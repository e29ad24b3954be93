"""One line of a listing, and how its name is written."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from carrel.shell.mode import may_execute
from carrel.shell.quoting import encode
from carrel.values import FileInfo, FileKind


class Entry(NamedTuple):
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


class Style(Enum):
    """How names with odd characters are written."""

    LITERAL = "literal"
    HIDDEN = "hide-control-chars"
    ESCAPED = "escape"
    QUOTED = "c"


_ESCAPES = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 92: "\\\\"}
_ODD = re.compile(rb"[^ -~]")


def sign(info: FileInfo, indicator: Indicator) -> bytes:
    """The sign that tells what kind of file a name is."""
    if info.is_directory:
        return b"" if indicator is Indicator.NONE else b"/"
    if indicator in (Indicator.NONE, Indicator.SLASH):
        return b""
    if info.kind is FileKind.LINK:
        return b"@"
    executable = info.is_file and indicator is Indicator.CLASSIFY and may_execute(info)
    return b"*" if executable else b""


def written(name: str, style: Style) -> bytes:
    """*name* in the style that was asked for."""
    raw = encode(name)
    if style is Style.LITERAL:
        return raw
    if style is Style.HIDDEN:
        return _ODD.sub(b"?", raw)
    special = b'"' if style is Style.QUOTED else b" "
    text = b"".join(_escaped(byte, special[0]) for byte in raw)
    return b'"' + text + b'"' if style is Style.QUOTED else text


def heading(path: str, style: Style) -> bytes:
    """The line above the entries of a directory; a space needs no backslash before a colon."""
    text = written(path, style)
    return (text.replace(b"\\ ", b" ") if style is Style.ESCAPED else text) + b":\n"


def _escaped(byte: int, special: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte].encode()
    if byte == special:
        return b"\\" + bytes([byte])
    return bytes([byte]) if 32 <= byte < 127 else f"\\{byte:03o}".encode()
