"""Formats of `find -printf`: directives like `%p`, and escapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from carrel.errors import CarrelError, LoopError
from carrel.shell.command.context import Context
from carrel.shell.commands.find.search import ExpressionError, FoundFile
from carrel.shell.text.attributes import OWNER, ceil_divide, mode_letters
from carrel.shell.text.quoting import encode
from carrel.shell.text.timestamps import SECOND_NS, render_timestamp
from carrel.values import FileInfo, FileKind

FormatPiece = Callable[[FoundFile], bytes]
_PART = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>[0-9]{0,4})(?:\.(?P<precision>[0-9]{1,4}))?(?:T(?P<time>.)|(?P<letter>.))"
    r"|\\(?P<octal>[0-7]{1,3})|\\(?P<escape>.)|(?P<plain>[^%\\]+)|(?P<last>[%\\])",
    re.DOTALL,
)
_ESCAPES = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\"}
_PIECE_BYTES = 1024
"""Memory that a directive or an escape takes, with the text behind it."""
_KINDS = {FileKind.FILE: "f", FileKind.DIRECTORY: "d", FileKind.LINK: "l", FileKind.OTHER: "U"}
_NUMBERS = "sdmnikbUG"
_SECONDS = {"S", "T", "+", "X", "@"}


def compile_format(ctx: Context, text: str) -> Callable[[FoundFile], Iterator[bytes]]:
    """What makes the pieces of *text* about a file; what is not known in it is told, and printed as it is.

    Raises:
        ExpressionError: It ends in the middle of a directive.
    """
    ctx.meter.charge_memory(_PIECE_BYTES * (text.count("%") + text.count("\\")))
    pieces: list[FormatPiece] = []
    for part in _PART.finditer(text):
        if part["escape"] == "c":
            break
        pieces.append(_piece(ctx, part))
    return lambda visit: (piece(visit) for piece in pieces)


def _piece(ctx: Context, part: re.Match[str]) -> FormatPiece:
    if part["plain"] is not None:
        return _constant(encode(part["plain"]))
    if part["octal"] is not None:
        return _constant(bytes([int(part["octal"], 8) & 255]))
    if part["escape"] is not None:
        return _escape(ctx, part["escape"])
    if part["last"] is not None:
        if part["last"] == "%":
            raise ExpressionError("error: % at end of format string")
        return _constant(b"\\")
    return _directive(ctx, part)


def _constant(data: bytes) -> FormatPiece:
    return lambda visit: data


def _escape(ctx: Context, letter: str) -> FormatPiece:
    if letter not in _ESCAPES:
        ctx.write_error_line(f"{ctx.name}: warning: unrecognized escape `\\{letter}'")
        return _constant(encode("\\" + letter))
    return _constant(_ESCAPES[letter])


def _directive(ctx: Context, part: re.Match[str]) -> FormatPiece:
    if part["letter"] == "%":
        return _constant(b"%")
    value = _value(ctx, part)
    if value is None:
        ctx.write_error_line(f"{ctx.name}: warning: unrecognized format directive `%{part['letter']}'")
        return _constant(encode(part[0]))
    if not part["flags"] and not part["width"] and part["precision"] is None:
        return lambda visit: encode(value(visit))
    return lambda visit: _padded(encode(value(visit)), part)


def _padded(data: bytes, part: re.Match[str]) -> bytes:
    if part["precision"] is not None and part["letter"] not in _NUMBERS:
        data = data[: int(part["precision"])]
    width = int(part["width"] or 0)
    if "-" in part["flags"]:
        return data.ljust(width)
    is_number = part["letter"] is not None and part["letter"] in _NUMBERS
    return data.rjust(width, b"0" if "0" in part["flags"] and is_number else b" ")


def _value(ctx: Context, part: re.Match[str]) -> Callable[[FoundFile], str] | None:
    if part["time"] is not None:
        form = part["time"]
        return lambda visit: _time(form, visit.info.modified_ns)
    if part["letter"] == "l":
        return lambda visit: _link(ctx, visit)
    if part["letter"] == "Y":
        return lambda visit: _end_kind(ctx, visit)
    return _VALUES.get(part["letter"])


def _time(form: str, when_ns: int) -> str:
    fraction = f".{when_ns % SECOND_NS:09d}0"
    if form == "@":
        return f"{when_ns // SECOND_NS}{fraction}"
    if form == "+":
        return render_timestamp("%Y-%m-%d+%H:%M:%S", when_ns) + fraction
    return render_timestamp(f"%{form}", when_ns) + (fraction if form in _SECONDS else "")


def _link(ctx: Context, visit: FoundFile) -> str:
    if visit.info.kind is not FileKind.LINK:
        return ""
    return visit.info.target or ctx.stat(visit.path, follow=False).target or ""


def _end_kind(ctx: Context, visit: FoundFile) -> str:
    if visit.info.kind is not FileKind.LINK:
        return _KINDS[visit.info.kind]
    try:
        return _KINDS[ctx.stat(visit.path).kind]
    except LoopError:
        return "L"
    except CarrelError:
        return "N"


def _below(visit: FoundFile) -> str:
    return visit.path[len(visit.start) :].lstrip("/")


def _above(visit: FoundFile) -> str:
    path = visit.path.rstrip("/") or visit.path
    if "/" not in path:
        return "."
    return path.rpartition("/")[0]


def _ctime(info: FileInfo) -> str:
    when = info.modified_ns
    return (
        render_timestamp("%a %b %e %H:%M:%S", when)
        + f".{when % SECOND_NS:09d}0"
        + render_timestamp(" %Y", when)
    )


_VALUES: dict[str, Callable[[FoundFile], str]] = {
    "p": lambda visit: visit.path,
    "f": lambda visit: visit.name,
    "h": _above,
    "P": _below,
    "H": lambda visit: visit.start,
    "d": lambda visit: str(visit.depth),
    "s": lambda visit: str(visit.info.host_bytes),
    "k": lambda visit: str(ceil_divide(visit.info.blocks, 2)),
    "b": lambda visit: str(visit.info.blocks),
    "y": lambda visit: _KINDS[visit.info.kind],
    "m": lambda visit: f"{visit.info.mode:o}",
    "M": lambda visit: mode_letters(visit.info),
    "n": lambda visit: str(visit.info.links),
    "i": lambda visit: str(visit.info.inode),
    "u": lambda visit: OWNER,
    "g": lambda visit: OWNER,
    "U": lambda visit: "0",
    "G": lambda visit: "0",
    "t": lambda visit: _ctime(visit.info),
}
