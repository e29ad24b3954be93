"""Packs a workspace into a tar archive without excluded paths, and computes its fingerprint."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, cast

from carrel.workspace.workspace import Workspace

IN_MEMORY_BYTES = 2**24
"""Size above which an archive is stored in an unnamed temporary file of the host."""


def pack_workspace(workspace: Workspace, excluded: Collection[str]) -> io.IOBase:
    """Pack the workspace without the paths *excluded* and everything below them; returns an open file."""
    spool = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # the caller closes it
    try:
        for chunk in _without(workspace.archive(), excluded):
            spool.write(chunk)
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    return cast(io.IOBase, spool)  # it is one since Python 3.11


def fingerprint(workspace: Workspace, excluded: Collection[str], *more: str) -> str:
    """A digest of the archive and the texts *more*."""
    digest = sha256("\0".join(more).encode())
    for chunk in _without(workspace.archive(), excluded):
        digest.update(chunk)
    return digest.hexdigest()


def _without(archive: Iterable[bytes], excluded: Collection[str]) -> Iterator[bytes]:
    """Copy a tar archive without the excluded members."""
    if not excluded:
        yield from archive
        return
    source = io.BufferedReader(_ChunkReader(iter(archive)))
    output = _ChunkWriter()
    with (
        tarfile.open(fileobj=source, mode="r|") as original,
        tarfile.open(fileobj=cast(IO[bytes], output), mode="w|", format=tarfile.PAX_FORMAT) as filtered,
    ):
        for member in original:
            if not _is_excluded(member.name, excluded):
                filtered.addfile(member, original.extractfile(member) if member.isreg() else None)
                yield from output.take()
    yield from output.take()


def _is_excluded(name: str, excluded: Collection[str]) -> bool:
    names = name.strip("/").split("/")
    return any("/".join(names[:count]) in excluded for count in range(1, len(names) + 1))


class _ChunkReader(io.RawIOBase):
    """A readable file over an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        """Fill *buffer* from the next chunk; return 0 at the end."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _ChunkWriter:
    """A write-only file that collects chunks."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def take(self) -> list[bytes]:
        """Return the chunks written since the last call."""
        chunks, self._chunks = self._chunks, []
        return chunks
