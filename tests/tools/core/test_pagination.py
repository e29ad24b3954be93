"""Answers that are too long: the parts are whole, and joined they are everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import ChangedError, ToolError
from carrel.tools.core.pagination import Cursor, cut_text


@pytest.mark.parametrize("cursor", [Cursor(0), Cursor(7), Cursor(7, "5-1-2"), Cursor(10**17, "a@b")])
def test_a_cursor_that_was_reported_is_understood(cursor: Cursor) -> None:
    assert Cursor.parse(cursor.render()) == cursor


def test_without_a_cursor_an_answer_begins_at_the_beginning() -> None:
    assert Cursor.parse(None) == Cursor(0)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "x", "@v", " 1", "１", "9" * 19, "9" * 10_000, "\ud800"])
def test_any_other_cursor_is_refused(text: str) -> None:
    with pytest.raises(ToolError) as caught:
        Cursor.parse(text)
    assert caught.value.code == "tool.arguments"
    assert len(caught.value.message) < 200


def test_a_cursor_continues_only_in_the_version_that_was_begun() -> None:
    Cursor(7, "1").require("1", "a.txt")
    Cursor(7).require("1", "a.txt")
    with pytest.raises(ChangedError) as caught:
        Cursor(7, "1").require("2", "a.txt")
    assert caught.value.path == "a.txt"


@pytest.mark.parametrize(
    ("data", "most", "size"),
    [
        (b"", 10, 0),
        (b"short", 5, 5),
        (b"one\ntwo\nthree\n", 10, 8),
        (b"one\ntwo\nthree\n", 8, 8),
        (b"one line only", 5, 5),
        ("aé".encode(), 2, 1),
        ("€uro".encode(), 1, 3),
        (b"\xe2" + b"\x80" * 9, 1, 4),
        (b"\x00\x80\x80", 1, 1),
        (b"\x80" * 9, 3, 3),
        (b"line\n" + b"x" * 40_000, 30_000, 30_000),
    ],
)
def test_whole_lines_are_given_if_there_are_any_and_else_whole_characters(
    data: bytes, most: int, size: int
) -> None:
    assert cut_text(data, most) == size


@given(text=st.text("aé€😀\n", max_size=60), most=st.integers(1, 20))
def test_the_parts_are_texts_and_together_the_whole(text: str, most: int) -> None:
    rest, parts = text.encode(), []
    while rest:
        size = cut_text(rest, most)
        assert 0 < size <= max(most, 4)
        parts.append(rest[:size].decode())
        rest = rest[size:]
    assert "".join(parts) == text
