"""An incoming archive, held in an unnamed file until all of it has been judged."""

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
"""What is read at once; small, because a decompressor copies what it could not use yet."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Spool:
    """The bytes of one archive."""

    def __init__(self, fd: int, size_bytes: int) -> None:
        self._fd = fd
        self.size_bytes = size_bytes

    def read(self, offset: int, count: int) -> bytes:
        """At most *count* bytes from *offset* on; fewer only at the end."""
        return _on_host(lambda: os.pread(self._fd, count, offset))

    def pieces(self, offset: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Everything from *offset* to *end*, piece by piece."""
        end = self.size_bytes if end is None else end
        while offset < end and (piece := self.read(offset, min(PIECE_BYTES, end - offset))):
            offset += len(piece)
            yield piece


@contextmanager
def spooled(source: ArchiveSource, limit: int | None, ledger: Ledger, *, replacing: bool) -> Iterator[Spool]:
    """Take all of *source* in, as much as fits; its own errors come out as they are.

    One that is known to be too large is refused before any of it is read. In a session it is held beside the
    drafts, and counts as one until it is complete.

    Raises:
        LimitError: It is more than *limit* bytes.
        QuotaError: It is more than there is room for.
        DiskError: The host could not hold it.
    """
    known = _known_size(source)
    require("archive_bytes", known, limit, "has {} bytes")
    ledger.require_spool(known, coming_bytes=known, replacing=replacing)
    with ExitStack() as undo:
        draft = _on_host(ledger.spool)
        if draft is None:
            fd = undo.enter_context(_on_host(_anywhere)).fileno()
        else:
            fd = undo.enter_context(draft).fd
        size = 0
        for piece in _pieces(source):
            size += len(piece)
            require("archive_bytes", size, limit, "has {} bytes or more")
            ledger.require_spool(size, replacing=replacing)
            _store(fd, piece)
        if draft is not None:
            # What is made of it counts from now on.
            draft.hide()
        yield Spool(fd, size)


def _anywhere() -> BinaryIO:
    return TemporaryFile(buffering=0)  # is closed by the caller


def _known_size(source: ArchiveSource) -> int:
    """How large it is, as far as that is known before it is read."""
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
    """Make the *call*, and let nothing of the host's error out but what it means."""
    try:
        return call()
    except OSError as error:
        kind = DiskFullError if error.errno in _FULL else DiskError
    raise kind("the host could not hold the archive while it was judged")
