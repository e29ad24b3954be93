"""Translate, squeeze or delete characters."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from carrel.shell.budget import RECORD_BYTES, ChargeMemory, charge_nothing
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import decode, encode, quote, quote_argument

CLASSES: dict[str, bytes] = {
    "alnum": (string.digits + string.ascii_uppercase + string.ascii_lowercase).encode(),
    "alpha": (string.ascii_uppercase + string.ascii_lowercase).encode(),
    "blank": b"\t ",
    "cntrl": bytes([*range(32), 127]),
    "digit": string.digits.encode(),
    "graph": bytes(range(33, 127)),
    "lower": string.ascii_lowercase.encode(),
    "print": bytes(range(32, 127)),
    "punct": bytes(sorted(string.punctuation.encode())),
    "space": b"\t\n\v\f\r ",
    "upper": string.ascii_uppercase.encode(),
    "xdigit": b"0123456789ABCDEFabcdef",
}
CASES = ("upper", "lower")
_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_OCTAL = re.compile(rb"[0-7]{1,3}")
_MAX_REPEATS = 2**20
"""Larger repeat counts in `[c*n]` are reduced to this."""


@dataclass(slots=True)
class CharacterSet:
    """The characters that one string stands for."""

    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    """Number of characters, without those of `fills`."""
    classes: list[tuple[int, str]] = field(default_factory=list)
    """Names of classes, each with the number of characters before it."""
    has_equivalence: bool = False
    fills: list[tuple[int, bytes]] = field(default_factory=list)
    """Characters of `[c*]`, repeated as needed, each with the number of parts before it."""
    charge_memory: ChargeMemory = charge_nothing

    def add(self, part: bytes, times: int = 1) -> None:
        """Append *part*, repeated *times*; charged twice, because the parts are joined later."""
        size = len(part) * times
        self.charge_memory(2 * size + RECORD_BYTES)
        self.parts.append(part * times)
        self.size += size

    @property
    def ends_with_class(self) -> bool:
        """Whether the last element is a class."""
        if not self.classes:
            return False
        begin, name = self.classes[-1]
        return begin + len(CLASSES[name]) == self.size

    def characters(self, size: int = 0) -> bytes:
        """Return all characters in order; `[c*]` fills them up to *size*."""
        if not self.fills:
            return b"".join(self.parts)
        at, character = self.fills[0]
        fill = character * max(0, size - self.size)
        return b"".join([*self.parts[:at], fill, *self.parts[at:]])


def set_error(problem: str) -> UsageError:
    """Return the error for a string that is not valid."""
    return UsageError(problem, status=1, hint=False)


def parse_set(
    text: bytes, warn: Callable[[str], None], charge_memory: ChargeMemory = charge_nothing
) -> CharacterSet:
    """Parse one string; *charge_memory* charges for its characters.

    Raises:
        UsageError: The string is not valid.
    """
    return _SetParser(*_unescape(text, warn), CharacterSet(charge_memory=charge_memory)).parse()


def _unescape(text: bytes, warn: Callable[[str], None]) -> tuple[bytes, list[bool]]:
    """Return the characters with escapes resolved, and whether each was escaped."""
    found = bytearray()
    escaped: list[bool] = []
    at = 0
    while at < len(text):
        if text[at] != 0x5C:
            found.append(text[at])
            escaped.append(False)
            at += 1
            continue
        value, at = _parse_escape(text, at + 1, warn)
        found.append(value)
        escaped.append(True)
    return bytes(found), escaped


def _parse_escape(text: bytes, at: int, warn: Callable[[str], None]) -> tuple[int, int]:
    if at == len(text):
        warn("warning: an unescaped backslash at end of string is not portable")
        return 0x5C, at
    octal = _OCTAL.match(text, at)
    if octal is None:
        return _ESCAPES.get(chr(text[at]), text[at]), at + 1
    digits = octal[0].decode()
    if int(digits, 8) < 256:
        return int(digits, 8), octal.end()
    warn(
        f"warning: the ambiguous octal escape \\{digits} is being\n"
        f"\tinterpreted as the 2-byte sequence \\0{digits[:2]}, {digits[2]}"
    )
    return int(digits[:2], 8), octal.end() - 1


class _SetParser:
    def __init__(self, text: bytes, escaped: list[bool], empty: CharacterSet) -> None:
        self._text = text
        self._escaped = escaped
        self._set = empty
        # A closing bracket that was not found is not searched for again; this keeps the time linear.
        self._missing: set[str] = set()

    def parse(self) -> CharacterSet:
        at = 0
        while at + 2 < len(self._text):
            at = self._parse_bracket(at) or self._parse_range(at)
        self._set.add(self._text[at:])
        return self._set

    def _is(self, at: int, character: str) -> bool:
        return at < len(self._text) and self._text[at] == ord(character) and not self._escaped[at]

    def _parse_range(self, at: int) -> int:
        """Parse a range or a single character, and return the next position."""
        first, last = self._text[at], self._text[at + 2]
        if not self._is(at + 1, "-"):
            self._set.add(bytes([first]))
            return at + 1
        if last < first:
            name = decode(_printable(first) + b"-" + _printable(last))
            raise set_error(f"range-endpoints of {quote(name)} are in reverse collating sequence order")
        self._set.add(bytes(range(first, last + 1)))
        return at + 3

    def _parse_bracket(self, at: int) -> int:
        """Parse a construct in brackets, and return the next position; 0 if there is none."""
        if not self._is(at, "["):
            return 0
        for kind, add in ((":", self._add_class), ("=", self._add_equivalence)):
            if self._is(at + 1, kind):
                close = self._find_close(at + 2, kind)
                if close >= 0 and add(at, self._text[at + 2 : close]):
                    return close + 2
        return self._parse_repeat(at)

    def _find_close(self, at: int, kind: str) -> int:
        """Return the position of the closing `kind]`, or -1."""
        if kind in self._missing:
            return -1
        for close in range(at, len(self._text)):
            if self._is(close + len(kind), "]") and (not kind or self._is(close, kind)):
                return close
        self._missing.add(kind)
        return -1

    def _add_class(self, at: int, name: bytes) -> bool:
        if not name:
            raise set_error("missing character class name '[::]'")
        characters = CLASSES.get(decode(name))
        if characters is None:
            if self._star_follows(at + 2):
                return False
            raise set_error(f"invalid character class {quote_argument(decode(name))}")
        self._set.classes.append((self._set.size, decode(name)))
        self._set.add(characters)
        return True

    def _add_equivalence(self, at: int, character: bytes) -> bool:
        if not character:
            raise set_error("missing equivalence class character '[==]'")
        if len(character) > 1:
            if self._star_follows(at + 2):
                return False
            raise set_error(f"{decode(character)}: equivalence class operand must be a single character")
        self._set.has_equivalence = True
        self._set.add(character)
        return True

    def _star_follows(self, at: int) -> bool:
        if not self._is(at, "*"):
            return False
        at += 1
        while at < len(self._text) and 48 <= self._text[at] < 58 and not self._escaped[at]:
            at += 1
        return self._is(at, "]")

    def _parse_repeat(self, at: int) -> int:
        if not self._is(at + 2, "*"):
            return 0
        close = self._find_close(at + 3, "")
        if close < 0:
            return 0
        digits = decode(self._text[at + 3 : close])
        base = 8 if digits.startswith("0") else 10
        allowed = "01234567" if base == 8 else "0123456789"
        if digits.strip(allowed):
            raise set_error(f"invalid repeat count {quote_argument(digits)} in [c*n] construct")
        self._add_repeat(bytes([self._text[at + 1]]), int(digits[:20] or "0", base))
        return close + 1

    def _add_repeat(self, character: bytes, count: int) -> None:
        if count == 0:
            self._set.fills.append((len(self._set.parts), character))
        self._set.add(character, min(count, _MAX_REPEATS))


def _printable(byte: int) -> bytes:
    return bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte


USAGE = "[OPTION]... STRING1 [STRING2]"
OPTIONS_FIRST = True
NOTES = """\
Characters are bytes. A string may contain ranges like a-z, classes like [:alpha:], [:digit:] and [:space:],
[=c=], in STRING2 [c*] and [c*n], and the escapes \\\\ \\a \\b \\f \\n \\r \\t \\v \\NNN."""
_ALL = bytes(range(256))


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `tr`."""

    complement: Annotated[
        bool, Opt("-c", "-C", "--complement", help="use the characters that are not in STRING1")
    ] = False
    delete: Annotated[bool, Opt("-d", "--delete", help="delete the characters in STRING1")] = False
    squeeze: Annotated[
        bool, Opt("-s", "--squeeze-repeats", help="squeeze repeats of the characters in the last string")
    ] = False
    truncate: Annotated[
        bool, Opt("-t", "--truncate-set1", help="truncate STRING1 to the length of STRING2")
    ] = False


