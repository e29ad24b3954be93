"""Print lines in reverse order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import IsDirectoryError
from carrel.shell.budget import RECORD_BYTES
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt
from carrel.shell.command.head_tail import blocks_backward
from carrel.shell.text.quoting import encode, quote, quote_if_needed

USAGE = "[OPTION]... [FILE]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `tac`."""

    before: Annotated[bool, Opt("-b", "--before", help="put the separator before each record")] = False
    separator: Annotated[
        str, Opt("-s", "--separator", metavar="STRING", help="separate records with STRING, not newline")
    ] = "\n"


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the records of each file, last first."""
    separator = encode(flags.separator) or b"\0"
    for file in files or (STDIN,):
        with ctx.reporting(file, f"failed to open {quote(file)} for reading"):
            try:
                for piece in _reverse_records(ctx, blocks_backward(ctx, file), separator, flags):
                    ctx.write(piece)
            except IsDirectoryError:
                ctx.error(f"{quote_if_needed(file)}: read error: Invalid argument")
    return ctx.status


def _reverse_records(
    ctx: Context, backward: Iterable[bytes], separator: bytes, flags: Flags
) -> Iterator[bytes]:
    """Yield the records, last first, of the blocks *backward*, which come last first too."""
    carried: deque[bytes] = deque()
    held = 0
    for block in backward:
        # A separator may span two blocks.
        if separator not in block + _first_bytes(carried, len(separator) - 1):
            ctx.meter.charge_memory(2 * len(block))
            held += 2 * len(block)
            carried.appendleft(block)
            continue
        data = b"".join([block, *carried])
        with ctx.meter.holding_memory(3 * len(data) + 2 * RECORD_BYTES * data.count(separator)):
            # The first record may begin in the preceding block.
            first, *others = _split_records(data, separator, flags.before)
            yield b"".join(reversed(others))
        carried = deque([first])
        ctx.meter.charge_memory(2 * len(first) - held)
        held = 2 * len(first)
    yield from carried
    ctx.meter.charge_memory(-held)


def _first_bytes(blocks: Iterable[bytes], count: int) -> bytes:
    """Return the first *count* bytes of *blocks*."""
    found = b""
    for block in blocks:
        if len(found) >= count:
            break
        found += block[: count - len(found)]
    return found


def _split_records(data: bytes, separator: bytes, before: bool) -> list[bytes]:
    """Split *data* into records with their separators."""
    first, *others = data.split(separator)
    if before:
        return [first, *(separator + other for other in others)]
    pieces = [first, *others]
    last = pieces.pop()
    return [*(piece + separator for piece in pieces), *([last] if last else [])]
