"""The text editor: view, create, str_replace and insert."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.tools.calls import done, refused, said
from tests.tools.concurrent_writer import OTHER_CONTENT, ConcurrentWriter

TOOL = "str_replace_based_edit_tool"
NUMBERS = "".join(f"{number}\n" for number in range(1, 11))
PNG = bytes.fromhex("89504e470d0a1a0a0000000d494844520000001000000020")


def numbered(first: int, *lines: str) -> str:
    """How lines are shown."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


# view


def test_a_file_is_viewed_with_line_numbers_and_its_version(
    editor: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt = one\ntwo\n")
    answer = done(editor, TOOL, command="view", path="a.txt")
    assert answer.output == numbered(1, "one", "two")
    assert answer.metadata == {
        "path": "/workspace/a.txt",
        "size_bytes": 8,
        "version": workspace.stat("a.txt").version,
        "total_lines": 2,
    }


def test_a_path_may_begin_with_the_workspace(editor: Toolbox, directory: Path) -> None:
    tree(directory, "d/a.txt = one")
    assert said(editor, TOOL, command="view", path="/workspace/d/a.txt") == numbered(1, "one")


@pytest.mark.parametrize(
    ("view_range", "shown"),
    [
        ([2, 3], ("2", "3")),
        ([9, -1], ("9", "10")),
        ([10, 10], ("10",)),
        ([9, 99], ("9", "10")),
    ],
)
def test_a_range_of_lines_is_viewed(
    editor: Toolbox, directory: Path, view_range: list[int], shown: tuple[str, ...]
) -> None:
    tree(directory, f"a.txt = {NUMBERS}")
    answer = said(editor, TOOL, command="view", path="a.txt", view_range=view_range)
    assert answer == numbered(view_range[0], *shown)


@pytest.mark.parametrize("view_range", [[0, 1], [3, 2], [1, -2], [11, 12], [11, -1]])
def test_a_range_that_the_file_does_not_have_is_refused_by_name(
    editor: Toolbox, directory: Path, view_range: list[int]
) -> None:
    tree(directory, f"a.txt = {NUMBERS}")
    told = refused(editor, TOOL, "tool.arguments", command="view", path="a.txt", view_range=view_range)
    assert "'view_range'" in told


@pytest.mark.parametrize("view_range", [[1], [1, 2, 3], [], "1-2", [1, "2"]])
def test_a_range_is_two_numbers(editor: Toolbox, directory: Path, view_range: object) -> None:
    tree(directory, "a.txt = one")
    refused(editor, TOOL, "tool.arguments", command="view", path="a.txt", view_range=view_range)


def test_an_empty_file_says_so(editor: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = ")
    assert said(editor, TOOL, command="view", path="a.txt") == "[The file is empty]"


def test_a_long_file_is_cut_and_says_how_to_continue(workspace: Workspace, directory: Path) -> None:
    tree(directory, f"a.txt = {NUMBERS}")
    editor = Toolbox(workspace, profile="editor", answer_bytes=30)
    answer = done(editor, TOOL, command="view", path="a.txt")
    cut = "[These are lines 1 to 3 of 10. Continue with view_range [4, -1]]"
    assert answer.output == f"{numbered(1, '1', '2', '3')}\n{cut}"
    assert (answer.metadata["truncated"], answer.metadata["next_view_range"]) == (True, [4, -1])
    part = said(editor, TOOL, command="view", path="a.txt", view_range=[1, 5])
    assert part.endswith("Continue with view_range [4, 5]]")
    rest = done(editor, TOOL, command="view", path="a.txt", view_range=[8, -1])
    assert rest.output == numbered(8, "8", "9", "10")
    assert "truncated" not in rest.metadata


def test_all_of_a_long_file_can_be_viewed_by_what_the_answers_say(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, f"a.txt = {NUMBERS}")
    editor = Toolbox(workspace, profile="editor", answer_bytes=30)
    view_range: list[int] | None = [1, 9]
    shown: list[str] = []
    while view_range is not None:
        answer = done(editor, TOOL, command="view", path="a.txt", view_range=view_range)
        shown += [line for line in answer.text().split("\n") if not line.startswith("[")]
        view_range = answer.metadata.get("next_view_range") if "truncated" in answer.metadata else None
    assert "\n".join(shown) == numbered(1, *"123456789")


def test_a_line_that_is_too_long_is_cut_and_the_next_ones_can_be_viewed(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, f"a.txt = {'x' * 100}\nend\n")
    editor = Toolbox(workspace, profile="editor", answer_bytes=30)
    answer = done(editor, TOOL, command="view", path="a.txt")
    assert answer.output == (
        f"{numbered(1, 'x' * 23)}\n"
        "[Line 1 is cut, since it is too long for one answer: cut -c prints parts of it."
        " Continue with view_range [2, -1]]"
    )
    assert said(editor, TOOL, command="view", path="a.txt", view_range=[2, -1]) == numbered(2, "end")


def test_an_image_comes_as_base64_with_its_size(editor: Toolbox, directory: Path) -> None:
    (directory / "a.png").write_bytes(PNG)
    answer = done(editor, TOOL, command="view", path="a.png")
    assert base64.b64decode(answer.output) == PNG
    assert answer.metadata["media_type"] == "image/png"
    assert (answer.metadata["width"], answer.metadata["height"]) == (16, 32)


def test_what_is_not_utf_8_comes_as_base64_unless_lines_are_requested(
    editor: Toolbox, directory: Path
) -> None:
    (directory / "old.txt").write_bytes(b"gr\xfcn")
    answer = done(editor, TOOL, command="view", path="old.txt")
    assert answer.output == base64.b64encode(b"gr\xfcn").decode()
    assert answer.text() == "[File /workspace/old.txt: application/octet-stream, 4 bytes. It is not text]"
    refused(editor, TOOL, "text.encoding", command="view", path="old.txt", view_range=[1, 1])


def test_a_directory_is_listed_two_levels_deep_without_what_is_hidden(
    editor: Toolbox, directory: Path
) -> None:
    tree(directory, "b.txt", "a/c.txt", "a/d/deep.txt", ".git/config", "a/.hidden", "a/link => ../b.txt")
    assert said(editor, TOOL, command="view", path=".").split("\n") == [
        "/workspace",
        "/workspace/a/",
        "/workspace/a/c.txt",
        "/workspace/a/d/",
        "/workspace/a/link",
        "/workspace/b.txt",
    ]
    assert said(editor, TOOL, command="view", path="a/d").split("\n") == [
        "/workspace/a/d",
        "/workspace/a/d/deep.txt",
    ]


def test_a_long_listing_is_cut_and_says_so(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"file-{number}" for number in range(9)))
    editor = Toolbox(workspace, profile="editor", answer_bytes=50)
    answer = done(editor, TOOL, command="view", path=".")
    assert answer.text().split("\n") == [
        "/workspace",
        "/workspace/file-0",
        "/workspace/file-1",
        "[Cut: 7 more paths would be too much for one answer. View a subdirectory]",
    ]
    assert answer.metadata["truncated"]


def test_a_directory_has_no_lines(editor: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    told = refused(editor, TOOL, "tool.arguments", command="view", path="d", view_range=[1, 2])
    assert "'d' is a directory" in told


def test_what_is_missing_is_named(editor: Toolbox) -> None:
    told = refused(editor, TOOL, "path.missing", command="view", path="none.txt")
    assert told == f"File not found: none.txt. Use {TOOL} to see what is there."


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "/", "a/../../outside/secret"])
def test_nothing_outside_is_viewed(editor: Toolbox, directory: Path, outside: Path, path: str) -> None:
    tree(directory, "a/")
    result = editor.call(TOOL, {"command": "view", "path": path})
    assert not result.success
    assert result.error == f"Reading {path} is not allowed. Use session workspace."
    assert str(outside.parent) not in result.to_json()


