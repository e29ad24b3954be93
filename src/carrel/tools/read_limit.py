"""How much of a file may be read at once."""

from __future__ import annotations

from carrel.errors import LimitError
from carrel.tools.context import Context
from carrel.values import FileInfo


def readable(ctx: Context, most: int) -> int:
    """How many of *most* bytes may be read at once."""
    limit = ctx.workspace.limits.read_bytes
    return most if limit is None else min(most, limit)


def require_size(info: FileInfo, most: int, path: str) -> None:
    """Refuse a file that is larger than *most* bytes, since only the whole of it is of use.

    Raises:
        LimitError: It is.
    """
    if info.size_bytes > most:
        raise LimitError(
            "read_bytes",
            limit=most,
            asked=info.size_bytes,
            message=f"{path!r} is too large: {info.size_bytes} bytes, the limit is {most}",
            path=path,
        )
