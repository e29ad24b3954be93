"""Media types: of a file by its name, and preferences in an `Accept` header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from carrel.tools.results.media import media_type_by_name

_DEFAULT_TYPE = "application/octet-stream"
_TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    }
)
"""Text types besides `text/*`."""


def media_type(name: str) -> str:
    """Return the media type of a file called *name*."""
    return media_type_by_name(name) or _DEFAULT_TYPE


def is_text(kind: str) -> bool:
    """Whether the media type is textual."""
    return kind.startswith("text/") or kind in _TEXT_TYPES


@lru_cache(maxsize=1024)
def content_type(name: str) -> bytes:
    """Return the `Content-Type` header of a file called *name*."""
    kind = media_type(name)
    return f"{kind}; charset=utf-8".encode("ascii") if is_text(kind) else kind.encode("ascii")


_QUALITY = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)


def prefers(accept: str, wanted: str, others: Sequence[str]) -> bool:
    """Whether the `Accept` header *accept* prefers the media type *wanted* to all *others*."""
    ranges = _parse_accept(accept)
    return _quality(ranges, wanted) > max(_quality(ranges, other) for other in others)


def _parse_accept(accept: str) -> dict[str, float]:
    """Return the quality of each media range; malformed ones are ignored."""
    ranges: dict[str, float] = {}
    for text in accept.lower().split(","):
        media_range, *parameters = (part.strip() for part in text.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        if _QUALITY.fullmatch(quality):
            ranges[media_range] = max(float(quality), ranges.get(media_range, 0.0))
    return ranges


def _quality(ranges: dict[str, float], media_type: str) -> float:
    """Return the quality of the most specific range that contains *media_type*."""
    for media_range in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if media_range in ranges:
            return ranges[media_range]
    return 0.0
