"""Parts of files, and conditions about versions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from carrel.fronts.http.handlers.conditional import RangeNotSatisfiable, parse_range

NUMBERS = st.integers(0, 50)


@given(NUMBERS, st.one_of(NUMBERS, st.none()), st.one_of(NUMBERS, st.none()))
def test_a_range_is_what_a_slice_would_be(size: int, first: int | None, last: int | None) -> None:
    content = bytes(range(size))
    header = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    if first is None:
        wanted = None if last is None else content[-last:] if last else b""
    elif last is None or last >= first:
        wanted = content[first : None if last is None else last + 1]
    else:
        wanted = None
    try:
        window = parse_range(header, size)
    except RangeNotSatisfiable:
        assert wanted == b""
        return
    if wanted is None:
        assert window is None
    else:
        assert window is not None
        assert content[window.offset : window.offset + window.length] == wanted != b""


@given(st.text(), NUMBERS)
def test_any_header_is_a_range_or_none(header: str, size: int) -> None:
    try:
        window = parse_range(header, size)
    except RangeNotSatisfiable:
        return
    assert window is None or 0 <= window.offset < window.offset + window.length <= size
