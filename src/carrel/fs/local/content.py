"""The bytes of one open file: read in chunks, appended, copied, limited."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator

from carrel.fs.errors import size_limit_error, translate
from carrel.fs.handle import Handle
from carrel.fs.local.draft import Draft
from carrel.paths.parsed_path import ParsedPath
from carrel.values import FileInfo

_COPY_BYTES = 2**24
_END_BYTES = 2**12
_NO_COPY_RANGE = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


class FileReader:
    """An open regular file, read in chunks."""

    def __init__(self, handle: Handle, info: FileInfo, path: ParsedPath) -> None:
        self._handle = handle
        self._path = path
        self.info = info

    @property
    def fd(self) -> int:
        """The descriptor, which is open for as long as this reader exists."""
        return self._handle.fd

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """Yield the content from *offset* on, at most *chunk_bytes* at a time."""
        if offset:
            os.lseek(self._handle.fd, min(offset, self.info.size_bytes), os.SEEK_SET)
        # Allocates no more memory than the file needs, and little for the read that finds its end.
        count = min(chunk_bytes, max(0, self.info.size_bytes - offset) + 1)
        while chunk := self._read(count):
            yield chunk
            count = chunk_bytes if len(chunk) == count else min(chunk_bytes, _END_BYTES)

    def read(self, length: int, offset: int = 0) -> bytes:
        """Read at most *length* bytes at *offset*."""
        try:
            return os.pread(self._handle.fd, length, offset)
        except OSError as error:
            number = error.errno
        raise translate(number, self._path)

    def _read(self, count: int) -> bytes:
        try:
            return os.read(self._handle.fd, count)
        except OSError as error:
            number = error.errno
        raise translate(number, self._path)


def read_window(
    fd: int, size: int, path: ParsedPath, limit: int | None, offset: int, length: int | None
) -> bytes:
    """Read a file of *size* bytes, or the window of *length* bytes at *offset*.

    Raises:
        LimitError: That is more than *limit* bytes.
    """
    wanted = max(0, size - offset)
    if length is not None:
        wanted = min(wanted, length)
    if limit is not None and wanted > limit:
        raise size_limit_error("read_bytes", limit, wanted, path)
    if not wanted and offset:
        return b""
    if offset:
        os.lseek(fd, offset, os.SEEK_SET)
    data = os.read(fd, wanted + 1)
    if len(data) == wanted or length is not None:
        return data[:wanted]
    return _read_growth(fd, data, limit, path)


def _read_growth(fd: int, data: bytes, limit: int | None, path: ParsedPath) -> bytes:
    """Read what was appended to a file while it was read, at most one byte beyond *limit*."""
    max_bytes = sys.maxsize if limit is None else limit
    chunks = [data]
    size = len(data)
    while size <= max_bytes:
        chunk = os.read(fd, min(2**16, max_bytes + 1 - size))
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
    raise size_limit_error("read_bytes", max_bytes, size, path)


def append_all(fd: int, data: bytes, size: int, flush: Callable[[int], None]) -> None:
    """Append all of *data* and flush it, or restore the file to *size* bytes."""
    done = 0
    view = memoryview(data)
    try:
        while done < len(data):
            done += os.write(fd, view[done:])
        flush(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise


def copy_all(source: FileReader, draft: Draft, limit: int | None, path: ParsedPath) -> None:
    """Copy the rest of *source*, inside the kernel if possible."""
    max_bytes = sys.maxsize if limit is None else limit
    size = 0
    for copied in _copy_chunks(source, draft):
        size += copied
        if size > max_bytes:
            raise size_limit_error("file_bytes", max_bytes, size, path)


def _copy_chunks(source: FileReader, draft: Draft) -> Iterator[int]:
    try:
        copied = os.copy_file_range(source.fd, draft.fd, _COPY_BYTES)
    except OSError as error:
        if error.errno not in _NO_COPY_RANGE:
            raise
        for chunk in source.chunks(2**20):
            draft.write(chunk)
            yield len(chunk)
        return
    while copied:
        yield copied
        copied = os.copy_file_range(source.fd, draft.fd, _COPY_BYTES)
