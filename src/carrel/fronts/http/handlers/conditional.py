"""Conditional and range requests: `Range`, `If-Match`, `If-None-Match` and `If-Range`."""

from __future__ import annotations

import re
from typing import NamedTuple

from carrel.errors import ChangedError, ExistsError, RequestError

_RANGE = re.compile(r"bytes=(\d{0,20})-(\d{0,20})", re.ASCII)
JSON_ETAG_SUFFIX = "-json"
"""Ends the tag of a file in JSON, which is of the same version as its bytes but not the same to the byte."""
_TAG = re.compile(r'(W/)?"([^"]*)"')


class ByteRange(NamedTuple):
    """A part of a file."""

    offset: int
    length: int


class RangeNotSatisfiable(Exception):
    """The file has no such part."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """The part that a `Range` header asks for; `None` for the whole, also where it makes no sense.

    Raises:
        UnsatisfiableError: It begins beyond the end.
    """
    match = None if header is None else _RANGE.fullmatch(header.strip().lower())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        length = min(int(match[2]), size)
        if not length:
            raise _unsatisfiable(size)
        return ByteRange(size - length, length)
    first = int(match[1])
    last = min(int(match[2]) if match[2] else size - 1, size - 1)
    if match[2] and int(match[2]) < first:
        return None
    if first >= size:
        raise _unsatisfiable(size)
    return ByteRange(first, last - first + 1)


def _unsatisfiable(size: int) -> RangeNotSatisfiable:
    return RangeNotSatisfiable(f"the range begins beyond the end: there are {size} bytes")


def matches_if_none_match(header: str | None, version: str) -> bool:
    """Whether an `If-None-Match` header names *version*, or any."""
    if header is None:
        return False
    return header.strip() == "*" or any(tag == version for _, tag in _TAG.findall(header))


def matches_if_range(header: str, version: str) -> bool:
    """Whether an `If-Range` header is *version*, to the byte."""
    return header.strip() == f'"{version}"'


def parse_if_match(header: str | None) -> str | None:
    """The version that an `If-Match` header demands; `*` for any, `None` if it demands nothing.

    Raises:
        RequestError: It is no single version.
    """
    if header is None:
        return None
    header = header.strip()
    if header == "*":
        return header
    match = _TAG.fullmatch(header)
    if match is None or match[1] or match[2] == "*":
        raise RequestError('If-Match must be one version, as in: "1a-2b-3c"')
    return match[2].removesuffix(JSON_ETAG_SUFFIX)


def requires_absence(header: str | None) -> bool:
    """Whether an `If-None-Match` header demands that there is nothing yet.

    Raises:
        RequestError: It names a version, which means nothing for a change.
    """
    if header is None:
        return False
    if header.strip() != "*":
        raise RequestError("If-None-Match of a change can only be *")
    return True


PRECONDITION_ERRORS = (ChangedError, ExistsError)
"""What the errors are when something demanded of a file does not hold."""
