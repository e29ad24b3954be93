"""Timestamps in results."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.tools.results.file_results import timestamp


@pytest.mark.parametrize(
    ("when_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_600_000_000_999_999_999, "2020-09-13T12:26:40.999Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (253_402_300_799 * 10**9, "9999-12-31T23:59:59.000Z"),
        (-62_135_596_800 * 10**9, "0001-01-01T00:00:00.000Z"),
        (253_402_300_800 * 10**9, None),
        (2**80, None),
        (None, None),
    ],
)
def test_a_moment_is_reported_in_utc_with_milliseconds(when_ns: int | None, text: str | None) -> None:
    assert timestamp(when_ns) == text


@given(when_ns=st.integers(-(2**60), 2**60))
def test_every_moment_of_a_disk_can_be_read_back(when_ns: int) -> None:
    text = timestamp(when_ns)
    assert text is not None
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo == UTC
    assert round(moment.timestamp() * 1000) == when_ns // 10**6
