"""Whether something is so small that reading it takes no longer than handing that to a thread would."""

from __future__ import annotations

from carrel.fs.api import Links
from carrel.policy.rules import Access
from carrel.tools.context import Context

FILE_BYTES = 2**16


def is_small_file(ctx: Context, path: str, most: int = FILE_BYTES) -> bool:
    """Whether the file at *path* has at most *most* bytes; a refusal is one of the call that follows."""
    files, where = ctx.workspace.gate.permit(Access.READ, path)
    return files.stat(where, Links.FOLLOW).size_bytes <= most
