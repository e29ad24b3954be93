"""Decompress a stream in pieces of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from carrel.errors import ArchiveError

PIECE_BYTES = 2**18
"""Maximum number of bytes that are expanded at once."""
WINDOW_BYTES = 2**27
"""Maximum memory of one xz stream in bytes."""

GZIP = 16 + zlib.MAX_WBITS
RAW = -zlib.MAX_WBITS


class Decompressor(Protocol):
    """The interface of the decompressors of `bz2` and `lzma`."""

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether all input has been expanded."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Input after the end of the stream."""
        ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Expand pending input and *data* to at most *max_length* bytes."""
        ...


class Inflater:
    """`zlib` with the interface of the other decompressors."""

    def __init__(self, window_bits: int) -> None:
        self._engine = zlib.decompressobj(window_bits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def unused_data(self) -> bytes:
        return self._engine.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._engine.decompress(self._engine.unconsumed_tail + data, max_length)
        # A full result may mean that output is pending although all input was consumed.
        self.needs_input = not self._engine.unconsumed_tail and len(found) < max_length
        return found


def bzip2_decompressor() -> Decompressor:
    """Create a decompressor for one bzip2 stream."""
    import bz2

    return bz2.BZ2Decompressor()


def xz_decompressor() -> Decompressor:
    """Create a decompressor for one xz stream."""
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=WINDOW_BYTES)


def decompressed(pieces: Iterable[bytes], start: Callable[[], Decompressor]) -> Iterator[bytes]:
    """Yield the expanded *pieces*; *start* creates a decompressor for each stream in them.

    Raises:
        ArchiveError: They are corrupt or incomplete.
    """
    engine = start()
    for piece in pieces:
        data = piece
        while data or not (engine.eof or engine.needs_input):
            if engine.eof:
                engine = start()
            found = _expand(engine, data)
            data = engine.unused_data if engine.eof else b""
            if found:
                yield found
    if not engine.eof:
        raise ArchiveError("the archive ends too early: its compressed data is incomplete")


def _expand(engine: Decompressor, data: bytes) -> bytes:
    try:
        return engine.decompress(data, PIECE_BYTES)
    except Exception:
        # `zlib.error`, `lzma.LZMAError`, `OSError` of bz2 and the like all mean the same here.
        problem = "the compressed data of the archive is corrupt, or needs too much memory"
    raise ArchiveError(problem)
