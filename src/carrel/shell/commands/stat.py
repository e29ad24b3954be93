"""Print the metadata of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.attributes import OWNER, kind_words, mode_letters, raw_mode
from carrel.shell.text.quoting import encode, quote
from carrel.shell.text.timestamps import SECOND_NS, render_full_timestamp
from carrel.values import FileInfo

USAGE = "[OPTION]... FILE..."
NOTES = """
In FORMAT: %n name, %N quoted name with target, %s size, %b blocks, %B block size, %f mode in hex, %F type,
%a %A permissions, %h hard links, %i inode, %u %U %g %G owner and group, %y %Y modification time, %o optimal
I/O size, %% a percent sign. Other times and devices are not known and print as -.
"""
_UNKNOWN = "-"
_BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `stat`."""

    follow: Annotated[bool, Opt("-L", "--dereference", help="follow links")] = False
    form: Annotated[
        str | None, Opt("-c", "--format", metavar="FORMAT", help="print FORMAT and a newline for each file")
    ] = None
    printf: Annotated[
        str | None,
        Opt("--printf", metavar="FORMAT", help="print FORMAT for each file, with escapes like \\n"),
    ] = None
    terse: Annotated[bool, Opt("-t", "--terse", help="print one line for each file")] = False
    system: Annotated[
        bool, Opt("-f", "--file-system", help="not supported: file systems have no status here")
    ] = False


class _NamedFile(NamedTuple):
    """An operand and its metadata."""

    name: str
    info: FileInfo


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, whose metadata is read."""
    return inspects(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the metadata of each operand."""
    if flags.system:
        raise UsageError("the status of file systems is not available; leave out -f", hint=False)
    if not operands:
        raise UsageError("missing operand", status=1)
    form = _TERSE if flags.terse else flags.form
    for operand in operands:
        with ctx.reporting(operand, f"cannot statx {quote(operand)}"):
            file = _NamedFile(operand, ctx.stat(operand, follow=flags.follow))
            if flags.printf is not None:
                ctx.write_each(_render(ctx, flags.printf, file, escapes=True))
            elif form is not None:
                ctx.write_each(_render(ctx, form, file, escapes=False))
                ctx.write(b"\n")
            else:
                ctx.write(encode(_render_default(file)))
    return ctx.status


def _render_default(file: _NamedFile) -> str:
    info = file.info
    arrow = f" -> {info.target}" if info.target is not None else ""
    mode = f"({info.mode:04o}/{mode_letters(info)})"
    owner = f"(    0/{OWNER:>8})"
    return (
        f"  File: {file.name}{arrow}\n"
        f"  Size: {info.host_bytes:<10}\tBlocks: {info.blocks:<10}"
        f" IO Block: {_BLOCK_BYTES:<6} {kind_words(info)}\n"
        f"Device: {_UNKNOWN}\tInode: {info.inode:<11} Links: {info.links}\n"
        f"Access: {mode}  Uid: {owner}   Gid: {owner}\n"
        f"Access: {_UNKNOWN}\n"
        f"Modify: {render_full_timestamp(info.modified_ns)}\n"
        f"Change: {_UNKNOWN}\n"
        f" Birth: {_UNKNOWN}\n"
    )


_TERSE = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o"
_PART = re.compile(
    r"%(?P<flags>[-+ #0']*)(?P<width>[0-9]{0,4})(?P<precision>\.[0-9]{0,4})?(?P<letter>[HL]?[a-zA-Z%])"
    r"|\\(?P<escape>[0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)|(?P<plain>[^%\\]+|.)",
    re.DOTALL,
)
_ESCAPES = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34}
_TEXTS = "nNFAUGCymwxz"


def _render(ctx: Context, form: str, file: _NamedFile, *, escapes: bool) -> Iterator[bytes]:
    for part in _PART.finditer(form):
        if part["letter"] is not None:
            yield _render_directive(part, file)
        elif part["escape"] is not None and escapes:
            yield _unescape(ctx, part["escape"])
        else:
            yield encode(part[0])


def _unescape(ctx: Context, text: str) -> bytes:
    if text[0] in "01234567":
        return bytes([int(text, 8) & 255])
    if len(text) > 1:
        return bytes([int(text[1:], 16)])
    if text not in _ESCAPES:
        ctx.write_error_line(f"{ctx.name}: warning: unrecognized escape '\\{text}'")
        return encode(text)
    return bytes([_ESCAPES[text]])


def _render_directive(part: re.Match[str], file: _NamedFile) -> bytes:
    letter = part["letter"]
    if letter == "%":
        return b"%"
    value = _VALUES.get(letter)
    if value is None:
        return b"?"
    text = value(file)
    if letter == "Y" and part["precision"] is not None:
        digits = int(part["precision"][1:] or 9)
        text += "." + f"{file.info.modified_ns % SECOND_NS:09d}".ljust(digits, "0")[:digits]
    return _pad(encode(text), part)


def _pad(data: bytes, part: re.Match[str]) -> bytes:
    flags, letter = part["flags"], part["letter"]
    if letter in _TEXTS and part["precision"] is not None:
        data = data[: int(part["precision"][1:] or 0)]
    if "#" in flags and letter in "af":
        data = (b"0" if letter == "a" else b"0x") + data
    if "+" in flags and letter in "sbBhiugoY":
        data = b"+" + data
    width = int(part["width"] or 0)
    if "-" in flags:
        return data.ljust(width)
    return data.rjust(width, b"0" if "0" in flags and letter not in _TEXTS else b" ")


def _quoted_name(file: _NamedFile) -> str:
    arrow = f" -> {quote(file.info.target)}" if file.info.target is not None else ""
    return quote(file.name) + arrow


_VALUES: dict[str, Callable[[_NamedFile], str]] = {
    "n": lambda file: file.name,
    "N": _quoted_name,
    "s": lambda file: str(file.info.host_bytes),
    "b": lambda file: str(file.info.blocks),
    "B": lambda file: "512",
    "f": lambda file: f"{raw_mode(file.info):x}",
    "F": lambda file: kind_words(file.info),
    "a": lambda file: f"{file.info.mode:o}",
    "A": lambda file: mode_letters(file.info),
    "h": lambda file: str(file.info.links),
    "i": lambda file: str(file.info.inode),
    "u": lambda file: "0",
    "U": lambda file: OWNER,
    "g": lambda file: "0",
    "G": lambda file: OWNER,
    "o": lambda file: str(_BLOCK_BYTES),
    "y": lambda file: render_full_timestamp(file.info.modified_ns),
    "Y": lambda file: str(file.info.modified_ns // SECOND_NS),
    **{letter: lambda file: _UNKNOWN for letter in ("x", "X", "z", "Z", "w", "W", "d", "D", "m", "t", "T",
       "Hd", "Ld", "Hr", "Lr", "r", "R")},
}  # fmt: skip