def run(ctx: Context, flags: Flags, strings: Sequence[str]) -> int:
    """Copy standard input to standard output, with characters translated, squeezed or deleted."""
    _require_operand_count(flags, strings)
    warn = partial(_warn, ctx)
    sets = [parse_set(encode(each), warn, ctx.meter.charge_memory) for each in strings]
    translate = _translator(flags, sets)
    for chunk in ctx.chunks(STDIN):
        ctx.write(translate(chunk))
    return ctx.status


def _warn(ctx: Context, text: str) -> None:
    ctx.write_error_line(f"{ctx.name}: {text}")


def _require_operand_count(flags: Flags, strings: Sequence[str]) -> None:
    minimum = 1 + (flags.delete == flags.squeeze)
    maximum = 1 + (flags.delete <= flags.squeeze)
    if not strings:
        raise UsageError("missing operand", status=1)
    if len(strings) < minimum:
        when = "both deleting and squeezing repeats" if flags.squeeze else "translating"
        raise UsageError(
            f"missing operand after {quote_argument(strings[-1])}\nTwo strings must be given when {when}.",
            status=1,
        )
    if len(strings) > maximum:
        reason = "\nOnly one string may be given when deleting without squeezing repeats."
        extra = f"extra operand {quote_argument(strings[maximum])}"
        raise UsageError(extra + (reason if len(strings) == 2 else ""), status=1)


