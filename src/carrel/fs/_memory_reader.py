"""A file in memory, open to be read."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from carrel.fs._memory_tree import File
from carrel.values import FileInfo


class MemoryReader:
    """An open file, read by chunks; it outlives the name and the workspace."""

    def __init__(self, file: File, info: FileInfo, lock: RLock) -> None:
        self._file = file
        self._lock = lock
        self._at = 0
        self.info = info

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """The content from *offset* on, at most *chunk_bytes* at a time."""
        self._at += offset
        while piece := self._read(chunk_bytes):
            yield piece

    def read(self, length: int, offset: int = 0) -> bytes:
        """So much of the content from *offset* on, or what there is of it."""
        with self._lock:
            return bytes(self._file.content[offset : offset + length])

    def _read(self, count: int) -> bytes:
        with self._lock:
            piece = bytes(self._file.content[self._at : self._at + count])
            self._at += len(piece)
            return piece
