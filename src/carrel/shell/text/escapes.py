"""Backslash escapes in the arguments of `echo` and `printf`."""

from __future__ import annotations

import re
from typing import NamedTuple

_SIMPLE = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r",
    b"t": b"\t", b"v": b"\v", b"\\": b"\\",
}  # fmt: skip
_NUMERIC = rb"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
_ECHO = re.compile(rb"\\(?:([abeEfnrtv\\])|0([0-7]{0,3})|" + _NUMERIC + rb"|(c))")
_ARGUMENT = re.compile(rb"\\(?:([abeEfnrtv\\])|0?([0-7]{1,3})|" + _NUMERIC + rb"|(c))")
_FORMAT = re.compile(rb"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|" + _NUMERIC + rb")")


class Unescaped(NamedTuple):
    """Decoded bytes, and whether a `c` escape ended the output there."""

    data: bytes
    ends: bool


def unescape_echo(text: bytes) -> Unescaped:
    """Decode the escapes of `echo -e`: octal numbers begin with a zero."""
    return _unescape(_ECHO, text)


def unescape_argument(text: bytes) -> Unescaped:
    """Decode the escapes of `printf %b`: octal numbers may have an extra leading zero."""
    return _unescape(_ARGUMENT, text)


def unescape_format(text: bytes) -> bytes:
    """Decode the escapes in a format of `printf`: octal numbers have at most three digits."""
    return _unescape(_FORMAT, text).data


def _unescape(pattern: re.Pattern[bytes], text: bytes) -> Unescaped:
    if b"\\" not in text:
        return Unescaped(text, False)
    chunks: list[bytes] = []
    offset = 0
    for match in pattern.finditer(text):
        chunks.append(text[offset : match.start()])
        if match[0] == b"\\c":
            return Unescaped(b"".join(chunks), True)
        chunks.append(_decode(match))
        offset = match.end()
    chunks.append(text[offset:])
    return Unescaped(b"".join(chunks), False)


def _decode(match: re.Match[bytes]) -> bytes:
    simple, octal, byte, short, long = match.groups()[:5]
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if byte is not None:
        return bytes([int(byte, 16)])
    if short is not None or long is not None:
        return _encode_code_point(int(short or long, 16), match[0])
    return bytes([int(octal or b"0", 8) & 0xFF])


def _encode_code_point(code: int, escape: bytes) -> bytes:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return escape
    return chr(code).encode()
