"""`edit_file`: replace texts in a file, all of them or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from carrel.testing.tree import tree
from carrel.tools.results.text_diff import MAX_DIFF_INPUT_BYTES
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused
from tests.tools.concurrent_writer import OTHER_CONTENT, ConcurrentWriter

DIFF = """\
--- a.txt
+++ a.txt
@@ -1,3 +1,3 @@
-one
+1
 two
-three
+3
"""


def edits(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    """The edits as a client sends them."""
    return [{"oldText": old, "newText": new} for old, new in pairs]


def test_all_edits_are_made_at_once_and_the_diff_is_given(
    mcp: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt = one\ntwo\nthree\n")
    answer = done(mcp, "edit_file", path="a.txt", edits=edits(("one", "1"), ("three", "3")))
    assert (directory / "a.txt").read_text() == "1\ntwo\n3\n"
    assert answer.output == f"```diff\n{DIFF}```"
    assert answer.metadata["diff"] == DIFF
    assert answer.metadata["version"] == workspace.stat("a.txt").version
    assert [change["action"] for change in answer.metadata["changes"]] == ["changed"]


def test_a_dry_run_gives_the_diff_and_changes_nothing(
    mcp: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt = one\ntwo\nthree\n")
    before = workspace.stat("a.txt")
    pairs = edits(("one", "1"), ("three", "3"))
    answer = done(mcp, "edit_file", path="a.txt", edits=pairs, dryRun=True)
    assert answer.output == f"```diff\n{DIFF}```"
    assert (directory / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert "changes" not in answer.metadata
    assert answer.metadata["version"] == before.version == workspace.stat("a.txt").version


def test_an_edit_sees_what_those_before_it_did(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one\n")
    done(mcp, "edit_file", path="a.txt", edits=edits(("one", "two two"), ("two two", "three")))
    assert (directory / "a.txt").read_text() == "three\n"


def test_edits_that_cancel_out_leave_the_file_as_it_was(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one\n")
    done(mcp, "edit_file", path="a.txt", edits=edits(("one", "two"), ("two", "one")))
    assert (directory / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("is_dry", [False, True])
@pytest.mark.parametrize(
    ("old", "new", "code", "then"),
    [
        ("none", "x", "edit.not_found", "Use read_text_file and copy the text exactly as it stands there."),
        ("o", "x", "edit.ambiguous", "Include more of the surrounding text."),
        ("", "x", "edit.empty", "Give the text to replace."),
        ("two", "two", "edit.identical", "Give a new text that differs from the old one."),
        ("two", "\ud800", "text.encoding", "Only text can be used here."),
    ],
)
def test_if_one_edit_cannot_be_made_none_is(
    mcp: Toolbox, directory: Path, old: str, new: str, code: str, then: str, is_dry: bool
) -> None:
    tree(directory, "a.txt = one\ntwo\n")
    pairs = edits(("one", "ooo"), (old, new))
    told = refused(mcp, "edit_file", code, path="a.txt", edits=pairs, dryRun=is_dry)
    assert told.endswith(f". {then}")
    assert (directory / "a.txt").read_text() == "one\ntwo\n"


def test_of_several_edits_the_one_that_cannot_be_made_is_named(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one\ntwo\n")
    several = edits(("one", "1"), ("three", "3"))
    told = refused(mcp, "edit_file", "edit.not_found", path="a.txt", edits=several)
    assert told.startswith("Cannot edit 'a.txt': the text to replace was not found, in edits[1]. Use")
    told = refused(mcp, "edit_file", "edit.not_found", path="a.txt", edits=several[1:])
    assert told.startswith("Cannot edit 'a.txt': the text to replace was not found. Use")


def test_a_concurrent_write_is_not_lost(directory: Path) -> None:
    file = tree(directory, "a.txt = one\n") / "a.txt"
    with ConcurrentWriter(file).workspace() as workspace:
        mcp = Toolbox(workspace, profile="mcp")
        refused(mcp, "edit_file", "path.changed", path="a.txt", edits=edits(("one", "1")))
    assert file.read_text() == OTHER_CONTENT


def test_line_ends_stay_as_they_are(mcp: Toolbox, directory: Path) -> None:
    (directory / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    done(mcp, "edit_file", path="a.txt", edits=edits(("one\ntwo", "1\n2")))
    assert (directory / "a.txt").read_bytes() == b"1\r\n2\r\n"


def test_of_a_large_file_what_each_edit_did_is_reported(mcp: Toolbox, directory: Path) -> None:
    tree(directory, f"a.txt = one\n{'x' * 99}\n" + "filler\n" * (MAX_DIFF_INPUT_BYTES // 7) + "two\n")
    answer = done(mcp, "edit_file", path="a.txt", edits=edits(("one", "1"), ("two", "2")))
    assert "-one\n+1\n" in answer.text()
    assert "-two\n+2\n" in answer.text()


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": []},
        {"edits": {"oldText": "a", "newText": "b"}},
        {"edits": [{"oldText": "a"}]},
        {"edits": [{"oldText": "a", "newText": "b", "replaceAll": True}]},
        {"edits": edits(("one", "1")), "dryRun": "yes"},
        {"edits": edits(("one", "1")), "dry_run": True},
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    mcp: Toolbox, directory: Path, arguments: dict[str, Any]
) -> None:
    tree(directory, "a.txt = one\n")
    refused(mcp, "edit_file", "tool.arguments", path="a.txt", **arguments)
    assert (directory / "a.txt").read_text() == "one\n"


def test_a_missing_file_is_not_made(mcp: Toolbox, directory: Path) -> None:
    refused(mcp, "edit_file", "path.missing", path="a.txt", edits=edits(("one", "1")))
    assert list(directory.iterdir()) == []
