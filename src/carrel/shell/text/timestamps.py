"""Parse and render timestamps, always in UTC, as `touch`, `ls`, `stat` and `find` do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SECOND_NS = 10**9
DAY_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_SECONDS = re.compile(r"@(-?[0-9]{1,18})(?:[.,]([0-9]+))?")
_ISO = re.compile(
    r"(?:([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})|([0-9]{4})([0-9]{2})([0-9]{2}))"
    r"(?:(?:T|\s+)([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?)?"
    r"\s*(Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_RELATIVE = re.compile(r"([+-]?[0-9]{1,9})\s*(sec|second|min|minute|hour|day|week)s?(\s+ago)?", re.IGNORECASE)
_UNITS = {"sec": 1, "second": 1, "min": 60, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_NAMED = {"now": 0, "today": 0, "yesterday": -DAY_SECONDS, "tomorrow": DAY_SECONDS}
_STAMP = re.compile(
    r"(?:([0-9]{2})?([0-9]{2}))?([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{2}))?", re.ASCII
)


def utc_datetime(when_ns: int) -> datetime:
    """Return the time of *when_ns*, rounded down to the second.

    Raises:
        OverflowError: The year is out of range.
    """
    return _EPOCH + timedelta(seconds=when_ns // SECOND_NS)


def parse_date(text: str, now_ns: int) -> int:
    """Parse a date of `touch -d` to nanoseconds: ISO 8601, `@SECONDS`, a time of today, `2 days ago`.

    Raises:
        ValueError: The text has none of these forms.
    """
    text = text.strip()
    if match := _SECONDS.fullmatch(text):
        nanoseconds = abs(int(match[1])) * SECOND_NS + _fraction_ns(match[2])
        return -nanoseconds if match[1].startswith("-") else nanoseconds
    if match := _ISO.fullmatch(text):
        return _parse_iso(match)
    if match := _CLOCK.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in match.groups())
        return _to_ns(utc_datetime(now_ns).replace(hour=hour, minute=minute, second=second))
    if text.lower() in _NAMED:
        return now_ns + _NAMED[text.lower()] * SECOND_NS
    if match := _RELATIVE.fullmatch(text):
        seconds = int(match[1]) * _UNITS[match[2].lower()]
        return now_ns + (-seconds if match[3] else seconds) * SECOND_NS
    raise ValueError(text)


def _parse_iso(match: re.Match[str]) -> int:
    date = match.groups()[:3] if match[1] else match.groups()[3:6]
    year, month, day = (int(part) for part in date if part is not None)
    hour, minute, second = (int(part or 0) for part in match.groups()[6:9])
    when = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _parse_offset(match[11])
    return _to_ns(when) + _fraction_ns(match[10])


def _parse_offset(zone: str | None) -> timedelta:
    if zone is None or zone[0] not in "+-":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -offset if zone[0] == "-" else offset


def _fraction_ns(digits: str | None) -> int:
    return int((digits or "0")[:9].ljust(9, "0"))


def _to_ns(when: datetime) -> int:
    return int((when - _EPOCH).total_seconds()) * SECOND_NS


def parse_stamp(text: str, now_ns: int) -> int:
    """Parse a time of `touch -t`, `[[CC]YY]MMDDhhmm[.ss]`, to nanoseconds.

    Raises:
        ValueError: The text has another form.
    """
    match = _STAMP.fullmatch(text)
    if match is None:
        raise ValueError(text)
    century, short, *rest, second = match.groups()
    year = utc_datetime(now_ns).year
    if short:
        year = int(century or ("19" if int(short) >= 69 else "20")) * 100 + int(short)
    month, day, hour, minute = (int(part) for part in rest)
    return _to_ns(datetime(year, month, day, hour, minute, int(second or 0), tzinfo=UTC))


def render_full_timestamp(when_ns: int) -> str:
    """Render a timestamp as `stat` and `ls --full-time` do."""
    try:
        return f"{utc_datetime(when_ns):%Y-%m-%d %H:%M:%S}.{when_ns % SECOND_NS:09d} +0000"
    except OverflowError:
        return str(when_ns // SECOND_NS)


@lru_cache(maxsize=256)
def render_timestamp(template: str, when_ns: int) -> str:
    """Render a timestamp with the directives of `date`; unknown directives stay as they are."""
    try:
        when = utc_datetime(when_ns)
    except OverflowError:
        return str(when_ns // SECOND_NS)
    return _DIRECTIVE.sub(lambda match: _render_directive(match[1], when, when_ns), template)


def _render_directive(letter: str, when: datetime, when_ns: int) -> str:
    if letter in _COMPOUND:
        return render_timestamp(_COMPOUND[letter], when_ns)
    if letter in _FROM_NANOSECONDS:
        return _FROM_NANOSECONDS[letter](when_ns)
    render = _FROM_DATETIME.get(letter)
    return f"%{letter}" if render is None else render(when)


_DIRECTIVE = re.compile(r"%(.)", re.DOTALL)
_COMPOUND = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "c": "%a %b %e %H:%M:%S %Y",
             "x": "%m/%d/%y", "X": "%H:%M:%S", "r": "%I:%M:%S %p"}  # fmt: skip
_FROM_NANOSECONDS: dict[str, Callable[[int], str]] = {
    "s": lambda when_ns: str(when_ns // SECOND_NS),
    "N": lambda when_ns: f"{when_ns % SECOND_NS:09d}",
}
_FROM_DATETIME: dict[str, Callable[[datetime], str]] = {
    "Y": lambda when: str(when.year),
    "y": lambda when: f"{when.year % 100:02d}",
    "m": lambda when: f"{when.month:02d}",
    "d": lambda when: f"{when.day:02d}",
    "e": lambda when: f"{when.day:2d}",
    "H": lambda when: f"{when.hour:02d}",
    "k": lambda when: f"{when.hour:2d}",
    "I": lambda when: f"{when.hour % 12 or 12:02d}",
    "l": lambda when: f"{when.hour % 12 or 12:2d}",
    "M": lambda when: f"{when.minute:02d}",
    "S": lambda when: f"{when.second:02d}",
    "b": lambda when: _MONTHS[when.month - 1][:3],
    "h": lambda when: _MONTHS[when.month - 1][:3],
    "B": lambda when: _MONTHS[when.month - 1],
    "a": lambda when: _DAYS[when.weekday()][:3],
    "A": lambda when: _DAYS[when.weekday()],
    "p": lambda when: "AM" if when.hour < 12 else "PM",
    "j": lambda when: f"{when.timetuple().tm_yday:03d}",
    "u": lambda when: str(when.isoweekday()),
    "w": lambda when: str(when.isoweekday() % 7),
    "Z": lambda when: "UTC",
    "z": lambda when: "+0000",
    "n": lambda when: "\n",
    "t": lambda when: "\t",
    "%": lambda when: "%",
}
