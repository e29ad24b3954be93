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
from carrel.shell.runtime.redirect import replacing
from carrel.shell.text.quoting import decode, encode, quote, quote_argument, quote_if_needed
from carrel.shell.text.records import join_lines, line_batches

USAGE = "[OPTION]... [FILE]..."
NOTES = """\
KEYDEF is F[.C][OPTS][,F[.C][OPTS]]: the key begins at field F, character C, and ends at the second position
or the end of the line. OPTS are letters of bdfghiMnrV, which override the options of the command. Bytes are
compared by their values."""
_KEY_BYTES = 256
"""Memory charged for the key of a line besides its bytes."""
_SORTS = {
    "general-numeric": "g", "human-numeric": "h", "month": "M", "numeric": "n", "version": "V",
}  # fmt: skip
_CHECKS = {"quiet": "C", "silent": "C", "diagnose-first": "c"}


def _parse_check(word: str) -> object:
    return one_of("--check", _CHECKS)(word) if word else "c"


def _parse_separator(text: str) -> bytes:
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
        Opt("-b", "--ignore-leading-blanks", const="b", help="ignore leading blanks"),
        Opt("-d", "--dictionary-order", const="d", help="compare only blanks, letters and digits"),
        Opt("-f", "--ignore-case", const="f", help="ignore case"),
        Opt("-g", "--general-numeric-sort", const="g", help="compare floating point numbers"),
        Opt("-h", "--human-numeric-sort", const="h", help="compare sizes such as 2K and 1G"),
        Opt("-i", "--ignore-nonprinting", const="i", help="compare only printable characters"),
        Opt("-M", "--month-sort", const="M", help="compare month names"),
        Opt("-n", "--numeric-sort", const="n", help="compare numbers"),
        Opt("-r", "--reverse", const="r", help="reverse the order"),
        Opt("-V", "--version-sort", const="V", help="compare text with version numbers"),
        Opt(
            "--sort",
            metavar="WORD",
            parse=one_of("--sort", _SORTS),
            help="general-numeric, human-numeric, month, ...",
        ),
    ] = ()
    definitions: Annotated[
        tuple[KeyDefinition, ...],
        Opt(
            "-k",
            "--key",
            metavar="KEYDEF",
            parse=parse_key_definition,
            help="sort by a key; may be repeated",
        ),
    ] = ()
    separators: Annotated[
        tuple[bytes, ...],
        Opt("-t", "--field-separator", metavar="SEP", parse=_parse_separator, help="separate fields by SEP"),
    ] = ()
    check: Annotated[
        tuple[str, ...],
        Opt("-c", const="c", help="only check whether the lines are sorted"),
        Opt("-C", const="C", help="the same as -c, without a message"),
        Opt("--check", metavar="[WORD]", parse=_parse_check, help="the same as -c, or with WORD quiet as -C"),
    ] = ()
    merge: Annotated[bool, Opt("-m", "--merge", help="merge sorted files")] = False
    output: Annotated[str | None, Opt("-o", "--output", metavar="FILE", help="write to FILE")] = None
    stable: Annotated[bool, Opt("-s", "--stable", help="keep the order of lines with equal keys")] = False
    unique: Annotated[bool, Opt("-u", "--unique", help="print only the first of equal lines")] = False
    zero: Annotated[bool, Opt("-z", "--zero-terminated", help="lines end with NUL, not newline")] = False
    ignored: Annotated[
        str,
        Opt("-S", "--buffer-size", metavar="SIZE", help="ignored"),
        Opt("-T", "--temporary-directory", metavar="DIR", help="ignored"),
        Opt("--parallel", metavar="N", help="ignored"),
    ] = ""


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files as read, and that of `-o` as written."""
    return chain(reads(files), writes([flags.output] if flags.output is not None else []))


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the lines of all files in order."""
    order = _line_order(flags, ctx.meter.check)
    try:
        if flags.check:
            return _check_order(ctx, flags, order, files)
        return _print(ctx, flags, _sorted_chunks(ctx, flags, order, files or (STDIN,)))
    except _Failure as failure:
        return failure.report(ctx)


class _Failure(Exception):  # caught in `run`
    """An input or output error, which ends the command."""

    def __init__(self, problem: str, operand: str, error: CarrelError) -> None:
        super().__init__(problem)
        self._problem = problem
        self._operand = operand
        self._error = error

    def report(self, ctx: Context) -> int:
        if isinstance(self._error, ClosedError | SessionMissingError):
            raise self._error
        ctx.report(self._error, f"{self._problem}: {quote_if_needed(self._operand)}", status=2)
        return ctx.status


