"""Content in chunks on its way to a file, checked against the size limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from carrel.errors import LimitError
from carrel.paths.parsed_path import ParsedPath

CHUNK_BYTES = 2**20
"""Default size of a chunk in bytes."""


@dataclass(frozen=True, slots=True)
class Announced:
    """Content whose sender announced its size."""

    pieces: Iterable[bytes]
    size_bytes: int | None
    """The announced size; `None` if there was none."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


class SourceError(Exception):
    """Carries an error of the caller's iterator past the translation of host errors."""


def within(chunks: Iterable[bytes], limit: int | None, path: ParsedPath) -> Iterator[bytes]:
    """Yield *chunks* up to *limit* bytes.

    Raises:
        LimitError: They are larger.
    """
    size = 0
    for chunk in chunks:
        size += len(chunk)
        require_size(size, limit, path)
        yield chunk


def require_size(size: int, limit: int | None, path: ParsedPath) -> None:
    """Refuse a file of more than *limit* bytes.

    Raises:
        LimitError: *size* is larger.
    """
    if limit is not None and size > limit:
        raise LimitError(
            "file_bytes",
            limit=limit,
            asked=size,
            message=f"{path.requested!r} would be too large: {size} bytes, the limit is {limit}",
            path=path.requested,
        )


def guarded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a caller; an error of its iterator becomes the cause of a `SourceError`."""
    source = iter(chunks)
    while True:
        try:
            chunk = next(source)
        except StopIteration:
            return
        except Exception as error:
            raise SourceError from error
        yield chunk
