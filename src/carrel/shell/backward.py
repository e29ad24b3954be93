"""Reading from the end of a file towards its beginning."""

from __future__ import annotations

from collections.abc import Iterator

from carrel.shell.context import STDIN, Context

BLOCK_BYTES = 2**16
"""So much is read at a time."""


def blocks(ctx: Context, operand: str) -> Iterator[bytes]:
    """The content of a file, the last block first; all of standard input is held for it."""
    if operand == STDIN:
        return _held(ctx)
    return _read(ctx, operand, ctx.stat(operand).size_bytes)


def window(ctx: Context, operand: str, offset: int, length: int = BLOCK_BYTES) -> bytes:
    """*length* bytes of a file from *offset* on."""
    ctx.meter.check()
    return ctx.workspace.read(ctx.path(operand), offset=offset, length=length)


def _read(ctx: Context, operand: str, size: int) -> Iterator[bytes]:
    # A first read, of nothing perhaps, tells about a directory or a missing permission.
    first = size - (size % BLOCK_BYTES or min(size, BLOCK_BYTES))
    for offset in range(first, -1, -BLOCK_BYTES):
        yield window(ctx, operand, offset, min(BLOCK_BYTES, size - offset))


def _held(ctx: Context) -> Iterator[bytes]:
    held: list[bytes] = []
    for chunk in ctx.chunks(STDIN):
        ctx.meter.hold(len(chunk))
        held.append(chunk)
    while held:
        yield held[-1]
        ctx.meter.hold(-len(held.pop()))