def _line_order(flags: Flags, check: Callable[[], None]) -> LineOrder:
    letters = "".join(flags.letters)
    if len(set(flags.separators)) > 1:
        raise UsageError("incompatible tabs", hint=False)
    definitions = list(flags.definitions)
    if not definitions and letters.strip("r"):
        definitions = [KeyDefinition(KeyPosition(1))]
    definitions = [definition.with_letters(letters) for definition in definitions]
    for definition in definitions:
        require_compatible(definition.letters)
    separator = flags.separators[0] if flags.separators else None
    keys = tuple(_sort_key(definition, separator, check) for definition in definitions)
    needs_last_resort = not keys or not (flags.stable or flags.unique)
    return LineOrder(
        keys, SortKey(None, "r" in letters) if needs_last_resort else None, _memory_weight(definitions)
    )


def _memory_weight(definitions: Sequence[KeyDefinition]) -> int:
    """Return the memory factor of lines with their keys; version keys rank every character."""
    return max((20 if "V" in definition.letters else 3 for definition in definitions), default=1)


def _sort_key(definition: KeyDefinition, separator: bytes | None, check: Callable[[], None]) -> SortKey:
    read = compose_readers(key_reader(definition, separator, check), value_reader(definition.letters))
    return SortKey(read, "r" in definition.letters)


def _lines(ctx: Context, flags: Flags, file: str) -> Iterator[list[bytes]]:
    """Yield the lines of one file in batches."""
    with _translate_errors(flags, file):
        yield from line_batches(ctx.chunks(file), b"\0" if flags.zero else b"\n", ctx.meter)


def _text_lines(ctx: Context, flags: Flags, file: str) -> Iterator[list[str]]:
    """Yield the lines of one file in batches, decoded as Latin-1."""
    with _translate_errors(flags, file):
        chunks = (chunk.decode("latin-1") for chunk in ctx.chunks(file))
        yield from line_batches(chunks, "\0" if flags.zero else "\n", ctx.meter)


@contextmanager
def _translate_errors(flags: Flags, file: str) -> Iterator[None]:
    try:
        yield
    except IsDirectoryError as error:
        raise _Failure("read failed", file, error) from None
    except CarrelError as error:
        raise _Failure("open failed" if flags.check else "cannot read", file, error) from None


def _sorted_chunks(ctx: Context, flags: Flags, order: LineOrder, files: Sequence[str]) -> Iterator[bytes]:
    """Yield all lines in order, joined into chunks for writing."""
    if order.keys or flags.merge:
        return join_lines(_sorted_lines(ctx, flags, order, files), b"\0" if flags.zero else b"\n")
    # Python sorts str faster than bytes, and in Latin-1 in the same order.
    texts = _collect(ctx, (_text_lines(ctx, flags, file) for file in files), order.weight)
    texts.sort(reverse=order.last_resort is not None and order.last_resort.reverse)
    lines = (text for text, _ in groupby(texts)) if flags.unique else iter(texts)
    return (chunk.encode("latin-1") for chunk in join_lines(lines, "\0" if flags.zero else "\n"))


def _sorted_lines(ctx: Context, flags: Flags, order: LineOrder, files: Sequence[str]) -> Iterator[bytes]:
    lines: Iterator[bytes]
    if flags.merge:
        streams = [chain.from_iterable(_lines(ctx, flags, file)) for file in files]
        lines = merge(*streams, key=partial(order.rank, check=ctx.meter.check))
    else:
        collected = _collect(ctx, (_lines(ctx, flags, file) for file in files), order.weight)
        order.sort(collected, ctx.meter.check)
        lines = iter(collected)
    if not flags.unique:
        return lines
    key = partial(order.rank, check=ctx.meter.check) if order.keys else None
    return (next(equal) for _, equal in groupby(lines, key))


def _collect(ctx: Context, files: Iterable[Iterable[list[AnyStr]]], weight: int) -> list[AnyStr]:
    """Return all lines of all files, charging *weight* bytes for each byte."""
    lines: list[AnyStr] = []
    for batch in chain.from_iterable(files):
        per_line = RECORD_BYTES + (_KEY_BYTES if weight > 1 else 0)
        ctx.meter.charge_memory(sum(map(len, batch)) * weight + per_line * len(batch))
        lines += batch
    return lines


def _print(ctx: Context, flags: Flags, chunks: Iterator[bytes]) -> int:
    if flags.output is None:
        ctx.write_each(chunks)
        return ctx.status
    try:
        with replacing(ctx.workspace, ctx.path(flags.output), ctx.meter) as output:
            for chunk in chunks:
                output.write(chunk)
    except CarrelError as error:
        raise _Failure("open failed", flags.output, error) from None
    return ctx.status


def _check_order(ctx: Context, flags: Flags, order: LineOrder, files: Sequence[str]) -> int:
    """Report the first line that is out of order."""
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
