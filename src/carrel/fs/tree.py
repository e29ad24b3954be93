"""Whole trees: visit and remove them iteratively, whatever their depth.

Nothing here follows a link or enters another mount: a child is opened by the resolver, beneath the descriptor
of its parent, with `O_NOFOLLOW`. `os.scandir` is given descriptors only; given a path it would answer about
whatever stands there later.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from carrel.errors import LimitError
from carrel.fs import _sys
from carrel.fs._resolve import Open
from carrel.fs.api import Unreadable
from carrel.fs.handle import Handle
from carrel.values import FileInfo, FileKind

LEVELS = 32
"""Most directories that removal holds open; deeper ones are moved up first."""
PASSES = 1_000_000
"""Most times that directories are moved up: enough for any real depth, and an end for a hostile one."""
ATTEMPTS = 64
"""How often removal starts over in a directory that others keep filling."""

SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {
    stat.S_IFREG: FileKind.FILE,
    stat.S_IFDIR: FileKind.DIRECTORY,
    stat.S_IFLNK: FileKind.LINK,
}


def info_of(path: str, found: os.stat_result, target: str | None = None) -> FileInfo:
    """What *found* says about *path*."""
    mode = found.st_mode
    kind = _KINDS.get(mode & 0o170000, FileKind.OTHER)
    return FileInfo(
        path=path,
        kind=kind,
        size_bytes=0 if kind is FileKind.DIRECTORY else found.st_size,
        modified_ns=found.st_mtime_ns,
        mode=mode & 0o777,
        links=found.st_nlink,
        inode=found.st_ino,
        target=target,
    )


def scan(fd: int, prefix: str, limit: int | None) -> list[FileInfo]:
    """The entries of the directory *fd*, sorted by name, each path beginning with *prefix*."""
    found: list[FileInfo] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if limit is not None and len(found) >= limit:
                raise LimitError(
                    "list_entries",
                    limit=limit,
                    asked=None,
                    message=f"directory {prefix.rstrip('/') or '.'!r} has more than"
                    f" {limit} entries, the limit of a listing",
                    path=prefix.rstrip("/") or ".",
                )
            try:
                found.append(info_of(prefix + entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue
    found.sort(key=_path)
    return found


def _path(info: FileInfo) -> str:
    return info.path


class Visit:
    """One walk through a tree: parents before their children, names in order."""

    def __init__(
        self,
        open_child: Open,
        *,
        depth: int | None,
        entries: int | None,
        listing: int | None,
        unreadable: Unreadable,
    ) -> None:
        self._open = open_child
        self._depth = depth
        self._entries = entries
        self._listing = listing
        self._unreadable = unreadable

    def run(self, top: Handle, prefix: str) -> Iterator[FileInfo]:
        """Visit what is beneath the directory *top*.

        Raises:
            LimitError: After everything within the limits was given, or at the limit of entries.
        """
        seen = 0
        too_deep: str | None = None
        levels = [(top, iter(scan(top.fd, prefix, self._listing)))]
        while levels:
            here, infos = levels[-1]
            info = next(infos, None)
            if info is None:
                levels.pop()
                continue
            if self._entries is not None and seen >= self._entries:
                raise _too_many(self._entries, prefix)
            seen += 1
            yield info
            if info.kind is not FileKind.DIRECTORY:
                continue
            if self._depth is not None and len(levels) >= self._depth:
                too_deep = too_deep or info.path
            elif child := self._enter(here, info):
                levels.append((child, iter(scan(child.fd, info.path + "/", self._listing))))
        if too_deep is not None and self._depth is not None:
            raise _too_deep(self._depth, too_deep)

    def _enter(self, parent: Handle, info: FileInfo) -> Handle | None:
        """The open directory, or `None` if it is gone, swapped or, where those are skipped, shut to us."""
        try:
            return Handle(self._open(parent.fd, os.fsencode(info.name), SCAN))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if self._unreadable is Unreadable.REFUSE or error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            return None


def _too_many(limit: int, prefix: str) -> LimitError:
    top = prefix.rstrip("/") or "."
    return LimitError(
        "walk_entries",
        limit=limit,
        asked=None,
        message=f"directory tree {top!r} has more than {limit} entries, the limit of a walk",
        path=top,
    )


def _too_deep(limit: int, path: str) -> LimitError:
    return LimitError(
        "depth",
        limit=limit,
        asked=None,
        message=f"directory tree is deeper than {limit} levels, the limit of a walk; it goes on at"
        f" {path[:80]!r}",
        path=path,
    )


def remove_tree(open_child: Open, parent: int, name: bytes) -> None:
    """Remove the directory *name* of *parent* and everything in it.

    Others may remove the same tree at the same time; what is gone is done.
    """
    for _ in range(ATTEMPTS):
        try:
            top = _open_to_empty(open_child, parent, name)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            _unlink(parent, name)
            return
        try:
            for _ in range(PASSES):
                if not _empty_once(open_child, top):
                    break
        finally:
            os.close(top)
        try:
            os.rmdir(name, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            return
    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))


def _empty_once(open_child: Open, top: int) -> bool:
    """Remove what *top* holds, down to `LEVELS`; deeper directories move up into *top*.

    Returns whether something was moved up, so that *top* has to be looked at again.
    """
    moved = False
    levels: list[tuple[int, bytes, list[bytes]]] = [(top, b"", _unlink_files(top))]
    try:
        while True:
            fd, name, directories = levels[-1]
            if directories:
                child = directories.pop()
                if len(levels) < LEVELS:
                    _push(open_child, levels, fd, child)
                else:
                    moved = _move_up(open_child, fd, child, top) or moved
                continue
            if len(levels) == 1:
                return moved
            levels.pop()
            os.close(fd)
            _rmdir(levels[-1][0], name)
    finally:
        for fd, _, _ in levels[1:]:
            os.close(fd)


def _push(open_child: Open, levels: list[tuple[int, bytes, list[bytes]]], fd: int, name: bytes) -> None:
    try:
        child = _open_to_empty(open_child, fd, name)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        _unlink(fd, name)
        return
    levels.append((child, name, []))
    levels[-1][2].extend(_unlink_files(child))


def _open_to_empty(open_child: Open, parent: int, name: bytes) -> int:
    """Open the directory *name* for removal, giving ourselves the rights its owner took away."""
    try:
        fd = open_child(parent, name, SCAN)
    except PermissionError:
        unlock(open_child, parent, name)
        fd = open_child(parent, name, SCAN)
    mode = os.fstat(fd).st_mode
    if mode & 0o700 != 0o700:
        try:
            os.fchmod(fd, 0o700)
        except PermissionError:
            os.close(fd)
            raise
    return fd


def unlock(open_child: Open, parent: int, name: bytes) -> None:
    """Give the owner all rights on the directory *name*, whatever its mode is."""
    held = open_child(parent, name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _sys.chmod_held_unchecked(held, 0o700)
    finally:
        os.close(held)


def _unlink_files(fd: int) -> list[bytes]:
    """Unlink all but the directories of *fd* and return those."""
    directories: list[bytes] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                directories.append(os.fsencode(entry.name))
            else:
                _unlink(fd, entry.name)
    return directories


def _unlink(fd: int, name: str | bytes) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except (FileNotFoundError, IsADirectoryError):
        return


def _rmdir(fd: int, name: bytes) -> None:
    """Remove an emptied directory; one that was filled again is left for the next attempt."""
    try:
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        _unlink(fd, name)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _move_up(open_child: Open, fd: int, name: bytes, top: int) -> bool:
    fresh = os.urandom(12).hex()
    try:
        os.rename(name, fresh, src_dir_fd=fd, dst_dir_fd=top)
    except FileNotFoundError:
        return False
    except PermissionError:
        # Moving a directory changes its `..`, so its own mode counts too.
        unlock(open_child, fd, name)
        os.rename(name, fresh, src_dir_fd=fd, dst_dir_fd=top)
    return True
