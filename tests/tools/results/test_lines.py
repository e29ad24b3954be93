"""Lines of an answer: as many as fit, each whole, and at least a part of the first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.tools.results.lines import fit_lines, numbered_line, one_line, split_lines
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement


def test_a_line_is_numbered_as_cat_does() -> None:
    assert numbered_line(7, "text") == "     7\ttext"


@pytest.mark.parametrize("name", ["a b.txt", "-rf", "grün", 'say "hi"', "tab\t"])
def test_a_name_stands_as_it_is(name: str) -> None:
    assert one_line(name) == name


def test_a_name_of_several_lines_is_a_text_of_json() -> None:
    assert one_line('grün\n"b"\r') == r'"grün\n\"b\"\r"'


@requirement("L-23")
@pytest.mark.parametrize(
    ("profile", "name", "arguments"),
    [
        ("editor", "str_replace_based_edit_tool", {"command": "view", "path": "."}),
        ("coding", "glob", {"pattern": "*"}),
        ("coding", "grep", {"pattern": "text"}),
        ("mcp", "list_directory", {"path": "."}),
        ("mcp", "list_directory_with_sizes", {"path": "."}),
        ("mcp", "search_files", {"path": ".", "pattern": "*"}),
    ],
)
def test_no_name_passes_for_another_entry(
    workspace: Workspace, profile: str, name: str, arguments: dict[str, object]
) -> None:
    workspace.write("a\n[FILE] b\n", "text")
    text = Toolbox(workspace, profile=profile).call(name, arguments).text()
    assert r"a\n[FILE] b\n" in text
    assert not any(line.startswith("[FILE] b") for line in text.split("\n"))


def test_all_lines_that_fit_are_kept() -> None:
    assert fit_lines(["one", "two"], 8) == ("one\ntwo", 2, False)


def test_a_line_that_does_not_fit_is_left_out_with_all_behind_it() -> None:
    assert fit_lines(["one", "three", "4"], 8) == ("one", 1, False)


def test_bytes_count_and_not_characters() -> None:
    assert fit_lines(["ab", "世界"], 9) == ("ab", 1, False)
    assert fit_lines(["ab", "世界"], 10) == ("ab\n世界", 2, False)


def test_of_a_first_line_that_is_too_long_a_part_is_kept_and_no_half_character() -> None:
    assert fit_lines(["世界"], 5) == ("世", 1, True)


def test_no_lines_are_none() -> None:
    assert fit_lines([], 5) == ("", 0, False)


@given(st.lists(st.text()), st.integers(1, 50))
def test_what_is_kept_is_never_more_than_was_allowed(lines: list[str], most: int) -> None:
    found = fit_lines([line.replace("\n", "") for line in lines], most)
    assert len(found.text.encode("utf-8", "surrogatepass")) <= most


@given(st.binary())
def test_the_lines_of_a_content_are_the_content(content: bytes) -> None:
    lines = split_lines(content)
    assert b"".join(lines) == content
    assert all(line.endswith(b"\n") for line in lines[:-1])
