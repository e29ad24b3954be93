"""Rules shared by every implementation of `Files`: link limit, write bits, counted bytes, `FileInfo`."""

from __future__ import annotations

import os
import stat
from typing import TypeVar

from carrel.errors import HostDeniedError
from carrel.paths.parsed_path import ParsedPath
from carrel.values import FileInfo, FileKind

MAX_LINKS = 40
"""Most links in one path, as in Linux."""
DRAFT_PREFIX = b".carrel-draft-"
"""What the names of content that is not complete begin with."""
_UNCOUNTED_BYTES = 2**16

KINDS = {
    stat.S_IFREG: FileKind.FILE,
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFLNK: FileKind.LINK,
}
# Looking up a member of an enum is slow, and a listing needs one for every entry.
_DIRECTORY = FileKind.DIRECTORY
_OTHER = FileKind.OTHER

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


def require_write_bit(found: os.stat_result, path: ParsedPath) -> None:
    """Refuse a file that nobody may write, for root as for everyone else."""
    if not found.st_mode & 0o222:
        raise HostDeniedError(f"permission denied: {path.requested!r} is read-only", path=path.requested)


def require_one_name(found: os.stat_result, path: ParsedPath) -> None:
    """Refuse to change a file in place that would change under another name too, wherever that is."""
    if found.st_nlink != 1:
        raise HostDeniedError(
            f"{path.requested!r} has other names (hard links); changing it would change them too",
            path=path.requested,
        )


def counted_bytes(size: int, blocks: int) -> int:
    """What a regular file counts for: its size, or what it holds of the disk if that is far more.

    A program may reserve blocks without making a file longer. What a file system adds itself (a part of a
    block, blocks that say where the others are) does not count: 64 KiB and a sixteenth of the size.
    """
    held = blocks * 512
    return held if held > size + size // 16 + _UNCOUNTED_BYTES else size


def info_of(
    path: str, found: os.stat_result, target: str | None = None, created_ns: int | None = None
) -> FileInfo:
    """Return the `FileInfo` of *path* from the result of `stat`."""
    mode = found.st_mode
    kind = KINDS.get(mode & 0o170000, _OTHER)
    return FileInfo(
        path=path,
        kind=kind,
        size_bytes=0 if kind is _DIRECTORY else found.st_size,
        modified_ns=found.st_mtime_ns,
        mode=mode & 0o777,
        links=found.st_nlink,
        inode=found.st_ino,
        target=target,
        host_bytes=found.st_size,
        blocks=found.st_blocks,
        accessed_ns=found.st_atime_ns,
        created_ns=created_ns,
    )


def version_of(found: os.stat_result | None) -> str | None:
    """Return the version that `FileInfo` would have, or `None` if nothing was found."""
    return None if found is None else info_of("", found).version
