"""Points in time as answers tell them."""

from __future__ import annotations

from carrel.shell.moment import SECOND_NS, utc


def timestamp(when_ns: int | None) -> str | None:
    """ISO 8601 in UTC with milliseconds; nothing for what is not known, or is in no calendar."""
    if when_ns is None:
        return None
    try:
        second = utc(when_ns)
    except OverflowError:
        return None
    # Not by `strftime`, which writes early years short.
    return f"{second.isoformat()[:19]}.{when_ns % SECOND_NS // 10**6:03}Z"
