"""Content in chunks on its way into a file, checked against the size limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from carrel.errors import LimitError
from carrel.paths.parsed_path import ParsedPath

CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Announced:
    """Content of which the sender said beforehand how much it is."""

    pieces: Iterable[bytes]
    size_bytes: int | None
    """`None` if nothing was said."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)


class SourceError(Exception):
    """Carries an error of the caller's own iterator past the translation of host errors."""


def within(chunks: Iterable[bytes], limit: int | None, where: ParsedPath) -> Iterator[bytes]:
    """Pass *chunks* on as long as the file may grow.

    Raises:
        LimitError: They are more than *limit* bytes.
    """
    size = 0
    for chunk in chunks:
        size += len(chunk)
        require_size(size, limit, where)
        yield chunk


def require_size(size: int, limit: int | None, where: ParsedPath) -> None:
    """Refuse to make a file of *size* bytes.

    Raises:
        LimitError: It is more than *limit*.
    """
    if limit is not None and size > limit:
        raise LimitError(
            "file_bytes",
            limit=limit,
            asked=size,
            message=f"{where.requested!r} would be too large: {size} bytes, the limit is {limit}",
            path=where.requested,
        )


def guarded(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pass the chunks of a caller on; what its iterator raises comes as the cause of `SourceError`."""
    source = iter(chunks)
    while True:
        try:
            chunk = next(source)
        except StopIteration:
            return
        except Exception as error:
            raise SourceError from error
        yield chunk
