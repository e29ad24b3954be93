"""The `Accept` header: which of several forms of an answer a client prefers."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUALITY = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?", re.ASCII)


def prefers(accept: str, wanted: str, others: Sequence[str]) -> bool:
    """Whether a client that sends *accept* wants the media type *wanted* more than any of *others*."""
    ranges = _parse(accept)
    return _quality(ranges, wanted) > max(_quality(ranges, other) for other in others)


def _parse(accept: str) -> dict[str, float]:
    """The quality of each media range; what is malformed does not count."""
    ranges: dict[str, float] = {}
    for text in accept.lower().split(","):
        media_range, *parameters = (part.strip() for part in text.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        if _QUALITY.fullmatch(quality):
            ranges[media_range] = max(float(quality), ranges.get(media_range, 0.0))
    return ranges


def _quality(ranges: dict[str, float], media_type: str) -> float:
    """How much *media_type* is wanted: by the most specific range that it is in."""
    for media_range in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if media_range in ranges:
            return ranges[media_range]
    return 0.0
