"""Long outputs are given in parts that make up the whole, and are kept within bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import CarrelError, ToolError
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.pagination import KeptOutput, OutputPage, OutputStore


def output(asked: str = "asked", **streams: bytes) -> KeptOutput:
    """What printed *streams*."""
    return KeptOutput(source=asked, streams=streams, success=True, error=None, metadata={})


def parts(outputs: OutputStore, whole: KeptOutput, most_bytes: int) -> list[OutputPage]:
    """All parts of an output, from its first to its last."""
    found = [outputs.first_page(whole, most_bytes, most_bytes).page]
    while (cursor := found[-1].next_cursor) is not None:
        part = outputs.next_page(cursor, whole.source, most_bytes, most_bytes).page
        assert part.output is whole
        assert part.left_bytes < found[-1].left_bytes
        found.append(part)
    return found


@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(8, 100))
def test_no_bytes_are_lost_or_reported_twice(stdout: bytes, stderr: bytes, most_bytes: int) -> None:
    found = parts(OutputStore(), output(stdout=stdout, stderr=stderr), most_bytes)
    assert found[-1].left_bytes == 0
    assert (len(found) == 1) == (len(stdout + stderr) <= most_bytes)


@given(st.text(max_size=200), st.text(max_size=200), st.integers(8, 100))
def test_texts_are_cut_between_characters(stdout: str, stderr: str, most_bytes: int) -> None:
    whole = output(stdout=stdout.encode(), stderr=stderr.encode())
    found = parts(OutputStore(), whole, most_bytes)
    assert "".join(part.texts["stdout"] for part in found) == stdout
    assert "".join(part.texts["stderr"] for part in found) == stderr
    assert all(sum(len(text.encode()) for text in part.texts.values()) <= most_bytes for part in found)


def test_what_one_stream_does_not_need_goes_to_the_other() -> None:
    first = OutputStore().first_page(output(stdout=b"a" * 100, stderr=b"b" * 10), 60, 60).page
    assert first.texts == {"stdout": "a" * 50, "stderr": "b" * 10}
    first = OutputStore().first_page(output(stdout=b"a" * 100, stderr=b"b" * 100), 60, 60).page
    assert first.texts == {"stdout": "a" * 30, "stderr": "b" * 30}
    first = OutputStore().first_page(output(stdout=b"", stderr=b"b" * 100), 60, 60).page
    assert first.texts == {"stdout": "", "stderr": "b" * 60}


def test_a_stream_of_which_nothing_fits_comes_later() -> None:
    found = parts(OutputStore(), output(stdout=b"abc", stderr=b"x"), 1)
    assert [(part.texts["stdout"], part.texts["stderr"]) for part in found] == [
        ("", "x"),
        ("a", ""),
        ("b", ""),
        ("c", ""),
    ]


def test_an_output_that_fits_is_not_kept() -> None:
    outputs = OutputStore(max_outputs=1)
    cursor = outputs.first_page(output(text=b"x" * 20), 10, 10).page.next_cursor
    assert cursor is not None
    assert outputs.first_page(output("other", text=b"x" * 10), 10, 10).page.next_cursor is None
    assert outputs.next_page(cursor, "asked", 10, 10).page.texts == {"text": "x" * 10}


def cursor_of(outputs: OutputStore, asked: str, size: int) -> str:
    """The cursor of an output that is too long."""
    cursor = outputs.first_page(output(asked, text=b"x" * size), 10, 10).page.next_cursor
    assert cursor is not None
    return cursor


def is_kept(outputs: OutputStore, asked: str, cursor: str) -> bool:
    """Whether the rest is to be had."""
    try:
        outputs.next_page(cursor, asked, 10, 10)
    except AdvisedError:
        return False
    return True


def test_an_output_that_is_no_longer_kept_is_reported() -> None:
    outputs = OutputStore(max_outputs=1)
    cursor = cursor_of(outputs, "1", 20)
    cursor_of(outputs, "2", 20)
    with pytest.raises(AdvisedError, match=r"^The rest of this output is no longer kept$") as caught:
        outputs.next_page(cursor, "1", 10, 10)
    assert (caught.value.code, caught.value.next) == (
        "tool.cursor",
        "Run it again, and let it print less at once.",
    )


def test_the_least_recently_used_output_is_dropped_first() -> None:
    outputs = OutputStore(max_outputs=2)
    one, two = (cursor_of(outputs, asked, 20) for asked in ("1", "2"))
    assert is_kept(outputs, "1", one)
    three = cursor_of(outputs, "3", 20)
    assert [is_kept(outputs, *each) for each in (("1", one), ("2", two), ("3", three))] == [True, False, True]


def test_no_more_bytes_are_kept_than_may_be() -> None:
    outputs = OutputStore(max_bytes=100)
    small = cursor_of(outputs, "small", 60)
    other = cursor_of(outputs, "other", 40)
    assert is_kept(outputs, "small", small)
    assert is_kept(outputs, "other", other)
    large = cursor_of(outputs, "large", 500)
    assert not is_kept(outputs, "small", small)
    assert not is_kept(outputs, "other", other)
    # The last one is kept in any case, or its own cursor would never do.
    assert is_kept(outputs, "large", large)
    cursor_of(outputs, "small", 60)
    assert not is_kept(outputs, "large", large)


def test_the_same_output_is_kept_once() -> None:
    outputs = OutputStore(max_outputs=2)
    one = cursor_of(outputs, "1", 20)
    two = cursor_of(outputs, "2", 20)
    assert cursor_of(outputs, "2", 20) == two
    assert is_kept(outputs, "1", one)


@pytest.mark.parametrize("change", [lambda c: c + ".1", lambda c: c.partition(".")[0], lambda c: c + "x"])
def test_a_cursor_that_was_never_given_is_reported(change: object) -> None:
    outputs = OutputStore()
    cursor = cursor_of(outputs, "asked", 20)
    assert callable(change)
    with pytest.raises(ToolError, match="does not come from a result") as caught:
        outputs.next_page(change(cursor), "asked", 10, 10)
    assert caught.value.code == "tool.arguments"


def test_a_cursor_of_something_else_is_reported() -> None:
    outputs = OutputStore()
    with pytest.raises(ToolError, match="belongs to another call"):
        outputs.next_page(cursor_of(outputs, "asked", 20), "other", 10, 10)


@given(st.text())
def test_no_text_is_a_cursor_by_chance(text: str) -> None:
    outputs = OutputStore()
    cursor_of(outputs, "asked", 20)
    with pytest.raises(CarrelError):
        outputs.next_page(text, "asked", 10, 10)


def test_a_position_beyond_the_end_gives_nothing() -> None:
    outputs = OutputStore()
    cursor = cursor_of(outputs, "asked", 20).replace(".10", ".999999")
    page = outputs.next_page(cursor, "asked", 10, 10).page
    assert (page.texts, page.next_cursor, page.left_bytes) == ({"text": ""}, None, 0)
