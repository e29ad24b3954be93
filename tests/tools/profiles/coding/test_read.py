"""`read`: the lines of a file with their numbers."""

from __future__ import annotations

import base64
from pathlib import Path

from carrel import Limits
from carrel.testing.tree import tree
from carrel.tools.operations.reading import MAX_VIEW_LINES
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def test_lines_come_numbered_with_the_version_of_the_file(
    coding: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt = one\ntwo")
    answer = done(coding, "read", file_path="a.txt")
    assert answer.output == "     1\tone\n     2\ttwo"
    assert answer.metadata["version"] == workspace.stat("a.txt").version


def test_a_range_is_read(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one\ntwo\nthree\n")
    assert said(coding, "read", file_path="/workspace/a.txt", view_range=[2, 2]) == "     2\ttwo"
    assert said(coding, "read", file_path="a.txt", view_range=[3, -1]) == "     3\tthree"


def test_what_is_missing_is_reported_with_the_tool_that_helps(coding: Toolbox) -> None:
    told = refused(coding, "read", "path.missing", file_path="none.txt")
    assert told == "File not found: none.txt. Use glob to see what is there."


def test_a_directory_is_not_read(coding: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    told = refused(coding, "read", "path.is_directory", file_path="d")
    assert told == "Path is a directory, not a file: d. Use glob to see what is in it."


def test_what_is_not_text_comes_as_base64(coding: Toolbox, directory: Path) -> None:
    (directory / "a.bin").write_bytes(b"a\0b")
    answer = done(coding, "read", file_path="a.bin")
    assert base64.b64decode(answer.output) == b"a\0b"
    assert answer.text().endswith(": application/octet-stream, 3 bytes. It is not text]")
    assert (answer.metadata["encoding"], answer.metadata["media_type"]) == (
        "base64",
        "application/octet-stream",
    )


def test_a_binary_file_that_is_too_large_is_refused_and_not_cut(
    workspace: Workspace, directory: Path
) -> None:
    (directory / "a.bin").write_bytes(bytes(11))
    coding = Toolbox(workspace, profile="coding", max_file_size=10)
    told = refused(coding, "read", "limit.read_bytes", file_path="a.bin")
    assert told == "File too large: 11 bytes (max 10). Choose a smaller file."


def test_lines_of_a_file_that_is_too_large_to_be_read_whole_are_read(directory: Path) -> None:
    tree(directory, f"a.txt = {'line of text' * 100}\nlast\n")
    with Workspace.open(directory, limits=Limits(read_bytes=100)) as workspace:
        coding = Toolbox(workspace, profile="coding")
        assert said(coding, "read", file_path="a.txt", view_range=[2, 2]) == "     2\tlast"
        refused(coding, "read", "limit.read_bytes", file_path="a.txt")


def test_text_is_read_in_the_encoding_of_the_configuration(workspace: Workspace, directory: Path) -> None:
    (directory / "old.txt").write_bytes(b"gr\xfcn\n")
    latin = Toolbox(workspace, profile="coding", default_encoding="latin-1")
    assert said(latin, "read", file_path="old.txt") == "     1\tgrün"
    encoded = Toolbox(workspace, profile="coding", default_encoding="base64")
    assert base64.b64decode(said(encoded, "read", file_path="old.txt")) == b"gr\xfcn\n"
    refused(encoded, "read", "text.encoding", file_path="old.txt", view_range=[1, 1])


def test_the_number_of_lines_is_limited_however_short_they_are(workspace: Workspace, directory: Path) -> None:
    tree(directory, "a.txt = " + "x\n" * (MAX_VIEW_LINES + 1))
    coding = Toolbox(workspace, profile="coding", answer_bytes=2**20)
    answer = done(coding, "read", file_path="a.txt")
    assert answer.metadata["next_view_range"] == [MAX_VIEW_LINES + 1, -1]
    rest = done(coding, "read", file_path="a.txt", view_range=[MAX_VIEW_LINES + 1, -1])
    assert (rest.output, "truncated" in rest.metadata) == (f" {MAX_VIEW_LINES + 1}\tx", False)


def test_other_arguments_are_refused_by_name(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one")
    told = refused(coding, "read", "tool.arguments", file_path="a.txt", limit=3)
    assert "there is no argument 'limit'" in told
