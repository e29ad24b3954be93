"""Rules shared by every implementation of `Files`: link limit, write bits, counted bytes, draft names."""

from __future__ import annotations

import os
import stat
from typing import TypeVar

from carrel.errors import HostDeniedError, IsDirectoryError, LimitError, NotRegularError
from carrel.paths.parsed_path import ParsedPath

MAX_LINKS = 40
"""Most links in one path, as in Linux."""
DRAFT_PREFIX = b".carrel-draft-"
"""What the names of content that is not complete begin with."""
_UNCOUNTED_BYTES = 2**16

PathPart = TypeVar("PathPart", str, bytes)


def skip_missing(todo: list[PathPart], up: PathPart) -> bool:
    """Take from the end of *todo* what comes after a missing name, and the `..` that goes back above it.

    A path through a missing directory is missing, but where it goes on above it must not be out either, as
    `os.path.realpath` sees it. Returns whether there is such a `..`.
    """
    depth = 1
    while todo and depth:
        depth += -1 if todo.pop() == up else 1
    return not depth


def require_write_bit(found: os.stat_result, where: ParsedPath) -> None:
    """Refuse a file that nobody may write, for root as for everyone else."""
    if not found.st_mode & 0o222:
        raise HostDeniedError(f"permission denied: {where.requested!r} is read-only", path=where.requested)


def require_one_name(found: os.stat_result, where: ParsedPath) -> None:
    """Refuse to change a file in place that would change under another name too, wherever that is."""
    if found.st_nlink != 1:
        raise HostDeniedError(
            f"{where.requested!r} has other names (hard links); changing it would change them too",
            path=where.requested,
        )


def counted_bytes(size: int, blocks: int) -> int:
    """What a regular file counts for: its size, or what it holds of the disk if that is far more.

    A program may reserve blocks without making a file longer. What a file system adds itself (a part of a
    block, blocks that say where the others are) does not count: 64 KiB and a sixteenth of the size.
    """
    held = blocks * 512
    return held if held > size + size // 16 + _UNCOUNTED_BYTES else size


def not_a_file(found: os.stat_result, where: ParsedPath) -> IsDirectoryError | NotRegularError:
    """The error for something that is no regular file."""
    if stat.S_ISDIR(found.st_mode):
        return IsDirectoryError(f"{where.requested!r} is a directory, not a file", path=where.requested)
    return NotRegularError(f"{where.requested!r} is not a regular file", path=where.requested)


def too_large(what: str, limit: int, asked: int, where: ParsedPath) -> LimitError:
    """The error for a content of *asked* bytes where only *limit* are allowed."""
    return LimitError(
        what,
        limit=limit,
        asked=asked,
        message=f"{where.requested!r} is too large: {asked} bytes, the limit is {limit}",
        path=where.requested,
    )
