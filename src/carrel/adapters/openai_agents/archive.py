"""A whole workspace as one tar archive without excluded paths, and its fingerprint."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import IO, cast

from carrel.workspace.workspace import Workspace

IN_MEMORY_BYTES = 2**24
"""What is larger lies in a temporary file of the host, without a name."""


def pack_workspace(workspace: Workspace, left_out: Collection[str]) -> io.IOBase:
    """The archive, to be read from its beginning, without the paths *left_out* and what is beneath them."""
    spool = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115  # is handed on, and closed there
    try:
        for piece in _kept(workspace.archive(), left_out):
            spool.write(piece)
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    return cast(io.IOBase, spool)  # it is one since Python 3.11


def fingerprint(workspace: Workspace, left_out: Collection[str], *more: str) -> str:
    """A mark that differs when anything of the archive does, or one of *more*."""
    digest = sha256("\0".join(more).encode())
    for piece in _kept(workspace.archive(), left_out):
        digest.update(piece)
    return digest.hexdigest()


def _kept(pieces: Iterable[bytes], left_out: Collection[str]) -> Iterator[bytes]:
    """The same archive without some members."""
    if not left_out:
        yield from pieces
        return
    source = io.BufferedReader(_Pieces(iter(pieces)))
    written = _Written()
    with (
        tarfile.open(fileobj=source, mode="r|") as whole,
        tarfile.open(fileobj=cast(IO[bytes], written), mode="w|", format=tarfile.PAX_FORMAT) as kept,
    ):
        for member in whole:
            if not _is_in(member.name, left_out):
                kept.addfile(member, whole.extractfile(member) if member.isreg() else None)
                yield from written.taken()
    yield from written.taken()


def _is_in(name: str, places: Collection[str]) -> bool:
    names = name.strip("/").split("/")
    return any("/".join(names[:count]) in places for count in range(1, len(names) + 1))


class _Pieces(io.RawIOBase):
    """What comes in pieces, as an open file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        """Fill *buffer* from the next piece; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


class _Written:
    """A file that is only written to, and hands over what was."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def taken(self) -> list[bytes]:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces
