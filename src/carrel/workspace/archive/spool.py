"""`Spool`: an incoming archive, kept in an unnamed file until all of it has been validated."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import BinaryIO, TypeVar

from carrel.errors import DiskError, DiskFullError
from carrel.workspace.chunks import CHUNK_BYTES, Announced
from carrel.workspace.extract_limits import require
from carrel.workspace.gate import Ledger

ArchiveSource = BinaryIO | Iterable[bytes] | bytes
Result = TypeVar("Result")

PIECE_BYTES = 2**16
"""Bytes that are read at once; small, because a decompressor copies input that it cannot use yet."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Spool:
    """The bytes of one archive."""

    def __init__(self, fd: int, size_bytes: int) -> None:
        self._fd = fd
        self.size_bytes = size_bytes

    def read(self, offset: int, count: int) -> bytes:
        """Read *count* bytes from *offset*; fewer only at the end."""
        return _on_host(lambda: os.pread(self._fd, count, offset))

    def pieces(self, offset: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from *offset* to *end* in pieces."""
        end = self.size_bytes if end is None else end
        while offset < end and (piece := self.read(offset, min(PIECE_BYTES, end - offset))):
            offset += len(piece)
            yield piece


@contextmanager
def spooled(source: ArchiveSource, limit: int | None, ledger: Ledger, *, replacing: bool) -> Iterator[Spool]:
    """Read all of *source* into a spool; errors of the source itself are passed on unchanged.

    A source that is known to be too large is refused before it is read. In a session, the spool is kept
    beside the drafts, and counts as one until it is complete.

    Raises:
        LimitError: It is more than *limit* bytes.
        QuotaError: It does not fit in the quota.
        DiskError: The host could not store it.
    """
    known = _known_size(source)
    require("archive_bytes", known, limit, "has {} bytes")
    ledger.require_spool(known, coming_bytes=known, replacing=replacing)
    with ExitStack() as undo:
        draft = _on_host(ledger.spool)
        if draft is None:
            fd = undo.enter_context(_on_host(_temporary_file)).fileno()
        else:
            fd = undo.enter_context(draft).fd
        size = 0
        for piece in _pieces(source):
            size += len(piece)
            require("archive_bytes", size, limit, "has {} bytes or more")
            ledger.require_spool(size, replacing=replacing)
            _store(fd, piece)
        if draft is not None:
            # From now on, the extracted files count instead.
            draft.hide()
        yield Spool(fd, size)


def _temporary_file() -> BinaryIO:
    return TemporaryFile(buffering=0)  # the caller closes it


def _known_size(source: ArchiveSource) -> int:
    """Return the size that is known before the source is read, or 0."""
    if isinstance(source, bytes):
        return len(source)
    return (source.size_bytes or 0) if isinstance(source, Announced) else 0


def _pieces(source: ArchiveSource) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
    elif read := _reading(source):
        while piece := read(CHUNK_BYTES):
            yield piece
    else:
        yield from source


def _reading(source: ArchiveSource) -> Callable[[int], bytes] | None:
    return getattr(source, "read", None)


def _store(fd: int, piece: bytes) -> None:
    done = 0
    view = memoryview(piece)
    while done < len(view):
        done += _write(fd, view[done:])


def _write(fd: int, view: memoryview) -> int:
    return _on_host(lambda: os.write(fd, view))


def _on_host(call: Callable[[], Result]) -> Result:
    """Make the *call*; translate errors of the host without their details."""
    try:
        return call()
    except OSError as error:
        kind = DiskFullError if error.errno in _FULL else DiskError
    raise kind("the host could not store the archive to validate it")