# create


def test_a_file_is_created_with_the_directories_above_it(editor: Toolbox, directory: Path) -> None:
    answer = done(editor, TOOL, command="create", path="new/a.txt", file_text="grün\n")
    assert (directory / "new/a.txt").read_bytes() == "grün\n".encode()
    assert answer.output == "Wrote 6 bytes to /workspace/new/a.txt"
    assert answer.metadata["changes"] == [
        {"action": "created", "path": "/workspace/new", "type": "directory"},
        {"action": "created", "path": "/workspace/new/a.txt", "size_bytes": 6},
    ]


def test_a_file_that_is_there_is_replaced_with_a_diff(
    editor: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt = old\n")
    answer = done(editor, TOOL, command="create", path="a.txt", file_text="new\n")
    assert "-old\n+new\n" in answer.metadata["diff"]
    assert answer.metadata["version"] == workspace.stat("a.txt").version


def test_an_empty_file_may_be_created(editor: Toolbox, directory: Path) -> None:
    done(editor, TOOL, command="create", path="a.txt", file_text="")
    assert (directory / "a.txt").read_bytes() == b""


def test_half_a_character_cannot_be_written(editor: Toolbox, directory: Path) -> None:
    refused(editor, TOOL, "text.encoding", command="create", path="a.txt", file_text="\ud800")
    assert not (directory / "a.txt").exists()


# str_replace


def test_a_text_is_replaced_and_shown_with_what_is_around_it(
    editor: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, f"a.txt = {NUMBERS}")
    answer = done(editor, TOOL, command="str_replace", path="a.txt", old_str="5\n", new_str="five\n")
    assert (directory / "a.txt").read_text() == NUMBERS.replace("5", "five")
    shown = numbered(2, "2", "3", "4", "five", "6", "7", "8")
    assert answer.output == f"Replaced 1 occurrence in /workspace/a.txt\n{shown}"
    assert answer.metadata["version"] == workspace.stat("a.txt").version
    assert "-5\n+five\n" in answer.metadata["diff"]
    assert [change["action"] for change in answer.metadata["changes"]] == ["changed"]


@pytest.mark.parametrize("arguments", [{}, {"new_str": ""}, {"new_str": None}])
def test_without_a_new_text_the_old_one_is_deleted(
    editor: Toolbox, directory: Path, arguments: dict[str, str | None]
) -> None:
    tree(directory, "a.txt = keep drop")
    done(editor, TOOL, command="str_replace", path="a.txt", old_str=" drop", **arguments)
    assert (directory / "a.txt").read_text() == "keep"


@requirement("W-21", "W-23")
@pytest.mark.parametrize(
    ("old", "new", "code", "then"),
    [
        ("foo", "x", "edit.ambiguous", "Include more of the surrounding text."),
        ("none", "x", "edit.not_found", f"Use {TOOL} and copy the text exactly as it stands there."),
        ("", "x", "edit.empty", "Give the text to replace."),
        ("bar", "bar", "edit.identical", "Give a new text that differs from the old one."),
    ],
)
def test_an_edit_that_cannot_be_made_changes_nothing_and_says_what_to_do(
    editor: Toolbox, directory: Path, old: str, new: str, code: str, then: str
) -> None:
    tree(directory, "a.txt = foo bar foo")
    told = refused(editor, TOOL, code, command="str_replace", path="a.txt", old_str=old, new_str=new)
    assert told.endswith(f". {then}")
    assert "replace_all" not in told, "this tool has no such argument"
    assert (directory / "a.txt").read_text() == "foo bar foo"


# insert


@pytest.mark.parametrize(
    ("line", "result", "shown"),
    [
        (0, "x\n1\n2\n", numbered(1, "x", "1", "2")),
        (1, "1\nx\n2\n", numbered(1, "1", "x", "2")),
        (2, "1\n2\nx\n", numbered(1, "1", "2", "x")),
    ],
)
def test_lines_are_inserted_behind_a_line(
    editor: Toolbox, workspace: Workspace, directory: Path, line: int, result: str, shown: str
) -> None:
    tree(directory, "a.txt = 1\n2\n")
    answer = done(editor, TOOL, command="insert", path="a.txt", insert_line=line, insert_text="x")
    assert (directory / "a.txt").read_text() == result
    assert answer.output == f"Inserted 1 line in /workspace/a.txt\n{shown}"
    assert answer.metadata["version"] == workspace.stat("a.txt").version
    assert "+x\n" in answer.metadata["diff"]


def test_there_must_be_such_a_line_to_insert_behind(editor: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = 1\n2\n")
    told = refused(
        editor, TOOL, "tool.arguments", command="insert", path="a.txt", insert_line=3, insert_text="x"
    )
    assert "'insert_line' must be from 0 to 2" in told
    assert (directory / "a.txt").read_text() == "1\n2\n"


def test_a_concurrent_write_is_not_lost(directory: Path) -> None:
    file = tree(directory, "a.txt = 1\n2\n") / "a.txt"
    with ConcurrentWriter(file).workspace() as workspace:
        editor = Toolbox(workspace, profile="editor")
        refused(editor, TOOL, "path.changed", command="insert", path="a.txt", insert_line=0, insert_text="x")
    assert file.read_text() == OTHER_CONTENT


def test_nothing_is_inserted_in_a_file_that_is_missing(editor: Toolbox, directory: Path) -> None:
    refused(editor, TOOL, "path.missing", command="insert", path="a.txt", insert_line=0, insert_text="x")
    assert not (directory / "a.txt").exists()


# arguments


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("create", ("file_text",)),
        ("str_replace", ("old_str",)),
        ("insert", ("insert_line", "insert_text")),
    ],
)
def test_arguments_that_a_command_needs_are_named(
    editor: Toolbox, directory: Path, command: str, missing: tuple[str, ...]
) -> None:
    tree(directory, "a.txt = text")
    told = refused(editor, TOOL, "tool.arguments", command=command, path="a.txt")
    assert all(f"{name!r} is required for {command}" in told for name in missing)
    assert (directory / "a.txt").read_text() == "text"


