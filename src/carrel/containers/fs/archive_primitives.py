"""`ArchivePrimitives`: primitives by Docker's archive API alone, for images without a shell.

The image needs no programs at all, and the container need not run. If it runs, it is paused during a step, so
that no program in it can swap what was checked; every step checks the whole path again. A step fails if
someone else unpauses the container before its end.

Not covered: Docker reports neither inodes nor hard links, so the inode of a file is derived from its path. It
does not send sockets, so they are not listed or counted. It cannot remove or move anything. A container that
someone starts during a step is not paused, and neither is another one with the same volume: a program there
can redirect a step to other files of the container, but not out of it.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count as numbers
from itertools import islice
from tempfile import SpooledTemporaryFile
from threading import RLock
from typing import IO, TYPE_CHECKING

from carrel.containers.fs.archive import PIECE_BYTES, Archive
from carrel.containers.fs.primitives import (
    UP,
    ConcurrentChangeError,
    Copied,
    FileContent,
    FoundEntry,
    HeldFile,
    LinkInPath,
    MissingNameError,
    Parts,
    PlainNameError,
)
from carrel.errors import ContainerError
from carrel.fs.api import Existing, Links
from carrel.fs.errors import os_error

if TYPE_CHECKING:
    from carrel.containers.container import Container

PAUSE_SECONDS = 30.0
"""Seconds to wait for a container that someone else has paused."""
_PAUSE_POLL_SECONDS = 0.01
_NAME_BYTES = 255
_SPOOL_BYTES = 2**20
_TOUCHED = b"touched"
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


class ArchivePrimitives:
    """Each primitive is a few requests to the engine."""

    confinement = "archive"

    def __init__(self, container: Container, root: str) -> None:
        """Work beneath *root*.

        Raises:
            ContainerError: There is no such directory.
        """
        self._container = container
        self._archive = Archive(container, root)
        self._lock = RLock()
        self._is_paused = False
        self._handles = numbers(1)
        self._spools: dict[bytes, IO[bytes]] = {}
        """Drafts and files that are kept open, by name."""
        top = self._archive.head(())
        if top is None or not stat.S_ISDIR(top.st_mode):
            raise ContainerError("root", "the directory for files does not exist in the container")

    def close(self) -> None:
        """Remove everything that was copied out."""
        for name in builtins.list(self._spools):
            self._delete(name)

    # Looking up

    def stat(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """Return the entry; `None` if only the last name is missing."""
        with self._paused():
            return self._walk(parts, links)

    def read(self, parts: Parts, offset: int, count: int) -> FileContent | FoundEntry | LinkInPath:
        """Read part of a file."""
        with self._paused():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath) or not stat.S_ISREG(found.stat.st_mode):
                return found
            with closing(self._archive.content(parts, offset)) as pieces:
                return FileContent(found.stat, b"".join(_limited(pieces, min(count, found.stat.st_size))))

    def list(
        self, parts: Parts, limit: int | None
    ) -> builtins.list[tuple[bytes, os.stat_result]] | LinkInPath:
        """List the entries of a directory; Docker sends all of their content too."""
        with self._paused():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath):
                return found
            if not stat.S_ISDIR(found.stat.st_mode):
                raise os_error(errno.ENOTDIR)
            with closing(self._archive.names(parts)) as listed:
                names = builtins.list(islice(listed, None if limit is None else limit + 1))
            return [
                (name, seen) for name in names if (seen := self._archive.head((*parts, name))) is not None
            ]

    # Files kept open

    def hold(self, parts: Parts) -> HeldFile | FoundEntry | LinkInPath:
        """Copy a regular file out of the container."""
        with self._paused():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath) or not stat.S_ISREG(found.stat.st_mode):
                return found
            handle = b"%d" % next(self._handles)
            self._copy_out(parts, handle, None)
            return HeldFile(found.stat, handle)

    def read_held(self, held: HeldFile, offset: int, count: int) -> bytes:
        """Read part of a file that was copied out."""
        with self._lock:
            spool = self._spools[held.handle]
            spool.seek(offset)
            return spool.read(count)

    def drop(self, held: HeldFile) -> None:
        """Delete the copy."""
        self._delete(held.handle)

    # Content

    def store(self, parts: Parts, data: bytes, mode: int | None, existing: Existing) -> os.stat_result:
        """Create or replace a file in one step."""
        with self._paused():
            self._require_target(parts, existing)
            member = self._archive.member(parts[-1], _FILE_MODE if mode is None else mode & 0o777)
            member.size = len(data)
            self._archive.put(parts[:-1], member, iter((data,)))
            return self._stored(parts)

    def begin(self, draft: bytes) -> os.stat_result:
        """Create a draft on this host."""
        self._spools[draft] = _spool()
        return _draft_stat(0)

    def add(self, draft: bytes, created: os.stat_result, data: bytes) -> os.stat_result:
        """Append to a draft."""
        self._spools[draft].write(data)
        return _draft_stat(created.st_size + len(data))

    def copy(self, parts: Parts, draft: bytes, max_bytes: int | None) -> Copied | FoundEntry | LinkInPath:
        """Create a draft with the content of a file."""
        with self._paused():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath) or not stat.S_ISREG(found.stat.st_mode):
                return found
            return Copied(found.stat, _draft_stat(self._copy_out(parts, draft, max_bytes)))

    def publish(
        self, draft: bytes, created: os.stat_result, parts: Parts, mode: int | None, existing: Existing
    ) -> os.stat_result:
        """Move a draft to its target."""
        with self._paused():
            self._require_target(parts, existing)
            member = self._archive.member(parts[-1], _FILE_MODE if mode is None else mode & 0o777)
            member.size = created.st_size
            self._archive.put(parts[:-1], member, self._read_spool(draft))
            return self._stored(parts)

    def discard(self, draft: bytes) -> None:
        """Delete a draft."""
        self._delete(draft)

    def append(self, parts: Parts, before: os.stat_result, data: bytes) -> os.stat_result:
        """Store the file again with *data* at its end."""
        if not data:
            return before
        draft = b"%d" % next(self._handles)
        try:
            with self._paused():
                self._require_same(parts, before)
                size = self._copy_out(parts, draft, None)
                self._spools[draft].write(data)
                created = _draft_stat(size + len(data))
                return self.publish(draft, created, parts, before.st_mode, Existing.REPLACE)
        finally:
            self.discard(draft)

    # Other changes

    def touch(self, parts: Parts, before: os.stat_result, modified_ns: int) -> os.stat_result:
        """Store the entry again with another time."""
        if not parts:
            raise self._unsupported("touch the top of the files")
        with self._paused():
            self._require_same(parts, before)
            member = self._archive.member(parts[-1], before.st_mode & 0o777, modified_ns)
            if stat.S_ISDIR(before.st_mode):
                member.type = tarfile.DIRTYPE
                self._archive.put(parts[:-1], member, iter(()))
            else:
                # Copied out completely first: Docker handles one archive request per container at a time.
                member.size = self._copy_out(parts, _TOUCHED, None)
                self._archive.put(parts[:-1], member, self._read_spool(_TOUCHED))
                self._delete(_TOUCHED)
            return self._stored(parts)

    def mkdirs(self, near: Parts, missing: Parts) -> None:
        """Create nested directories."""
        with self._paused():
            self._require_target((*near, missing[0]), Existing.REFUSE)
            for count in range(len(missing)):
                member = self._archive.member(missing[count], _DIRECTORY_MODE)
                member.type = tarfile.DIRTYPE
                self._archive.put((*near, *missing[:count]), member, iter(()))

    def link(self, parts: Parts, text: bytes, existing: Existing) -> None:
        """Create a link."""
        with self._paused():
            self._require_target(parts, existing)
            # Extracted at the root, because Docker refuses a link that leads out of its target directory.
            member = self._archive.member(b"/".join(parts), 0o777)
            member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(text)
            self._archive.put((), member, iter(()))

    def unlink(self, parts: Parts) -> None:
        """Refuse: Docker cannot remove files."""
        raise self._unsupported("remove files")

    def rmdir(self, parts: Parts) -> None:
        """Refuse: Docker cannot remove files."""
        raise self._unsupported("remove directories")

    def purge(self, parts: Parts) -> None:
        """Refuse: Docker cannot remove files."""
        raise self._unsupported("remove directories")

    def move(self, source: Parts, target: Parts, existing: Existing) -> None:
        """Refuse: Docker cannot rename files."""
        raise self._unsupported("move files")

    def _unsupported(self, what: str) -> ContainerError:
        return ContainerError(
            "unsupported", f"cannot {what} here: the image has no shell, or the container does not run"
        )

    # Resolving

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Pause the container during the block."""
        with self._lock:
            if self._is_paused or not self._pause():
                yield
                return
            self._is_paused = True
            try:
                yield
            finally:
                self._is_paused = False
                was_paused = self._container.unpause()
            if not was_paused:
                raise os_error(errno.EAGAIN)

    def _pause(self) -> bool:
        """Pause the container; returns false if it is not running. Waits while others have paused it."""
        deadline = time.monotonic() + PAUSE_SECONDS
        while not self._container.pause():
            if not self._container.state().running:
                return False
            if time.monotonic() >= deadline:
                raise os_error(errno.EAGAIN)
            time.sleep(_PAUSE_POLL_SECONDS)
        return True

    def _walk(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """Look up one name after the other."""
        here: builtins.list[bytes] = []
        seen = self._archive.head(())
        for at, name in enumerate(parts, 1):
            if seen is None:
                raise MissingNameError(at - 1)
            if not stat.S_ISDIR(seen.st_mode):
                raise PlainNameError(at - 1)
            if name == UP:
                if not here:
                    raise os_error(errno.EXDEV)
                here.pop()
                seen = self._archive.head(tuple(here))
                continue
            if len(name) > _NAME_BYTES:
                raise os_error(errno.ENAMETOOLONG)
            here.append(name)
            seen = self._archive.head(tuple(here))
            if seen is not None and stat.S_ISLNK(seen.st_mode):
                text = self._archive.link_text(tuple(here))
                if at < len(parts) or links is Links.FOLLOW:
                    return LinkInPath(at, text)
                return FoundEntry(seen, text)
        return None if seen is None else FoundEntry(seen, None, writable=True)

    def _require(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath:
        found = self._walk(parts, links)
        if found is None:
            raise os_error(errno.ENOENT)
        return found

    def _require_target(self, parts: Parts, existing: Existing) -> None:
        """Refuse a target that is taken; a link on the way must have been created since the lookup."""
        found = self._walk(parts, Links.KEEP)
        if isinstance(found, LinkInPath):
            raise os_error(errno.EAGAIN)
        if found is not None and existing is Existing.REFUSE:
            raise os_error(errno.EEXIST)

    def _require_same(self, parts: Parts, before: os.stat_result) -> None:
        """Refuse to change another entry than the one in *before*."""
        found = self._walk(parts, Links.KEEP)
        if not isinstance(found, FoundEntry) or _fingerprint(found.stat) != _fingerprint(before):
            raise ConcurrentChangeError

    def _stored(self, parts: Parts) -> os.stat_result:
        found = self._archive.head(parts)
        if found is None:
            raise os_error(errno.EAGAIN)
        return found

    # Copies on this host

    def _copy_out(self, parts: Parts, name: bytes, max_bytes: int | None) -> int:
        """Copy a file, or its first *max_bytes* bytes, to this host; returns the size of the copy."""
        spool = _spool()
        try:
            with closing(self._archive.content(parts)) as pieces:
                for piece in _limited(pieces, max_bytes):
                    spool.write(piece)
        except BaseException:
            spool.close()
            raise
        self._spools[name] = spool
        return spool.tell()

    def _delete(self, name: bytes) -> None:
        spool = self._spools.pop(name, None)
        if spool is not None:
            spool.close()

    def _read_spool(self, name: bytes) -> Iterator[bytes]:
        spool = self._spools[name]
        spool.seek(0)
        return iter(lambda: spool.read(PIECE_BYTES), b"")


def _fingerprint(found: os.stat_result) -> tuple[int, ...]:
    """Return what distinguishes an entry from one that replaced it, as far as Docker reports it."""
    if stat.S_ISDIR(found.st_mode):
        return (stat.S_IFDIR,)
    return stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns


def _limited(pieces: Iterator[bytes], max_bytes: int | None) -> Iterator[bytes]:
    left = max_bytes
    for piece in pieces:
        if left is None:
            yield piece
            continue
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _spool() -> IO[bytes]:
    return SpooledTemporaryFile(_SPOOL_BYTES)


def _draft_stat(size: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | _FILE_MODE, 0, 0, 1, 0, 0, size, 0, 0, 0))
