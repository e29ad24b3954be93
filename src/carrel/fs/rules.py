"""Rules shared by every implementation of `Files`: link limit, write bits, counted bytes, `FileInfo`."""

from __future__ import annotations

import os
import stat
from typing import TypeVar

from carrel.errors import HostDeniedError
from carrel.paths.parsed_path import ParsedPath
from carrel.values import FileInfo, FileKind

MAX_LINKS = 40
"""Most links followed in one path, as in Linux."""
DRAFT_PREFIX = b".carrel-draft-"
"""Prefix of the names of unfinished files."""
_UNCOUNTED_BYTES = 2**16

KINDS = {
    stat.S_IFREG: FileKind.FILE,
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFLNK: FileKind.LINK,
}
# Looking up a member of an enum is slow, and a listing needs one for every entry.
_DIRECTORY = FileKind.DIRECTORY
_OTHER = FileKind.OTHER

InodeId = tuple[int, int]
PathPart = TypeVar("PathPart", str, bytes)


def skip_missing(todo: list[PathPart], up: PathPart) -> bool:
    """Pop from *todo* the names below a missing directory, and the `..` that leads back above it.

    A path through a missing directory is missing, but the part after the `..` must not lead out either, as
    `os.path.realpath` would resolve it. Returns whether there is such a `..`.
    """
    depth = 1
    while todo and depth:
        depth += -1 if todo.pop() == up else 1
    return not depth


def require_write_bit(found: os.stat_result, path: ParsedPath) -> None:
    """Refuse a file without any write permission, also for root."""
    if not found.st_mode & 0o222:
        raise HostDeniedError(f"permission denied: {path.requested!r} is read-only", path=path.requested)


def require_one_name(found: os.stat_result, path: ParsedPath) -> None:
    """Refuse to change a file in place that has other names, because it would change under those too."""
    if found.st_nlink != 1:
        raise HostDeniedError(
            f"{path.requested!r} has other names (hard links); changing it would change them too",
            path=path.requested,
        )


def counted_bytes(size: int, blocks: int) -> int:
    """Return the bytes to charge for a regular file: its size, or its blocks if those are far more.

    A program may reserve blocks without making a file longer. Overhead of the file system (partial blocks,
    block maps) is not charged: up to 64 KiB plus a sixteenth of the size.
    """
    allocated = blocks * 512
    return allocated if allocated > size + size // 16 + _UNCOUNTED_BYTES else size


def freed_bytes(found: os.stat_result | None) -> int:
    """Return the bytes to credit when the name of *found* is removed."""
    if not found or found.st_nlink != 1 or not stat.S_ISREG(found.st_mode):
        return 0
    return counted_bytes(found.st_size, found.st_blocks)


def inode_id(found: os.stat_result) -> InodeId:
    """Return what identifies an entry even when it is renamed."""
    return found.st_dev, found.st_ino


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