ALL = {
    "view_range": ("view", [1, 1]),
    "file_text": ("create", "x"),
    "old_str": ("str_replace", "text"),
    "new_str": ("str_replace", "x"),
    "insert_line": ("insert", 0),
    "insert_text": ("insert", "x"),
}


@pytest.mark.parametrize("command", ["view", "create", "str_replace", "insert"])
@pytest.mark.parametrize("name", ALL)
def test_arguments_of_another_command_are_refused_by_name(
    editor: Toolbox, directory: Path, command: str, name: str
) -> None:
    tree(directory, "a.txt = text")
    own = {argument: value for argument, (owner, value) in ALL.items() if owner == command}
    owner, value = ALL[name]
    result = editor.call(TOOL, {"command": command, "path": "a.txt", **own, name: value})
    assert result.success is (owner == command)
    if owner != command:
        assert result.code == "tool.arguments"
        assert f"{name!r} belongs to {owner}, not to {command}" in result.text()
        assert (directory / "a.txt").read_text() == "text"


@pytest.mark.parametrize("command", ["undo_edit", "delete", ""])
def test_another_command_is_refused(editor: Toolbox, command: str) -> None:
    refused(editor, TOOL, "tool.arguments", command=command, path="a.txt")


# roles


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "create", "path": "new.txt", "file_text": "x"},
        {"command": "create", "path": "a.txt", "file_text": "x"},
        {"command": "str_replace", "path": "a.txt", "old_str": "text", "new_str": "x"},
        {"command": "insert", "path": "a.txt", "insert_line": 0, "insert_text": "x"},
    ],
)
def test_a_role_that_only_reads_may_view_and_nothing_else(
    workspace: Workspace, directory: Path, arguments: dict[str, object]
) -> None:
    tree(directory, "a.txt = text")
    editor = Toolbox(workspace, "reader", profile="editor", roles={"reader": ["file_read"]})
    assert said(editor, TOOL, command="view", path="a.txt") == numbered(1, "text")
    told = refused(editor, TOOL, "access.denied", **arguments)
    assert told == f"Writing {arguments['path']} is not allowed: it is read-only here. Only read it."
    assert [each.name for each in directory.iterdir()] == ["a.txt"]
    assert (directory / "a.txt").read_text() == "text"


def test_a_role_without_reading_has_no_editor(workspace: Workspace) -> None:
    editor = Toolbox(workspace, "lister", profile="editor", roles={"lister": ["file_list"]})
    assert editor.names == ()
