"""Encode files, directories and links as members of a tar or zip archive."""

from __future__ import annotations

import stat
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Protocol, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from carrel.errors import ChangedError
from carrel.fs.api import Reader
from carrel.values import FileInfo
from carrel.workspace.chunks import CHUNK_BYTES

_ZIP_BEGIN, _ZIP_END = 315_532_800, 4_354_819_198
"""The first and the last second that a zip archive can name."""
_UNIX = 3


@dataclass(frozen=True, slots=True)
class PackEntry:
    """One entry to be sent."""

    name: str
    info: FileInfo
    target: str = ""
    """Target of a link; empty for anything else."""


class Packer(Protocol):
    """Encodes the entries of an archive."""

    def file(self, entry: PackEntry, reader: Reader) -> Iterator[bytes]:
        """Encode a regular file, at most as large as it was when it was opened."""
        ...

    def other(self, entry: PackEntry) -> Iterator[bytes]:
        """Encode a directory or a link."""
        ...

    def end(self) -> Iterator[bytes]:
        """Encode the end of the archive."""
        ...


def _content(reader: Reader) -> Iterator[bytes]:
    """Yield the content up to the size of the file when it was opened, or less if it shrank."""
    left = reader.info.size_bytes
    for piece in reader.chunks(CHUNK_BYTES) if left else ():
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


class TarPacker:
    """Encodes a tar archive, with pax headers where a name or a number needs one."""

    def file(self, entry: PackEntry, reader: Reader) -> Iterator[bytes]:
        size = reader.info.size_bytes
        pieces = _content(reader)
        if size <= CHUNK_BYTES:
            # Small enough to be read first, so that the size in the header is exact.
            whole = b"".join(pieces)
            size, pieces = len(whole), iter((whole,))
        yield _tar_header(entry, reader.info, tarfile.REGTYPE, size)
        left = size
        for piece in pieces:
            left -= len(piece)
            yield piece
        if left:
            raise ChangedError(f"{entry.name!r} shrank while it was read", path=entry.name)
        yield bytes(-size % tarfile.BLOCKSIZE)

    def other(self, entry: PackEntry) -> Iterator[bytes]:
        yield _tar_header(entry, entry.info, tarfile.SYMTYPE if entry.target else tarfile.DIRTYPE, 0)

    def end(self) -> Iterator[bytes]:
        yield bytes(2 * tarfile.BLOCKSIZE)


def _tar_header(entry: PackEntry, info: FileInfo, kind: bytes, size: int) -> bytes:
    header = tarfile.TarInfo(entry.name)
    header.type = kind
    header.size = size
    header.mode = info.mode
    header.mtime = info.modified_ns // 10**9
    header.linkname = entry.target
    return header.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


class _Outgoing:
    """An unseekable output file for `ZipFile`."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: output is not buffered."""

    def taken(self) -> Iterator[bytes]:
        """Return the output since the last call."""
        pieces, self._pieces = self._pieces, []
        return iter(pieces)


class ZipPacker:
    """Encodes a zip archive with the sizes after the contents."""

    def __init__(self) -> None:
        self._out = _Outgoing()
        # cast: only `write` and `flush` are called.
        self._zip = ZipFile(cast("IO[bytes]", self._out), "w", ZIP_DEFLATED)

    def file(self, entry: PackEntry, reader: Reader) -> Iterator[bytes]:
        return self._send(_zip_row(entry.name, reader.info, stat.S_IFREG), _content(reader))

    def other(self, entry: PackEntry) -> Iterator[bytes]:
        if entry.target:
            text = entry.target.encode("utf-8", "surrogateescape")
            return self._send(_zip_row(entry.name, entry.info, stat.S_IFLNK), (text,))
        row = _zip_row(entry.name + "/", entry.info, stat.S_IFDIR)
        row.compress_type, row.CRC = ZIP_STORED, 0
        self._zip.mkdir(row)
        return self._out.taken()

    def _send(self, row: ZipInfo, content: Iterable[bytes]) -> Iterator[bytes]:
        with self._zip.open(row, "w") as target:
            for piece in content:
                target.write(piece)
                yield from self._out.taken()
        yield from self._out.taken()

    def end(self) -> Iterator[bytes]:
        self._zip.close()
        return self._out.taken()


def _zip_row(name: str, info: FileInfo, kind: int) -> ZipInfo:
    seconds = min(max(info.modified_ns // 10**9, _ZIP_BEGIN), _ZIP_END)
    row = ZipInfo(name, time.gmtime(seconds)[:6])
    row.create_system = _UNIX
    row.external_attr = (kind | info.mode) << 16
    row.compress_type = ZIP_DEFLATED
    row.file_size = info.size_bytes  # so that a large file gets 64-bit sizes
    return row