def _translator(flags: Flags, sets: Sequence[CharacterSet]) -> Callable[[bytes], bytes]:
    first = sets[0]
    second = sets[1] if len(sets) > 1 else None
    if first.fills:
        raise set_error("the [c*] repeat construct may not appear in string1")
    if second is not None and len(second.fills) > 1:
        raise set_error("only one [c*] repeat construct may appear in string2")
    source = first.characters()
    if flags.complement:
        source = _ALL.translate(None, source)
    if second is not None and not flags.delete:
        return _set_translator(flags, first, second, source)
    if second is not None and second.fills:
        raise set_error("the [c*] construct may appear in string2 only when translating")
    if not flags.delete:
        return _Squeeze(source)
    if second is None:
        return lambda chunk: chunk.translate(None, source)
    return _Squeeze(second.characters(), deleted=source)


def _set_translator(
    flags: Flags, first: CharacterSet, second: CharacterSet, source: bytes
) -> Callable[[bytes], bytes]:
    _require_translatable(first, second, complement=flags.complement)
    target = second.characters(len(source))
    if len(target) < len(source) and not flags.truncate:
        if not target:
            raise set_error("when not truncating set1, string2 must be non-empty")
        if second.ends_with_class:
            raise set_error(
                "when translating with string1 longer than string2,\n"
                "the latter string must not end with a character class"
            )
        target += target[-1:] * (len(source) - len(target))
    if flags.complement and first.classes and not (len(target) == len(source) and len(set(target)) == 1):
        raise set_error(
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
        raise set_error("[=c=] expressions may not appear in string2 when translating")
    if any(name not in CASES for _, name in second.classes):
        raise set_error(
            "when translating, the only character classes that may appear in\nstring2 are 'upper' and 'lower'"
        )
    aligned = {at for at, name in first.classes if name in CASES}
    # Classes of STRING2 after the end of STRING1 need no counterpart.
    if not complement and any(at <= first.size and at not in aligned for at, _ in second.classes):
        raise set_error("misaligned [:upper:] and/or [:lower:] construct")


class _Squeeze:
    """Squeezes repeated characters, also across chunks."""

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
