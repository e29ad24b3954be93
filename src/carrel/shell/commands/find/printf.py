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

FormatPart = Callable[[FoundFile], bytes]
_TOKEN = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>[0-9]{0,4})(?:\.(?P<precision>[0-9]{1,4}))?(?:T(?P<time>.)|(?P<letter>.))"
    r"|\\(?P<octal>[0-7]{1,3})|\\(?P<escape>.)|(?P<plain>[^%\\]+)|(?P<last>[%\\])",
    re.DOTALL,
)
_ESCAPES = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\"}
_PART_BYTES = 1024
"""Memory charged for a directive or an escape, with the text after it."""
_KINDS = {FileKind.FILE: "f", FileKind.DIRECTORY: "d", FileKind.LINK: "l", FileKind.OTHER: "U"}
_NUMBERS = "sdmnikbUG"
_SECONDS = {"S", "T", "+", "X", "@"}


def compile_format(ctx: Context, text: str) -> Callable[[FoundFile], Iterator[bytes]]:
    """Compile a format into a function that renders it; unknown directives cause a warning and stay literal.

    Raises:
        ExpressionError: The format ends in the middle of a directive.
    """
    ctx.meter.charge_memory(_PART_BYTES * (text.count("%") + text.count("\\")))
    parts: list[FormatPart] = []
    for match in _TOKEN.finditer(text):
        if match["escape"] == "c":
            break
        parts.append(_compile_part(ctx, match))
    return lambda file: (render_part(file) for render_part in parts)


def _compile_part(ctx: Context, match: re.Match[str]) -> FormatPart:
    if match["plain"] is not None:
        return _constant(encode(match["plain"]))
    if match["octal"] is not None:
        return _constant(bytes([int(match["octal"], 8) & 255]))
    if match["escape"] is not None:
        return _compile_escape(ctx, match["escape"])
    if match["last"] is not None:
        if match["last"] == "%":
            raise ExpressionError("error: % at end of format string")
        return _constant(b"\\")
    return _compile_directive(ctx, match)


def _constant(data: bytes) -> FormatPart:
    return lambda file: data


def _compile_escape(ctx: Context, letter: str) -> FormatPart:
    if letter not in _ESCAPES:
        ctx.write_error_line(f"{ctx.name}: warning: unrecognized escape `\\{letter}'")
        return _constant(encode("\\" + letter))
    return _constant(_ESCAPES[letter])


def _compile_directive(ctx: Context, match: re.Match[str]) -> FormatPart:
    if match["letter"] == "%":
        return _constant(b"%")
    value = _directive_renderer(ctx, match)
    if value is None:
        ctx.write_error_line(f"{ctx.name}: warning: unrecognized format directive `%{match['letter']}'")
        return _constant(encode(match[0]))
    if not match["flags"] and not match["width"] and match["precision"] is None:
        return lambda file: encode(value(file))
    return lambda file: _pad(encode(value(file)), match)


def _pad(data: bytes, match: re.Match[str]) -> bytes:
    if match["precision"] is not None and match["letter"] not in _NUMBERS:
        data = data[: int(match["precision"])]
    width = int(match["width"] or 0)
    if "-" in match["flags"]:
        return data.ljust(width)
    is_number = match["letter"] is not None and match["letter"] in _NUMBERS
    return data.rjust(width, b"0" if "0" in match["flags"] and is_number else b" ")


def _directive_renderer(ctx: Context, match: re.Match[str]) -> Callable[[FoundFile], str] | None:
    if match["time"] is not None:
        template = match["time"]
        return lambda file: _render_time(template, file.info.modified_ns)
    if match["letter"] == "l":
        return lambda file: _link_target(ctx, file)
    if match["letter"] == "Y":
        return lambda file: _target_kind(ctx, file)
    return _RENDERERS.get(match["letter"])


def _render_time(template: str, when_ns: int) -> str:
    fraction = f".{when_ns % SECOND_NS:09d}0"
    if template == "@":
        return f"{when_ns // SECOND_NS}{fraction}"
    if template == "+":
        return render_timestamp("%Y-%m-%d+%H:%M:%S", when_ns) + fraction
    return render_timestamp(f"%{template}", when_ns) + (fraction if template in _SECONDS else "")


def _link_target(ctx: Context, file: FoundFile) -> str:
    if file.info.kind is not FileKind.LINK:
        return ""
    return file.info.target or ctx.stat(file.path, follow=False).target or ""


def _target_kind(ctx: Context, file: FoundFile) -> str:
    if file.info.kind is not FileKind.LINK:
        return _KINDS[file.info.kind]
    try:
        return _KINDS[ctx.stat(file.path).kind]
    except LoopError:
        return "L"
    except CarrelError:
        return "N"


def _relative_path(file: FoundFile) -> str:
    return file.path[len(file.start) :].lstrip("/")


def _parent(file: FoundFile) -> str:
    path = file.path.rstrip("/") or file.path
    if "/" not in path:
        return "."
    return path.rpartition("/")[0]


def _render_ctime(info: FileInfo) -> str:
    when = info.modified_ns
    return (
        render_timestamp("%a %b %e %H:%M:%S", when)
        + f".{when % SECOND_NS:09d}0"
        + render_timestamp(" %Y", when)
    )


_RENDERERS: dict[str, Callable[[FoundFile], str]] = {
    "p": lambda file: file.path,
    "f": lambda file: file.name,
    "h": _parent,
    "P": _relative_path,
    "H": lambda file: file.start,
    "d": lambda file: str(file.depth),
    "s": lambda file: str(file.info.host_bytes),
    "k": lambda file: str(ceil_divide(file.info.blocks, 2)),
    "b": lambda file: str(file.info.blocks),
    "y": lambda file: _KINDS[file.info.kind],
    "m": lambda file: f"{file.info.mode:o}",
    "M": lambda file: mode_letters(file.info),
    "n": lambda file: str(file.info.links),
    "i": lambda file: str(file.info.inode),
    "u": lambda file: OWNER,
    "g": lambda file: OWNER,
    "U": lambda file: "0",
    "G": lambda file: "0",
    "t": lambda file: _render_ctime(file.info),
}
