"""`Archive`: reads and writes files beneath one directory of a container as tar archives.

Paths consist of names that were checked one by one: Docker would follow a link on the way, though never out
of the container.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from io import RawIOBase
from typing import TYPE_CHECKING

from carrel.containers.fs.primitives import Parts
from carrel.errors import ContainerError

if TYPE_CHECKING:
    from carrel.containers.container import Container, PathStat

_KINDS = {
    1 << 31: stat.S_IFDIR,
    1 << 27: stat.S_IFLNK,
    1 << 26: stat.S_IFBLK,
    1 << 25: stat.S_IFIFO,
    1 << 24: stat.S_IFSOCK,
}
"""Bits of Go's `FileMode` for anything but a regular file."""
PIECE_BYTES = 2**16
MAX_RESPONSE_BYTES = 2**30
"""Maximum bytes of one response: Docker sends holes in full, which cost a program nothing."""


class Archive:
    """Files of one container, read and written as archives."""

    def __init__(self, container: Container, root: str) -> None:
        self._container = container
        self._root = os.fsencode(root.rstrip("/"))
        self._owner: tuple[int, int] | None = None

    def head(self, parts: Parts) -> os.stat_result | None:
        """Return the entry, if it exists; a link is not followed."""
        path = self._path(parts)
        try:
            found = self._container.stat(path)
        except ContainerError as error:
            if error.problem != "failed":
                raise
        else:
            return None if found is None else _stat_of(found, path)
        # Docker fails on a circular link, because it tries to resolve it.
        with self._tar(parts[:-1]) as tar:
            member = _below(tar, parts[-1])
        if member is None or not member.issym():
            raise ContainerError("failed", "the Docker engine cannot inspect a file in the container")
        text = os.fsencode(member.linkname)
        return _stat(path, stat.S_IFLNK | 0o777, len(text), int(member.mtime) * 10**9)

    def _path(self, parts: Parts) -> str:
        # Docker and its client accept bytes too, the only way to name a path that is not UTF-8.
        path = b"/".join((self._root, *parts))
        try:
            return path.decode()
        except UnicodeDecodeError:
            return path  # type: ignore[return-value]  # as said above

    @contextmanager
    def _tar(self, parts: Parts) -> Iterator[tarfile.TarFile]:
        stream = _Stream(self._container.get_archive(self._path(parts)), MAX_RESPONSE_BYTES)
        with (
            closing(stream),
            tarfile.open(
                fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape", bufsize=PIECE_BYTES
            ) as tar,
        ):
            yield tar

    @contextmanager
    def _one(self, parts: Parts) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo | None]]:
        """Open the archive at the entry *parts*.

        Docker cannot send a name that is not UTF-8, nor a circular link, on its own, but it does send them
        with the whole directory.
        """
        alone = True
        if parts:
            try:
                parts[-1].decode()
                self._container.stat(self._path(parts))
            except (UnicodeDecodeError, ContainerError):
                alone = False
        with self._tar(parts if alone else parts[:-1]) as tar:
            yield tar, tar.next() if alone else _below(tar, parts[-1])

    def link_text(self, parts: Parts) -> bytes:
        """Return the target text of a link; Docker's stat has only the resolved target."""
        with self._one(parts) as (_, member):
            return b"" if member is None else os.fsencode(member.linkname)

    def names(self, parts: Parts) -> Generator[bytes]:
        """Yield the names in a directory; Docker sends everything beneath it too."""
        with self._tar(parts) as tar:
            for member in members(tar):
                below = os.fsencode(member.name).split(b"/")[1:]
                if len(below) == 1 and below[0]:
                    yield below[0]

    def content(self, parts: Parts, offset: int = 0) -> Generator[bytes]:
        """Yield the content of a file from *offset* on."""
        with self._one(parts) as (tar, member):
            if member is not None and member.islnk():
                # A hard link: the content is stored under the first name.
                first = os.fsencode(member.linkname).split(b"/")[1:]
                yield from self.content((*parts[:-1], *first), offset)
                return
            file = None if member is None else tar.extractfile(member)
            while file is not None and offset > 0:
                skipped = file.read(min(offset, PIECE_BYTES))
                if not skipped:
                    return
                offset -= len(skipped)
            while file is not None and (piece := file.read(PIECE_BYTES)):
                yield piece

    def member(self, name: bytes, mode: int, modified_ns: int | None = None) -> tarfile.TarInfo:
        """Return the archive member for an entry to be stored; its owner is that of the root."""
        if self._owner is None:
            with self._tar(()) as tar:
                top = tar.next()
            self._owner = (0, 0) if top is None else (top.uid, top.gid)
        member = tarfile.TarInfo(os.fsdecode(name))
        member.mode = mode
        member.uid, member.gid = self._owner
        when = time.time_ns() if modified_ns is None else modified_ns
        member.mtime = when // 10**9
        member.pax_headers = {"mtime": f"{when // 10**9}.{when % 10**9:09}"}
        return member

    def put(self, directory: Parts, member: tarfile.TarInfo, content: Iterator[bytes]) -> None:
        """Store one entry in a directory, replacing anything but a directory."""
        self._container.put_archive(self._path(directory), _packed(member, content))


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of *tar* without keeping them in memory."""
    while (member := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]  # typeshed lacks it
        yield member


def _below(tar: tarfile.TarFile, name: bytes) -> tarfile.TarInfo | None:
    """Find the entry *name* of the directory in *tar*."""
    return next((each for each in members(tar) if os.fsencode(each.name).split(b"/")[1:] == [name]), None)


class _Stream(RawIOBase):
    """A response of the engine as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes], max_bytes: int) -> None:
        self._pieces = pieces
        self._left = b""
        self._room = max_bytes

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Read at least one byte, unless at the end; never more than *size*."""
        if not self._left:
            self._left = next(self._pieces, b"")
            self._room -= len(self._left)
            if self._room < 0:
                raise ContainerError(
                    "too_large", "the files in the container are too large to be read without a shell in it"
                )
        if size < 0:
            size = len(self._left)
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def close(self) -> None:
        """End the request, even if there is more."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()
        super().close()


def _packed(member: tarfile.TarInfo, content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a tar archive with one member."""
    yield member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
    yield from content
    yield b"\0" * (-member.size % tarfile.BLOCKSIZE)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _stat_of(found: PathStat, path: str) -> os.stat_result:
    kind = next((kind for bit, kind in _KINDS.items() if found.mode & bit), stat.S_IFREG)
    return _stat(path, kind | found.mode & 0o777, found.size, _nanoseconds(found.modified))


def _stat(path: str, mode: int, size: int, modified_ns: int) -> os.stat_result:
    inode = int.from_bytes(hashlib.sha256(os.fsencode(path)).digest()[:6], "big")
    seen = (mode, inode, 0, 1, 0, 0, size, 0, modified_ns // 10**9, 0)
    more = {"st_mtime_ns": modified_ns, "st_atime_ns": modified_ns, "st_blocks": -(-size // 512)}
    return os.stat_result(seen, more)


def _nanoseconds(text: str) -> int:
    """Parse Go's ISO 8601, such as `2026-01-02T03:04:05.123456789Z` or with an offset, into nanoseconds."""
    whole, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = rest[len(digits) :] if rest else ""
    moment = datetime.fromisoformat(whole + zone)
    return int(moment.timestamp()) * 10**9 + int(digits.ljust(9, "0") or 0)
