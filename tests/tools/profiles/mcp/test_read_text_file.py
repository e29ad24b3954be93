"""`read_text_file` and its older name `read_file`: the text of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said

BOTH = pytest.mark.parametrize("name", ["read_text_file", "read_file"])
CUT = "one\ntwo\n[Cut: the file has 26 bytes. Continue with offset 3, or use tail to read its last lines]"
LINES = "one\ntwo\nthree\nvier: grün\n"


@BOTH
def test_the_text_comes_as_it_stands_with_its_version(
    mcp: Toolbox, workspace: Workspace, directory: Path, name: str
) -> None:
    tree(directory, f"a.txt = {LINES}")
    answer = done(mcp, name, path="/workspace/a.txt")
    assert answer.output == LINES
    assert answer.metadata == {
        "path": "/workspace/a.txt",
        "size_bytes": len(LINES.encode()),
        "version": workspace.stat("a.txt").version,
    }


@BOTH
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"head": 1}, "one\n"),
        ({"head": 3}, "one\ntwo\nthree\n"),
        ({"head": 99}, LINES),
        ({"tail": 1}, "vier: grün\n"),
        ({"tail": 3}, "two\nthree\nvier: grün\n"),
        ({"tail": 99}, LINES),
        ({"head": None, "tail": None}, LINES),
    ],
)
def test_the_first_or_the_last_lines_come_alone(
    mcp: Toolbox, directory: Path, name: str, arguments: dict[str, int | None], text: str
) -> None:
    tree(directory, f"a.txt = {LINES}")
    answer = done(mcp, name, path="a.txt", **arguments)
    assert answer.output == text
    assert "truncated" not in answer.metadata


@BOTH
def test_both_ends_cannot_be_requested_together(mcp: Toolbox, directory: Path, name: str) -> None:
    tree(directory, f"a.txt = {LINES}")
    told = refused(mcp, name, "tool.arguments", path="a.txt", head=1, tail=1)
    assert "'head' and 'tail' cannot be given together" in told


@pytest.mark.parametrize("arguments", [{"head": 0}, {"tail": -1}, {"head": "2"}, {"tail": 1.5}])
def test_a_number_of_lines_is_a_whole_number(
    mcp: Toolbox, directory: Path, arguments: dict[str, object]
) -> None:
    tree(directory, f"a.txt = {LINES}")
    refused(mcp, "read_text_file", "tool.arguments", path="a.txt", **arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {},
            CUT,
        ),
        (
            {"head": 3},
            CUT,
        ),
        ({"head": 2}, "one\ntwo\n"),
        ({"tail": 1}, "vier: grün\n"),
        ({"tail": 2}, "[Cut: the file has 26 bytes. Use head to read its first lines]\nvier: grün\n"),
    ],
)
def test_what_is_too_long_is_cut_between_lines_and_says_so(
    workspace: Workspace, directory: Path, arguments: dict[str, int], text: str
) -> None:
    tree(directory, f"a.txt = {LINES}")
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=13)
    answer = done(mcp, "read_text_file", path="a.txt", **arguments)
    assert answer.output == text
    assert answer.metadata.get("truncated", False) is ("[Cut: " in text)


@BOTH
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"offset": 1}, LINES),
        ({"offset": 3}, "three\nvier: grün\n"),
        ({"offset": 2, "head": 1}, "two\n[These are lines 2 to 2 of 4. Continue with offset 3]"),
        ({"offset": 5}, "[The file has only 4 lines]"),
    ],
)
def test_the_lines_from_one_on_come_as_they_stand(
    mcp: Toolbox, directory: Path, name: str, arguments: dict[str, int], text: str
) -> None:
    tree(directory, f"a.txt = {LINES}")
    assert said(mcp, name, path="a.txt", **arguments) == text


def test_the_parts_of_a_text_that_is_too_long_make_the_whole_one(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, f"a.txt = {LINES}")
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=13)
    first = done(mcp, "read_text_file", path="a.txt", offset=1)
    assert first.text() == "one\ntwo\n[These are lines 1 to 2 of 4. Continue with offset 3]"
    assert first.metadata["truncated"]
    texts, offset = [first.output], first.metadata.get("next_offset")
    while offset is not None:
        part = done(mcp, "read_text_file", path="a.txt", offset=offset)
        texts.append(part.output)
        offset = part.metadata.get("next_offset")
    assert "".join(texts) == LINES


def test_lines_from_one_on_and_the_last_lines_cannot_be_requested_together(
    mcp: Toolbox, directory: Path
) -> None:
    tree(directory, f"a.txt = {LINES}")
    told = refused(mcp, "read_text_file", "tool.arguments", path="a.txt", offset=2, tail=1)
    assert "'offset' and 'tail' cannot be given together" in told


@pytest.mark.parametrize(("arguments", "text"), [({}, "世世"), ({"tail": 1}, "世世")])
def test_a_line_that_is_too_long_is_cut_between_characters(
    workspace: Workspace, directory: Path, arguments: dict[str, int], text: str
) -> None:
    tree(directory, "a.txt = 世世世")
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=8)
    answer = said(mcp, "read_text_file", path="a.txt", **arguments)
    assert text in answer.split("\n")


def test_a_file_that_just_fits_is_not_cut(workspace: Workspace, directory: Path) -> None:
    tree(directory, f"a.txt = {LINES}")
    size = len(LINES.encode())
    assert said(Toolbox(workspace, profile="mcp", answer_bytes=size), "read_file", path="a.txt") == LINES
    answer = done(Toolbox(workspace, profile="mcp", answer_bytes=size - 1), "read_file", path="a.txt")
    assert answer.metadata["truncated"]


def test_the_ceiling_of_a_read_cuts_as_well(directory: Path) -> None:
    tree(directory, f"a.txt = {LINES}")
    with Workspace.open(directory, limits=Limits(read_bytes=13)) as workspace:
        mcp = Toolbox(workspace, profile="mcp")
        assert said(mcp, "read_text_file", path="a.txt").startswith("one\ntwo\n[Cut: ")
        assert said(mcp, "read_text_file", path="a.txt", tail=1) == "vier: grün\n"


@BOTH
@pytest.mark.parametrize("content", [b"a\0b", b"gr\xfcn"])
def test_what_is_not_text_is_refused(mcp: Toolbox, directory: Path, name: str, content: bytes) -> None:
    (directory / "a.bin").write_bytes(content)
    told = refused(mcp, name, "text.encoding", path="a.bin")
    assert told.endswith(". Only text can be used here.")


def test_the_errors_name_the_path_and_the_tool_that_helps(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    told = refused(mcp, "read_text_file", "path.missing", path="none.txt")
    assert told == "File not found: none.txt. Use list_directory to see what is there."
    told = refused(mcp, "read_text_file", "path.is_directory", path="d")
    assert told == "Path is a directory, not a file: d. Use list_directory to see what is in it."
    told = refused(mcp, "read_text_file", "access.outside", path="/etc/passwd")
    assert told == "Reading /etc/passwd is not allowed. Use session workspace."
