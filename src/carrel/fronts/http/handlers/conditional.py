"""Conditional and range requests: `Range`, `If-Match`, `If-None-Match` and `If-Range`."""

from __future__ import annotations

import re
from typing import NamedTuple

from carrel.errors import ChangedError, ExistsError, RequestError

_RANGE = re.compile(r"bytes=(\d{0,20})-(\d{0,20})", re.ASCII)
JSON_ETAG_SUFFIX = "-json"
"""Suffix of the entity tag of a file sent as JSON: the same version, but other bytes."""
_TAG = re.compile(r'(W/)?"([^"]*)"')


class ByteRange(NamedTuple):
    """A range of bytes."""

    offset: int
    length: int


class RangeNotSatisfiable(Exception):
    """The range begins beyond the end of the file."""


def parse_range(header: str | None, size: int) -> ByteRange | None:
    """Return the range of a `Range` header; `None` for the whole file, also if the header is malformed.

    Raises:
        RangeNotSatisfiable: The range begins beyond the end.
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
    return RangeNotSatisfiable(f"the range begins beyond the end of the file, which has {size} bytes")


def matches_if_none_match(header: str | None, version: str) -> bool:
    """Whether an `If-None-Match` header matches *version*."""
    if header is None:
        return False
    return header.strip() == "*" or any(tag == version for _, tag in _TAG.findall(header))


def matches_if_range(header: str, version: str) -> bool:
    """Whether an `If-Range` header matches *version*, by strong comparison."""
    return header.strip() == f'"{version}"'


def parse_if_match(header: str | None) -> str | None:
    """Return the version of an `If-Match` header; `*` for any version, `None` without a header.

    Raises:
        RequestError: The header is not a single version.
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
    """Whether an `If-None-Match` header requires that the file does not exist yet.

    Raises:
        RequestError: The header names a version, which only makes sense for reads.
    """
    if header is None:
        return False
    if header.strip() != "*":
        raise RequestError("If-None-Match of a write can only be *")
    return True


PRECONDITION_ERRORS = (ChangedError, ExistsError)
"""Errors that mean that a precondition of the request failed."""
