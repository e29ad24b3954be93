"""The lines around a change, as they are now."""

from __future__ import annotations

from carrel.tools.results.text_diff import (
    MAX_SNIPPET_LINE_CHARACTERS,
    MAX_SNIPPET_LINES,
    snippet,
    surrounding_lines,
)
from carrel.workspace.edit import replace


def diff_of(content: str, old: str, new: str) -> str:
    """The diff of an edit."""
    return replace(content.encode(), old, new, replace_all=True, path="a").diff


def numbered(*lines: tuple[int, str]) -> str:
    """How lines are shown."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in lines)


def test_the_new_lines_come_with_those_around_them() -> None:
    content = "".join(f"line {number}\n" for number in range(1, 11))
    assert snippet(diff_of(content, "line 5\n", "new\nlines\n")) == numbered(
        (2, "line 2"),
        (3, "line 3"),
        (4, "line 4"),
        (5, "new"),
        (6, "lines"),
        (7, "line 6"),
        (8, "line 7"),
        (9, "line 8"),
    )


def test_places_that_are_far_apart_are_shown_apart() -> None:
    content = "x\n" + "\n".join("abcdefghij") + "\nx\n"
    shown = snippet(diff_of(content, "x", "y")).split("\n")
    assert shown[0] == numbered((1, "y"))
    assert shown[4] == "   ..."
    assert shown[-1] == numbered((12, "y"))


def test_a_file_that_holds_nothing_any_more_shows_nothing() -> None:
    assert snippet(diff_of("all\n", "all\n", "")) == ""


def test_lines_that_look_like_a_diff_are_lines() -> None:
    assert snippet(diff_of("a\n@@ -1 +9 @@\n+++ b\n", "a", "b")) == numbered(
        (1, "b"), (2, "@@ -1 +9 @@"), (3, "+++ b")
    )


def test_much_is_cut() -> None:
    shown = snippet(diff_of("a\n", "a", "\n".join("b" * 1000))).split("\n")
    assert len(shown) == MAX_SNIPPET_LINES + 1
    assert shown[-1] == "   ..."


def test_a_long_line_is_cut() -> None:
    shown = snippet(diff_of("a\n", "a", "b" * 1000))
    assert shown == numbered((1, "b" * MAX_SNIPPET_LINE_CHARACTERS + "..."))


def test_surroundings_begin_and_end_with_the_file() -> None:
    assert surrounding_lines(b"a\r\nb\nc", 1, 1) == numbered((1, "a"), (2, "b"), (3, "c"))


def test_surroundings_of_much_are_cut() -> None:
    shown = surrounding_lines(b"x\n" * 200, 10, 100).split("\n")
    assert len(shown) == MAX_SNIPPET_LINES + 1
    assert (shown[0], shown[-1]) == (numbered((8, "x")), "   ...")
