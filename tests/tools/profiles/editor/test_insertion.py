"""Lines put between those of a file."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.tools.profiles.editor import insert_lines
from carrel.tools.results.lines import split_lines


@pytest.mark.parametrize(
    ("content", "after", "text", "result"),
    [
        (b"a\nb\n", 0, b"x", b"x\na\nb\n"),
        (b"a\nb\n", 1, b"x\n", b"a\nx\nb\n"),
        (b"a\nb\n", 2, b"x", b"a\nb\nx\n"),
        (b"a\nb\n", 1, b"x\ny", b"a\nx\ny\nb\n"),
        (b"a\nb\n", 1, b"", b"a\n\nb\n"),
        (b"", 0, b"x", b"x\n"),
    ],
)
def test_the_text_becomes_lines_of_its_own(content: bytes, after: int, text: bytes, result: bytes) -> None:
    assert insert_lines(content, after, text) == result


def test_behind_a_last_line_without_end_a_line_begins_and_none_is_ended() -> None:
    assert insert_lines(b"a\nb", 2, b"x") == b"a\nb\nx"
    assert insert_lines(b"a\nb", 2, b"x\n") == b"a\nb\nx\n"


def test_the_line_ends_are_those_of_the_file() -> None:
    assert insert_lines(b"a\r\nb\r\n", 1, b"x\ny") == b"a\r\nx\r\ny\r\nb\r\n"
    assert insert_lines(b"a\r\nb\n", 1, b"x") == b"a\r\nx\nb\n"
    assert insert_lines(b"a\r\nb", 2, b"x") == b"a\r\nb\r\nx"


@given(st.lists(st.binary()), st.binary(), st.data())
def test_all_lines_that_were_there_stay_whole_and_in_order(
    rows: list[bytes], text: bytes, data: st.DataObject
) -> None:
    content = b"".join(row.replace(b"\n", b"") + b"\n" for row in rows)
    lines = split_lines(content)
    after = data.draw(st.integers(0, len(lines)))
    found = split_lines(insert_lines(content, after, text))
    assert found[:after] == lines[:after]
    assert found[len(found) - len(lines) + after :] == lines[after:]


def test_many_lines_take_no_memory_each() -> None:
    content = b"\n" * 500_000
    tracemalloc.start()
    try:
        assert insert_lines(content, 400_000, b"x") == content[:400_000] + b"x\n" + content[400_000:]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(content)
