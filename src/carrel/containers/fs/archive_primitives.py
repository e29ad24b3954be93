"""`ArchivePrimitives`: the primitives by the engine's archives alone, for images without a shell.

The image needs no program at all, and the container need not run. If it runs, it is paused for the length of
a step, so that nobody in it can swap what was looked at; a step looks at the whole way again. A step fails if
somebody else unpauses the container before its end.

Not covered: the engine tells neither inodes nor hard links, so a file's inode is made up from its path. It
sends no sockets, so none is listed or counted. What it cannot do at all is to remove or move something. A
container that somebody starts in the middle of a step is not paused, and neither is another one that has the
same volume: a program there can lead a step to other files of the container, not out of it.
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
    os_error,
)
from carrel.errors import ContainerError
from carrel.fs.api import Existing, Links

if TYPE_CHECKING:
    from carrel.containers.container import Container

FREEZE_SECONDS = 30.0
"""How long to wait for a container that somebody else has paused."""
_FREEZE_PAUSE_SECONDS = 0.01
_NAME_BYTES = 255
_SPOOL_BYTES = 2**20
_TOUCHED = b"touched"
_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


class ArchivePrimitives:
    """Each step is a few requests to the engine."""

    confinement = "archive"

    def __init__(self, container: Container, root: str) -> None:
        """Work beneath *root*.

        Raises:
            ContainerError: There is no such directory.
        """
        self._container = container
        self._archive = Archive(container, root)
        self._lock = RLock()
        self._is_quiet = False
        self._numbers = numbers(1)
        self._spools: dict[bytes, IO[bytes]] = {}
        """Drafts, and files that are kept open."""
        top = self._archive.head(())
        if top is None or not stat.S_ISDIR(top.st_mode):
            raise ContainerError("root", "the directory for files is not in the container")

    def close(self) -> None:
        """Let go of what was copied out."""
        for name in builtins.list(self._spools):
            self._forget(name)

    # Looking

    def look(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """What is there; `None` if only the last name is missing."""
        with self._quiet():
            return self._walk(parts, links)

    def read(self, parts: Parts, offset: int, count: int) -> FileContent | FoundEntry | LinkInPath:
        """A file and some of its content."""
        with self._quiet():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath) or not stat.S_ISREG(found.stat.st_mode):
                return found
            with closing(self._archive.content(parts, offset)) as pieces:
                return FileContent(found.stat, b"".join(_limited(pieces, min(count, found.stat.st_size))))

    def list(
        self, parts: Parts, limit: int | None
    ) -> builtins.list[tuple[bytes, os.stat_result]] | LinkInPath:
        """The entries of a directory, of which the engine sends all content as well."""
        with self._quiet():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath):
                return found
            if not stat.S_ISDIR(found.stat.st_mode):
                raise os_error(errno.ENOTDIR)
            with closing(self._archive.names(parts)) as told:
                names = builtins.list(islice(told, None if limit is None else limit + 1))
            return [
                (name, seen) for name in names if (seen := self._archive.head((*parts, name))) is not None
            ]

    # Files kept open

    def hold(self, parts: Parts) -> HeldFile | FoundEntry | LinkInPath:
        """Copy a regular file out of the container."""
        with self._quiet():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath) or not stat.S_ISREG(found.stat.st_mode):
                return found
            handle = b"%d" % next(self._numbers)
            self._copy_out(parts, handle, None)
            return HeldFile(found.stat, handle)

    def read_held(self, held: HeldFile, offset: int, count: int) -> bytes:
        """Some content of a file that was copied out."""
        with self._lock:
            spool = self._spools[held.handle]
            spool.seek(offset)
            return spool.read(count)

    def drop(self, held: HeldFile) -> None:
        """Forget the copy."""
        self._forget(held.handle)

    # Content

    def store(self, parts: Parts, data: bytes, mode: int | None, existing: Existing) -> os.stat_result:
        """Make a file at once."""
        with self._quiet():
            self._require_place(parts, existing)
            member = self._archive.member(parts[-1], _FILE_MODE if mode is None else mode & 0o777)
            member.size = len(data)
            self._archive.put(parts[:-1], member, iter((data,)))
            return self._seen(parts)

    def begin(self, draft: bytes) -> os.stat_result:
        """Begin a draft on this host."""
        self._spools[draft] = _spool()
        return _drafted(0)

    def add(self, draft: bytes, made: os.stat_result, data: bytes) -> os.stat_result:
        """Add to a draft."""
        self._spools[draft].write(data)
        return _drafted(made.st_size + len(data))

    def copy(self, parts: Parts, draft: bytes, most: int | None) -> Copied | FoundEntry | LinkInPath:
        """Make a draft with the content of a file."""
        with self._quiet():
            found = self._require(parts, Links.FOLLOW)
            if isinstance(found, LinkInPath) or not stat.S_ISREG(found.stat.st_mode):
                return found
            return Copied(found.stat, _drafted(self._copy_out(parts, draft, most)))

    def publish(
        self, draft: bytes, made: os.stat_result, parts: Parts, mode: int | None, existing: Existing
    ) -> os.stat_result:
        """Put a draft in its place."""
        with self._quiet():
            self._require_place(parts, existing)
            member = self._archive.member(parts[-1], _FILE_MODE if mode is None else mode & 0o777)
            member.size = made.st_size
            self._archive.put(parts[:-1], member, self._spooled(draft))
            return self._seen(parts)

    def discard(self, draft: bytes) -> None:
        """Forget a draft."""
        self._forget(draft)

    def append(self, parts: Parts, before: os.stat_result, data: bytes) -> os.stat_result:
        """Store the file with more at its end."""
        if not data:
            return before
        draft = b"%d" % next(self._numbers)
        try:
            with self._quiet():
                self._require_same(parts, before)
                size = self._copy_out(parts, draft, None)
                self._spools[draft].write(data)
                made = _drafted(size + len(data))
                return self.publish(draft, made, parts, before.st_mode, Existing.REPLACE)
        finally:
            self.discard(draft)

    # Other changes

    def touch(self, parts: Parts, before: os.stat_result, modified_ns: int) -> os.stat_result:
        """Store the same with another time."""
        if not parts:
            raise self._unsupported("touch the top of the files")
        with self._quiet():
            self._require_same(parts, before)
            member = self._archive.member(parts[-1], before.st_mode & 0o777, modified_ns)
            if stat.S_ISDIR(before.st_mode):
                member.type = tarfile.DIRTYPE
                self._archive.put(parts[:-1], member, iter(()))
            else:
                # All of it is taken out first: the engine does one thing with a container at a time.
                member.size = self._copy_out(parts, _TOUCHED, None)
                self._archive.put(parts[:-1], member, self._spooled(_TOUCHED))
                self._forget(_TOUCHED)
            return self._seen(parts)

    def mkdirs(self, near: Parts, missing: Parts) -> None:
        """Make directories, one in the other."""
        with self._quiet():
            self._require_place((*near, missing[0]), Existing.REFUSE)
            for count in range(len(missing)):
                member = self._archive.member(missing[count], _DIRECTORY_MODE)
                member.type = tarfile.DIRTYPE
                self._archive.put((*near, *missing[:count]), member, iter(()))

    def link(self, parts: Parts, text: bytes, existing: Existing) -> None:
        """Create a link."""
        with self._quiet():
            self._require_place(parts, existing)
            # Into the root, since the engine refuses a link that leads out of where it is put.
            member = self._archive.member(b"/".join(parts), 0o777)
            member.type, member.linkname = tarfile.SYMTYPE, os.fsdecode(text)
            self._archive.put((), member, iter(()))

    def unlink(self, parts: Parts) -> None:
        """The engine has no way to remove anything."""
        raise self._unsupported("remove files")

    def rmdir(self, parts: Parts) -> None:
        """The engine has no way to remove anything."""
        raise self._unsupported("remove directories")

    def purge(self, parts: Parts) -> None:
        """The engine has no way to remove anything."""
        raise self._unsupported("remove directories")

    def move(self, source: Parts, target: Parts, existing: Existing) -> None:
        """The engine has no way to rename anything."""
        raise self._unsupported("move files")

    def _unsupported(self, what: str) -> ContainerError:
        return ContainerError(
            "unsupported", f"cannot {what} here: the image has no shell, or the container does not run"
        )

    # The way to things

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Let nothing run in the container meanwhile."""
        with self._lock:
            if self._is_quiet or not self._freeze():
                yield
                return
            self._is_quiet = True
            try:
                yield
            finally:
                self._is_quiet = False
                was_frozen = self._container.unpause()
            if not was_frozen:
                raise os_error(errno.EAGAIN)

    def _freeze(self) -> bool:
        """Pause the container; whether it runs. One that others paused would go on when they want it to."""
        deadline = time.monotonic() + FREEZE_SECONDS
        while not self._container.pause():
            if not self._container.state().running:
                return False
            if time.monotonic() >= deadline:
                raise os_error(errno.EAGAIN)
            time.sleep(_FREEZE_PAUSE_SECONDS)
        return True

    def _walk(self, parts: Parts, links: Links) -> FoundEntry | LinkInPath | None:
        """Look at one name after the other."""
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

    def _require_place(self, parts: Parts, existing: Existing) -> None:
        """Refuse to put something where it cannot be; a link in the way was not there before."""
        found = self._walk(parts, Links.KEEP)
        if isinstance(found, LinkInPath):
            raise os_error(errno.EAGAIN)
        if found is not None and existing is Existing.REFUSE:
            raise os_error(errno.EEXIST)

    def _require_same(self, parts: Parts, before: os.stat_result) -> None:
        """Refuse to change something else than what was seen there."""
        found = self._walk(parts, Links.KEEP)
        if not isinstance(found, FoundEntry) or _what(found.stat) != _what(before):
            raise ConcurrentChangeError

    def _seen(self, parts: Parts) -> os.stat_result:
        found = self._archive.head(parts)
        if found is None:
            raise os_error(errno.EAGAIN)
        return found

    # Copies on this host

    def _copy_out(self, parts: Parts, name: bytes, most: int | None) -> int:
        """Copy a file, or at most so much of it, to a place of ours; its size."""
        spool = _spool()
        try:
            with closing(self._archive.content(parts)) as pieces:
                for piece in _limited(pieces, most):
                    spool.write(piece)
        except BaseException:
            spool.close()
            raise
        self._spools[name] = spool
        return spool.tell()

    def _forget(self, name: bytes) -> None:
        spool = self._spools.pop(name, None)
        if spool is not None:
            spool.close()

    def _spooled(self, name: bytes) -> Iterator[bytes]:
        spool = self._spools[name]
        spool.seek(0)
        return iter(lambda: spool.read(PIECE_BYTES), b"")


def _what(found: os.stat_result) -> tuple[int, ...]:
    """What the engine tells of one thing and not of another that took its place."""
    if stat.S_ISDIR(found.st_mode):
        return (stat.S_IFDIR,)
    return stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns


def _limited(pieces: Iterator[bytes], most: int | None) -> Iterator[bytes]:
    left = most
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


def _drafted(size: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | _FILE_MODE, 0, 0, 1, 0, 0, size, 0, 0, 0))
