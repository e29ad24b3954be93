"""Whether something is so small that reading it takes no longer than handing that to a thread would."""

from __future__ import annotations

from carrel.tools.context import Context

FILE_BYTES = 2**16


def is_small_file(ctx: Context, path: str) -> bool:
    """Whether the file at *path* is short."""
    return ctx.workspace.stat(path).size_bytes <= FILE_BYTES
