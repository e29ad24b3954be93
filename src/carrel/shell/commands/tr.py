"""Replace, squeeze or delete characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from carrel.shell.character_set import CASES, CharacterSet, parse_set, wrong
from carrel.shell.context import STDIN, Context
from carrel.shell.flags import Opt, UsageError
from carrel.shell.quoting import cited, encode

USAGE = "[OPTION]... STRING1 [STRING2]"
OPTIONS_FIRST = True
NOTES = """\
Characters are bytes. A string may hold a-z, [:alpha:], [:digit:], [:space:] and the like, [=c=], in
STRING2 [c*] and [c*n], and the escapes \\\\ \\a \\b \\f \\n \\r \\t \\v \\NNN."""
_ALL = bytes(range(256))


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `tr`."""

    complement: Annotated[
        bool, Opt("-c", "-C", "--complement", help="use what is not in STRING1, in the order of bytes")
    ] = False
    delete: Annotated[bool, Opt("-d", "--delete", help="delete what is in STRING1")] = False
    squeeze: Annotated[
        bool, Opt("-s", "--squeeze-repeats", help="print one of several equal characters of the last string")
    ] = False
    truncate: Annotated[bool, Opt("-t", "--truncate-set1", help="cut STRING1 to the length of STRING2")] = (
        False
    )


def run(ctx: Context, flags: Flags, strings: Sequence[str]) -> int:
    """Copy standard input to standard output, with the characters changed."""
    _require_count(flags, strings)
    warn = partial(_warn, ctx)
    sets = [parse_set(encode(each), warn, ctx.meter.hold) for each in strings]
    change = _change(flags, sets)
    for chunk in ctx.chunks(STDIN):
        ctx.out(change(chunk))
    return ctx.status


def _warn(ctx: Context, text: str) -> None:
    ctx.warn(f"{ctx.name}: {text}")


def _require_count(flags: Flags, strings: Sequence[str]) -> None:
    least = 1 + (flags.delete == flags.squeeze)
    most = 1 + (flags.delete <= flags.squeeze)
    if not strings:
        raise UsageError("missing operand", status=1)
    if len(strings) < least:
        when = "both deleting and squeezing repeats" if flags.squeeze else "translating"
        raise UsageError(
            f"missing operand after {cited(strings[-1])}\nTwo strings must be given when {when}.", status=1
        )
    if len(strings) > most:
        why = "\nOnly one string may be given when deleting without squeezing repeats."
        extra = f"extra operand {cited(strings[most])}"
        raise UsageError(extra + (why if len(strings) == 2 else ""), status=1)


def _change(flags: Flags, sets: Sequence[CharacterSet]) -> Callable[[bytes], bytes]:
    first = sets[0]
    second = sets[1] if len(sets) > 1 else None
    if first.fills:
        raise wrong("the [c*] repeat construct may not appear in string1")
    if second is not None and len(second.fills) > 1:
        raise wrong("only one [c*] repeat construct may appear in string2")
    source = first.characters()
    if flags.complement:
        source = _ALL.translate(None, source)
    if second is not None and not flags.delete:
        return _translation(flags, first, second, source)
    if second is not None and second.fills:
        raise wrong("the [c*] construct may appear in string2 only when translating")
    if not flags.delete:
        return _Squeeze(source)
    if second is None:
        return lambda chunk: chunk.translate(None, source)
    return _Squeeze(second.characters(), deleted=source)


def _translation(
    flags: Flags, first: CharacterSet, second: CharacterSet, source: bytes
) -> Callable[[bytes], bytes]:
    _require_translatable(first, second, complement=flags.complement)
    target = second.characters(len(source))
    if len(target) < len(source) and not flags.truncate:
        if not target:
            raise wrong("when not truncating set1, string2 must be non-empty")
        if second.ends_with_class:
            raise wrong(
                "when translating with string1 longer than string2,\n"
                "the latter string must not end with a character class"
            )
        target += target[-1:] * (len(source) - len(target))
    if flags.complement and first.classes and not (len(target) == len(source) and len(set(target)) == 1):
        raise wrong(
            "when translating with complemented character classes,\n"
            "string2 must map all characters in the domain to one"
        )
    table = bytearray(_ALL)
    for old, new in zip(source, target, strict=False):
        table[old] = new
    if flags.squeeze:
        return _Squeeze(target, table=bytes(table))
    return lambda chunk: chunk.translate(table)


def _require_translatable(first: CharacterSet, second: CharacterSet, *, complement: bool) -> None:
    if second.has_equivalence:
        raise wrong("[=c=] expressions may not appear in string2 when translating")
    if any(name not in CASES for _, name in second.classes):
        raise wrong(
            "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'"
        )
    aligned = {at for at, name in first.classes if name in CASES}
    # What has no counterpart at all is not looked at.
    if not complement and any(at <= first.size and at not in aligned for at, _ in second.classes):
        raise wrong("misaligned [:upper:] and/or [:lower:] construct")


class _Squeeze:
    """Makes one of several equal characters, also across pieces."""

    def __init__(self, squeezed: bytes, *, table: bytes | None = None, deleted: bytes = b"") -> None:
        self._table = table
        self._deleted = deleted
        self._squeezed = frozenset(squeezed)
        members = b"".join(b"\\x%02x" % byte for byte in sorted(self._squeezed))
        self._runs = re.compile(rb"([" + members + rb"])\1+") if members else None
        self._last = b""

    def __call__(self, chunk: bytes) -> bytes:
        chunk = chunk.translate(self._table, self._deleted)
        if self._runs is None:
            return chunk
        if self._last:
            chunk = chunk.lstrip(self._last)
        if chunk:
            self._last = chunk[-1:] if chunk[-1] in self._squeezed else b""
        return self._runs.sub(rb"\1", chunk)
