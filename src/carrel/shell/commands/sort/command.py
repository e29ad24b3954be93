"""Sort lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from heapq import merge
from itertools import chain, groupby
from typing import Annotated, Any, AnyStr

from carrel.errors import CarrelError, ClosedError, IsDirectoryError, SessionMissingError
from carrel.shell.budget import RECORD_BYTES
from carrel.shell.command.access import PathAccess, reads, writes
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt, UsageError, one_of
from carrel.shell.commands.sort.keys import KeyDefinition, KeyPosition, key_reader, parse_key_definition
from carrel.shell.commands.sort.order import (
    LineOrder,
    SortKey,
    compose_readers,
    require_compatible,
    value_reader,
)
from carrel.shell.runtime.redirect import ReplacedFile
from carrel.shell.streams import OutputStream
from carrel.shell.text.quoting import decode, encode, quote, quote_argument, quote_if_needed
from carrel.shell.text.records import join_lines, line_batches

USAGE = "[OPTION]... [FILE]..."
NOTES = """\
KEYDEF is F[.C][OPTS][,F[.C][OPTS]]: the key begins at field F, character C, and ends with the second
position or the line. OPTS are letters of bdfghiMnrV, in place of the options of the command. Bytes are
compared by their values."""
_KEY_BYTES = 256
"""Memory that the key of a line takes besides its bytes."""
_SORTS = {
    "general-numeric": "g", "human-numeric": "h", "month": "M", "numeric": "n", "version": "V",
}  # fmt: skip
_CHECKS = {"quiet": "C", "silent": "C", "diagnose-first": "c"}


def _check_word(word: str) -> object:
    return one_of("--check", _CHECKS)(word) if word else "c"


def _separator(text: str) -> bytes:
    if not text:
        raise UsageError("empty tab", hint=False)
    data = b"\0" if text == "\\0" else encode(text)
    if len(data) > 1:
        raise UsageError(f"multi-character tab {quote_argument(text)}", hint=False)
    return data


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `sort`."""

    letters: Annotated[
        tuple[str, ...],
        Opt("-b", "--ignore-leading-blanks", const="b", help="leave out blanks at the beginning"),
        Opt("-d", "--dictionary-order", const="d", help="compare only blanks, letters and digits"),
        Opt("-f", "--ignore-case", const="f", help="take lower case for upper case"),
        Opt("-g", "--general-numeric-sort", const="g", help="compare floating point numbers"),
        Opt("-h", "--human-numeric-sort", const="h", help="compare sizes such as 2K and 1G"),
        Opt("-i", "--ignore-nonprinting", const="i", help="compare only characters that can be printed"),
        Opt("-M", "--month-sort", const="M", help="compare names of months"),
        Opt("-n", "--numeric-sort", const="n", help="compare numbers"),
        Opt("-r", "--reverse", const="r", help="the largest first"),
        Opt("-V", "--version-sort", const="V", help="compare version numbers in the text"),
        Opt(
            "--sort",
            metavar="WORD",
            parse=one_of("--sort", _SORTS),
            help="general-numeric, human-numeric, month, ...",
        ),
    ] = ()
    parts: Annotated[
        tuple[KeyDefinition, ...],
        Opt(
            "-k",
            "--key",
            metavar="KEYDEF",
            parse=parse_key_definition,
            help="sort by a key; may be given again",
        ),
    ] = ()
    separators: Annotated[
        tuple[bytes, ...],
        Opt("-t", "--field-separator", metavar="SEP", parse=_separator, help="fields end with SEP"),
    ] = ()
    check: Annotated[
        tuple[str, ...],
        Opt("-c", const="c", help="tell only whether the lines are in order"),
        Opt("-C", const="C", help="the same, without a word"),
        Opt("--check", metavar="[WORD]", parse=_check_word, help="the same, as WORD says"),
    ] = ()
    merge: Annotated[bool, Opt("-m", "--merge", help="merge files that are in order")] = False
    output: Annotated[str | None, Opt("-o", "--output", metavar="FILE", help="write to FILE")] = None
    stable: Annotated[bool, Opt("-s", "--stable", help="leave lines with equal keys as they are")] = False
    unique: Annotated[bool, Opt("-u", "--unique", help="print only the first of equal lines")] = False
    zero: Annotated[bool, Opt("-z", "--zero-terminated", help="lines end with NUL, not newline")] = False
    ignored: Annotated[
        str,
        Opt("-S", "--buffer-size", metavar="SIZE", help="ignored"),
        Opt("-T", "--temporary-directory", metavar="DIR", help="ignored"),
        Opt("--parallel", metavar="N", help="ignored"),
    ] = ""


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """It reads the files, and writes to the one named by `-o`."""
    return chain(reads(files), writes([flags.output] if flags.output is not None else []))


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the lines of all files in order."""
    order = _order(flags, ctx.meter.check)
    try:
        if flags.check:
            return _check(ctx, flags, order, files)
        return _print(ctx, flags, _pieces(ctx, flags, order, files or (STDIN,)))
    except _Failure as failure:
        return failure.tell(ctx)


class _Failure(Exception):  # it is a line to be printed
    """What keeps all from being sorted."""

    def __init__(self, problem: str, operand: str, error: CarrelError) -> None:
        super().__init__(problem)
        self._problem = problem
        self._operand = operand
        self._error = error

    def tell(self, ctx: Context) -> int:
        if isinstance(self._error, ClosedError | SessionMissingError):
            raise self._error
        ctx.report(self._error, f"{self._problem}: {quote_if_needed(self._operand)}", status=2)
        return ctx.status


def _order(flags: Flags, check: Callable[[], None]) -> LineOrder:
    letters = "".join(flags.letters)
    if len(set(flags.separators)) > 1:
        raise UsageError("incompatible tabs", hint=False)
    parts = list(flags.parts)
    if not parts and letters.strip("r"):
        parts = [KeyDefinition(KeyPosition(1))]
    parts = [part.with_letters(letters) for part in parts]
    for part in parts:
        require_compatible(part.letters)
    separator = flags.separators[0] if flags.separators else None
    keys = tuple(_key(part, separator, check) for part in parts)
    needs_last = not keys or not (flags.stable or flags.unique)
    return LineOrder(keys, SortKey(None, "r" in letters) if needs_last else None, _weight(parts))


def _weight(parts: Sequence[KeyDefinition]) -> int:
    """How much lines and their keys take: of a version every character is ranked."""
    return max((20 if "V" in part.letters else 3 for part in parts), default=1)


def _key(part: KeyDefinition, separator: bytes | None, check: Callable[[], None]) -> SortKey:
    read = compose_readers(key_reader(part, separator, check), value_reader(part.letters))
    return SortKey(read, "r" in part.letters)


def _lines(ctx: Context, flags: Flags, file: str) -> Iterator[list[bytes]]:
    """The lines of one file, in batches."""
    with _reading(flags, file):
        yield from line_batches(ctx.chunks(file), b"\0" if flags.zero else b"\n", ctx.meter)


def _texts(ctx: Context, flags: Flags, file: str) -> Iterator[list[str]]:
    """The lines of one file as text whose characters stand for its bytes."""
    with _reading(flags, file):
        chunks = (chunk.decode("latin-1") for chunk in ctx.chunks(file))
        yield from line_batches(chunks, "\0" if flags.zero else "\n", ctx.meter)


@contextmanager
def _reading(flags: Flags, file: str) -> Iterator[None]:
    try:
        yield
    except IsDirectoryError as error:
        raise _Failure("read failed", file, error) from None
    except CarrelError as error:
        raise _Failure("open failed" if flags.check else "cannot read", file, error) from None


def _pieces(ctx: Context, flags: Flags, order: LineOrder, files: Sequence[str]) -> Iterator[bytes]:
    """All lines in order, joined to pieces that can be written."""
    if order.keys or flags.merge:
        return join_lines(_ordered(ctx, flags, order, files), b"\0" if flags.zero else b"\n")
    # Python sorts text faster than bytes, and in the same order if each character is a byte.
    texts = _held(ctx, (_texts(ctx, flags, file) for file in files), order.weight)
    texts.sort(reverse=order.last_resort is not None and order.last_resort.reverse)
    lines = (text for text, _ in groupby(texts)) if flags.unique else iter(texts)
    return (piece.encode("latin-1") for piece in join_lines(lines, "\0" if flags.zero else "\n"))


def _ordered(ctx: Context, flags: Flags, order: LineOrder, files: Sequence[str]) -> Iterator[bytes]:
    lines: Iterator[bytes]
    if flags.merge:
        streams = [chain.from_iterable(_lines(ctx, flags, file)) for file in files]
        lines = merge(*streams, key=partial(order.rank, check=ctx.meter.check))
    else:
        held = _held(ctx, (_lines(ctx, flags, file) for file in files), order.weight)
        order.sort(held, ctx.meter.check)
        lines = iter(held)
    if not flags.unique:
        return lines
    same = partial(order.rank, check=ctx.meter.check) if order.keys else None
    return (next(equal) for _, equal in groupby(lines, same))


def _held(ctx: Context, files: Iterable[Iterable[list[AnyStr]]], weight: int) -> list[AnyStr]:
    """All lines of all files, in memory, where each byte counts as *weight*."""
    held: list[AnyStr] = []
    for batch in chain.from_iterable(files):
        per_line = RECORD_BYTES + (_KEY_BYTES if weight > 1 else 0)
        ctx.meter.charge_memory(sum(map(len, batch)) * weight + per_line * len(batch))
        held += batch
    return held


def _print(ctx: Context, flags: Flags, pieces: Iterator[bytes]) -> int:
    if flags.output is None:
        ctx.write_each(pieces)
        return ctx.status
    try:
        sink = ReplacedFile(ctx.workspace, ctx.path(flags.output), ctx.meter)
        output = OutputStream(sink, ctx.meter)
        for piece in pieces:
            output.write(piece)
        output.flush()
        sink.close()
    except CarrelError as error:
        raise _Failure("open failed", flags.output, error) from None
    return ctx.status


def _check(ctx: Context, flags: Flags, order: LineOrder, files: Sequence[str]) -> int:
    """Say which line is the first that is not in order."""
    if len(set(flags.check)) > 1:
        raise UsageError("options '-cC' are incompatible", hint=False)
    if len(files) > 1:
        raise UsageError(f"extra operand {quote(files[1])} not allowed with -{flags.check[0]}", hint=False)
    file = files[0] if files else STDIN
    previous: tuple[Any, ...] | None = None  # as `LineOrder.rank` says
    for number, line in enumerate(chain.from_iterable(_lines(ctx, flags, file)), 1):
        rank = order.rank(line, ctx.meter.check)
        if previous is not None and (rank < previous or (flags.unique and rank == previous)):
            if flags.check[0] == "c":
                ctx.write_error_line(
                    f"{ctx.name}: {quote_if_needed(file)}:{number}: disorder: {decode(line)}"
                )
            return 1
        previous = rank
    return 0
