"""`file_edit`: replace text, once or everywhere, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Workspace
from carrel.testing.tree import tree
from carrel.tools.profiles.agent.file_edit import MAX_FILE_BYTES
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.agent.answers import done, hurried, refused
from tests.workspace.planting import snapshot


@requirement("W-19")
def test_the_one_match_is_replaced_and_nothing_else(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f.py = def old_func():\n    pass\n")
    answer = done(tools, "file_edit", path="f.py", old_text="old_func", new_text="new_func")
    assert answer.output == "Replaced 1 occurrence(s) in /workspace/f.py"
    assert (directory / "f.py").read_bytes() == b"def new_func():\n    pass\n"


@requirement("W-20")
def test_an_empty_new_text_deletes(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = line1\nDELETE_ME\nline3\n")
    done(tools, "file_edit", path="f", old_text="DELETE_ME\n", new_text="")
    assert (directory / "f").read_bytes() == b"line1\nline3\n"


@requirement("W-21")
def test_several_matches_are_refused_and_counted(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = foo\nbar\nfoo\nbaz\n")
    answer = refused(tools, "file_edit", "edit.ambiguous", path="f", old_text="foo", new_text="qux")
    assert answer.error == (
        "Cannot edit 'f': the text to replace matches 2 locations (lines 1, 3)."
        " Include more of the surrounding text, or set replace_all."
    )
    assert snapshot(directory) == {"f": b"foo\nbar\nfoo\nbaz\n"}


@requirement("W-22")
def test_all_matches_are_replaced_when_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = foo\nbar\nfoo\nbaz\n")
    answer = done(tools, "file_edit", path="f", old_text="foo", new_text="qux", replace_all=True)
    assert answer.output == "Replaced 2 occurrence(s) in /workspace/f"
    assert (directory / "f").read_bytes() == b"qux\nbar\nqux\nbaz\n"


@requirement("W-23")
@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        ("absent", "x", "edit.not_found", "not found"),
        ("", "x", "edit.empty", "empty"),
        ("foo", "foo", "edit.identical", "identical"),
    ],
)
def test_an_edit_that_makes_no_sense_says_why(
    tools: Toolbox, directory: Path, old: str, new: str, code: str, says: str
) -> None:
    tree(directory, "f = foo\n")
    answer = refused(tools, "file_edit", code, path="f", old_text=old, new_text=new)
    assert answer.error is not None
    assert says in answer.error
    assert answer.metadata["next"]
    assert snapshot(directory) == {"f": b"foo\n"}


@requirement("W-24")
def test_the_texts_have_ceilings(tools: Toolbox, directory: Path) -> None:
    tree(directory, f"f = {'a' * 10_001}")
    too_long = refused(tools, "file_edit", "tool.arguments", path="f", old_text="a" * 10_001, new_text="")
    assert too_long.error is not None
    assert "'old_text' is too long: 10001 characters, the limit is 10000" in too_long.error
    too_long = refused(tools, "file_edit", "tool.arguments", path="f", old_text="a", new_text="b" * 50_001)
    assert too_long.error is not None
    assert "'new_text' is too long: 50001 characters, the limit is 50000" in too_long.error
    done(tools, "file_edit", path="f", old_text="a" * 10_000, new_text="b" * 50_000)
    assert (directory / "f").read_bytes() == b"b" * 50_000 + b"a"


@requirement("W-24")
def test_a_file_past_its_ceiling_is_not_edited(tools: Toolbox, directory: Path) -> None:
    with (directory / "f").open("wb") as file:
        file.write(b"needle")
        file.truncate(MAX_FILE_BYTES + 1)
    answer = refused(tools, "file_edit", "limit.file_bytes", path="f", old_text="needle", new_text="x")
    assert answer.error is not None
    assert answer.error.startswith(f"File too large: {MAX_FILE_BYTES + 1} bytes (max {MAX_FILE_BYTES}). ")
    assert (answer.metadata["limit"], answer.metadata["asked"]) == (MAX_FILE_BYTES, MAX_FILE_BYTES + 1)


@requirement("W-25")
def test_an_edit_over_several_lines_reports_all_about_it(tools: Toolbox, directory: Path) -> None:
    tree(directory, "d/f = one\ntwo\nthree\nfour\n")
    answer = done(tools, "file_edit", path="d/f", old_text="e\nt", new_text="E\nT")
    size = len(b"one\ntwo\nthree\nfour\n")
    assert (directory / "d/f").read_bytes() == b"onE\nTwo\nthree\nfour\n"
    assert {key: value for key, value in answer.metadata.items() if key not in ("version", "diff")} == {
        "path": "/workspace/d/f",
        "replacements": 1,
        "old_length": 3,
        "new_length": 3,
        "file_size_after": size,
        "changes": [
            {"action": "changed", "path": "/workspace/d/f", "size_bytes": size, "before_bytes": size}
        ],
    }
    assert answer.metadata["diff"].endswith("@@ -1,4 +1,4 @@\n-one\n-two\n+onE\n+Two\n three\n four\n")


def test_a_long_diff_is_cut_but_not_the_edit(tools: Toolbox, directory: Path) -> None:
    (directory / "f").write_bytes(b"foo\n" * 500)
    answer = done(tools, "file_edit", path="f", old_text="foo", new_text="bar", replace_all=True)
    assert answer.metadata["diff"].endswith("... the rest of the diff is left out\n")
    assert len(answer.metadata["diff"].splitlines()) < 100
    assert (directory / "f").read_bytes() == b"bar\n" * 500


def test_line_ends_of_the_file_are_kept(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = a\r\nb\r\nc\r\n")
    done(tools, "file_edit", path="f", old_text="a\nb", new_text="x\ny")
    assert (directory / "f").read_bytes() == b"x\r\ny\r\nc\r\n"


def test_a_lost_update_is_refused_with_the_current_version(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = one")
    first = done(tools, "file_read", path="f").metadata["version"]
    second = done(tools, "file_edit", path="f", old_text="one", new_text="two", if_match=first)
    answer = refused(
        tools, "file_edit", "path.changed", path="f", old_text="two", new_text="three", if_match=first
    )
    assert answer.metadata["version"] == second.metadata["version"]
    assert snapshot(directory) == {"f": b"two"}
    done(tools, "file_edit", path="f", old_text="two", new_text="three", if_match=answer.metadata["version"])
    assert snapshot(directory) == {"f": b"three"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("none", "path.missing"),
        ("d", "path.is_directory"),
        ("d/f/g", "path.not_directory"),
        ("out", "path.escape"),
        ("../outside/secret", "path.escape"),
        ("/etc/passwd", "access.outside"),
        ("", "tool.arguments"),
    ],
)
def test_only_a_file_of_the_workspace_is_edited(
    tools: Toolbox, directory: Path, outside: Path, path: str, code: str
) -> None:
    tree(directory, "d/f", "out => ../outside/secret")
    answer = refused(tools, "file_edit", code, path=path, old_text="secret", new_text="x")
    assert str(directory.parent) not in answer.to_json()
    assert (outside / "secret").read_bytes() == b"secret data"


@pytest.mark.parametrize(("old", "new"), [("\ud800", "x"), ("in", "\ud800")])
def test_half_a_character_is_no_text(tools: Toolbox, directory: Path, old: str, new: str) -> None:
    tree(directory, "f")
    refused(tools, "file_edit", "text.encoding", path="f", old_text=old, new_text=new)
    assert snapshot(directory) == {"f": b"in"}


def test_a_role_that_may_not_write_has_no_edit(workspace: Workspace, directory: Path) -> None:
    tree(directory, "f")
    with Toolbox(workspace, "critic") as toolbox:
        refused(toolbox, "file_edit", "tool.unknown", path="f", old_text="in", new_text="x")
    assert snapshot(directory) == {"f": b"in"}


def test_an_edit_that_is_out_of_time_has_not_happened(workspace: Workspace, directory: Path) -> None:
    tree(directory, "f")
    refused(hurried(workspace, 1), "file_edit", "limit.time", path="f", old_text="in", new_text="x")
    assert snapshot(directory) == {"f": b"in"}
