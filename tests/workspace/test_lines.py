"""Windows of lines, also of files that do not fit into memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel import Limits, Workspace
from carrel.errors import LimitError, TextError
from carrel.workspace.text import line_window
from tests.requirements import requirement

TEN = "".join(f"Line {number}\n" for number in range(1, 11))


def lines_of(content: bytes) -> list[bytes]:
    """The lines of a content with their ends, which are line feeds and nothing else."""
    return [line for line in content.replace(b"\n", b"\n\0").split(b"\0") if line]


@requirement("R-12")
def test_a_window_holds_its_lines_and_no_others(workspace: Workspace) -> None:
    workspace.write("ten", TEN)
    window = workspace.read_lines("ten", start=4, count=3)
    assert window.text == "Line 4\nLine 5\nLine 6\n"
    assert (window.start, window.count, window.total_lines, window.next_start) == (4, 3, 10, 7)


def test_a_window_without_a_count_goes_to_the_end(workspace: Workspace) -> None:
    workspace.write("ten", TEN)
    window = workspace.read_lines("ten", start=8)
    assert window.text == "Line 8\nLine 9\nLine 10\n"
    assert (window.count, window.next_start) == (3, None)


@requirement("R-13")
@pytest.mark.parametrize("content", ["a\nb\nc\nd\ne\n", "a", ""])
def test_a_window_beyond_the_end_is_empty(workspace: Workspace, content: str) -> None:
    workspace.write("f", content)
    window = workspace.read_lines("f", start=100, count=5)
    assert (window.text, window.count, window.next_start) == ("", 0, None)
    assert window.total_lines == len(content.splitlines())


@requirement("R-14")
@pytest.mark.parametrize(
    "content", ["Hello\nWorld\n", "Hello\nWorld", "\n", "\n\n", "", "a\r\nb\r\n", "a\rb"]
)
def test_without_a_window_the_text_comes_back_as_it_is(workspace: Workspace, content: str) -> None:
    workspace.write("f", content)
    window = workspace.read_lines("f")
    assert window.text == content
    assert (window.start, window.next_start) == (1, None)
    assert window.count == window.total_lines == len(lines_of(content.encode()))


@requirement("R-15")
def test_a_window_says_how_many_lines_there_are(workspace: Workspace) -> None:
    workspace.write("twenty", TEN + TEN)
    window = workspace.read_lines("twenty", start=5, count=3)
    assert (window.total_lines, window.next_start) == (20, 8)


def test_windows_one_after_another_make_up_the_file(workspace: Workspace) -> None:
    content = "".join(f"{number}\r\n" for number in range(25)) + "the end"
    workspace.write("f", content)
    pieces: list[str] = []
    start: int | None = 1
    while start is not None:
        window = workspace.read_lines("f", start=start, count=4)
        pieces.append(window.text)
        start = window.next_start
    assert "".join(pieces) == content


def test_a_count_of_nothing_gives_nothing_but_the_total(workspace: Workspace) -> None:
    workspace.write("ten", TEN)
    window = workspace.read_lines("ten", start=3, count=0)
    assert (window.text, window.count, window.total_lines, window.next_start) == ("", 0, 10, None)


@pytest.mark.parametrize(("start", "count"), [(0, None), (-1, 1), (1, -1)])
def test_lines_are_counted_from_one(workspace: Workspace, start: int, count: int | None) -> None:
    workspace.write("f", "a\n")
    with pytest.raises(ValueError, match="starts at line 1"):
        workspace.read_lines("f", start=start, count=count)


@pytest.mark.parametrize(("encoding", "text"), [("latin-1", "Grüße\n"), ("base64", "R3L832UK")])
def test_a_window_is_decoded_as_asked(workspace: Workspace, encoding: str, text: str) -> None:
    workspace.write("f", b"first\nGr\xfc\xdfe\nlast\n")
    assert workspace.read_lines("f", start=2, count=1, encoding=encoding).text == text
    with pytest.raises(TextError, match="unable to decode 'f'"):
        workspace.read_lines("f", start=2, count=1)


def test_only_the_lines_asked_for_have_to_be_text(workspace: Workspace) -> None:
    workspace.write("f", b"\xff\xff\nplain\n\xfe\n")
    assert workspace.read_lines("f", start=2, count=1).text == "plain\n"


def test_a_window_of_a_file_beyond_the_limit_of_a_read_is_fine(directory: Path) -> None:
    (directory / "log").write_text("x" * 99 + "\n" + "short\n" * 1000)
    with Workspace.open(directory, limits=Limits(read_bytes=50)) as workspace:
        assert workspace.read_lines("log", start=500, count=2).text == "short\nshort\n"
        assert workspace.read_lines("log", start=500, count=2).total_lines == 1001


def test_a_window_larger_than_the_limit_of_a_read_says_the_limit(directory: Path) -> None:
    (directory / "log").write_text("x" * 99 + "\nshort\n")
    with Workspace.open(directory, limits=Limits(read_bytes=50)) as workspace:
        with pytest.raises(LimitError, match="50 bytes") as caught:
            workspace.read_lines("log", start=1, count=1)
        assert (caught.value.code, caught.value.limit) == ("limit.read_bytes", 50)
        assert caught.value.asked is not None
        assert caught.value.asked > 50
        assert workspace.read_lines("log", start=2).text == "short\n"


def test_a_line_that_never_ends_is_stopped_at_the_limit_not_at_its_end() -> None:
    seen = 0

    def endless() -> Iterator[bytes]:
        nonlocal seen
        while True:
            seen += 1
            yield b"x" * 1000

    with pytest.raises(LimitError):
        line_window(endless(), start=1, count=1, encoding="utf-8", limit=10_000, path="f")
    assert seen == 11


def chunked(content: bytes, sizes: list[int]) -> list[bytes]:
    """The content cut into pieces of these sizes, over and over."""
    chunks: list[bytes] = []
    at = turn = 0
    while at < len(content):
        size = sizes[turn % len(sizes)]
        chunks.append(content[at : at + size])
        at += size
        turn += 1
    return chunks


@given(
    content=st.lists(st.sampled_from(["\n", "\r\n", "\r", "a", "ä", "世", "bc", "\x0b", "\u2028", ""])).map(
        "".join
    ),
    start=st.integers(1, 12),
    count=st.none() | st.integers(0, 12),
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=4),
)
def test_a_window_is_a_slice_of_the_lines(
    content: str, start: int, count: int | None, sizes: list[int]
) -> None:
    raw = content.encode()
    lines = lines_of(raw)
    end = sys.maxsize if count is None else start - 1 + count
    wanted = lines[start - 1 : end]
    window = line_window(
        chunked(raw, sizes), start=start, count=count, encoding="utf-8", limit=None, path="f"
    )
    assert window.text.encode() == b"".join(wanted)
    assert window.count == len(wanted)
    assert window.total_lines == len(lines)
    assert window.start == start
    following = start + len(wanted)
    assert window.next_start == (following if wanted and following <= len(lines) else None)
