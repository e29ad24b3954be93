"""`edit`: replace text in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.tools.calls import done, refused

FOO = "foo\nbar\nfoo\nbaz\n"


def test_one_occurrence_is_replaced_and_shown(coding: Toolbox, workspace: Workspace, directory: Path) -> None:
    tree(directory, f"a.txt = {FOO}")
    answer = done(coding, "edit", file_path="a.txt", old_string="bar\n", new_string="qux\n")
    assert (directory / "a.txt").read_text() == "foo\nqux\nfoo\nbaz\n"
    assert answer.output == (
        "Replaced 1 occurrence in /workspace/a.txt\n     1\tfoo\n     2\tqux\n     3\tfoo\n     4\tbaz"
    )
    assert answer.metadata["replacements"] == 1
    assert answer.metadata["version"] == workspace.stat("a.txt").version


@requirement("W-21")
def test_several_occurrences_are_replaced_only_if_all_are_meant(coding: Toolbox, directory: Path) -> None:
    tree(directory, f"a.txt = {FOO}")
    told = refused(coding, "edit", "edit.ambiguous", file_path="a.txt", old_string="foo", new_string="qux")
    assert "matches 2 locations" in told
    assert told.endswith("Include more of the surrounding text, or set replace_all.")
    assert (directory / "a.txt").read_text() == FOO
    answer = done(coding, "edit", file_path="a.txt", old_string="foo", new_string="qux", replace_all=True)
    assert answer.text().startswith("Replaced 2 occurrences in /workspace/a.txt\n")
    assert (directory / "a.txt").read_text() == "qux\nbar\nqux\nbaz\n"


@requirement("W-23")
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("none", "x", "edit.not_found"), ("", "x", "edit.empty"), ("bar", "bar", "edit.identical")],
)
def test_an_edit_that_cannot_be_made_changes_nothing(
    coding: Toolbox, directory: Path, old: str, new: str, code: str
) -> None:
    tree(directory, f"a.txt = {FOO}")
    refused(coding, "edit", code, file_path="a.txt", old_string=old, new_string=new)
    assert (directory / "a.txt").read_text() == FOO


def test_what_was_not_found_is_reported_with_the_tool_that_helps(coding: Toolbox, directory: Path) -> None:
    tree(directory, f"a.txt = {FOO}")
    told = refused(coding, "edit", "edit.not_found", file_path="a.txt", old_string="no", new_string="x")
    assert told.endswith("Use read and copy the text exactly as it stands there.")


def test_the_diff_of_a_large_edit_is_short(coding: Toolbox, directory: Path) -> None:
    tree(directory, f"a.txt = {'foo ' * 20_000}")
    answer = done(coding, "edit", file_path="a.txt", old_string="foo", new_string="x", replace_all=True)
    assert len(answer.to_json()) < 10_000
