"""Backslash escapes in the arguments of `echo` and `printf`."""

from __future__ import annotations

import re
from typing import NamedTuple

_SIMPLE = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r",
    b"t": b"\t", b"v": b"\v", b"\\": b"\\",
}  # fmt: skip
_CODED = rb"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
_ECHO = re.compile(rb"\\(?:([abeEfnrtv\\])|0([0-7]{0,3})|" + _CODED + rb"|(c))")
_ARGUMENT = re.compile(rb"\\(?:([abeEfnrtv\\])|0?([0-7]{1,3})|" + _CODED + rb"|(c))")
_FORMAT = re.compile(rb"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|" + _CODED + rb")")


class Unescaped(NamedTuple):
    """Bytes without escapes, and whether one of them ended all output there."""

    data: bytes
    ends: bool


def unescape_echo(text: bytes) -> Unescaped:
    """What `echo -e` prints for *text*: octal numbers begin with a zero."""
    return _replaced(_ECHO, text)


def unescape_argument(text: bytes) -> Unescaped:
    """What `printf %b` prints for *text*: octal numbers may begin with a zero more."""
    return _replaced(_ARGUMENT, text)


def unescape_format(text: bytes) -> bytes:
    """A literal part of a format of `printf`: octal numbers have at most three digits."""
    return _replaced(_FORMAT, text).data


def _replaced(pattern: re.Pattern[bytes], text: bytes) -> Unescaped:
    if b"\\" not in text:
        return Unescaped(text, False)
    pieces: list[bytes] = []
    at = 0
    for found in pattern.finditer(text):
        pieces.append(text[at : found.start()])
        if found[0] == b"\\c":
            return Unescaped(b"".join(pieces), True)
        pieces.append(_value(found))
        at = found.end()
    pieces.append(text[at:])
    return Unescaped(b"".join(pieces), False)


def _value(found: re.Match[bytes]) -> bytes:
    simple, octal, byte, short, long = found.groups()[:5]
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    if byte is not None:
        return bytes([int(byte, 16)])
    if short is not None or long is not None:
        return _character(int(short or long, 16), found[0])
    return bytes([int(octal or b"0", 8) & 0xFF])


def _character(code: int, written: bytes) -> bytes:
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return written
    return chr(code).encode()
