"""`file_write`: the whole content or nothing, and what that changed."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.values import MIB
from tests.requirements import requirement
from tests.tools.profiles.agent.answers import done, holds, hurried, output, refused
from tests.workspace.planting import snapshot

# The content has 34 bytes; the document that this answer was promised in counted one too many.
PROMISED = """
{
  "success": true,
  "output": "/tmp/shannon-sessions/my-session/output/results.txt",
  "metadata": {
    "path": "/tmp/shannon-sessions/my-session/output/results.txt",
    "size_bytes": 34,
    "mode": "overwrite",
    "encoding": "utf-8",
    "created_dirs": true
  }
}
"""


def test_the_answer_is_the_promised_one(tools: Toolbox, directory: Path) -> None:
    content = "Analysis complete.\nTotal items: 42"
    answer = done(tools, "file_write", path="output/results.txt", content=content, create_dirs=True)
    holds(answer, PROMISED)
    assert (directory / "output/results.txt").read_text() == content


@requirement("W-11")
def test_a_write_reports_the_size_and_reads_back(tools: Toolbox) -> None:
    answer = done(tools, "file_write", path="test.txt", content="Hello, WASI Sandbox!")
    assert (answer.metadata["bytes_written"], answer.metadata["size_bytes"]) == (20, 20)
    read = done(tools, "file_read", path="test.txt")
    assert read.output == "Hello, WASI Sandbox!"
    assert read.metadata["version"] == answer.metadata["version"]


@requirement("W-12")
@pytest.mark.parametrize("create_dirs", [False, True])
def test_append_adds_to_the_end_and_begins_what_is_missing(
    tools: Toolbox, directory: Path, create_dirs: bool
) -> None:
    for content, size in (("Line 1\n", 7), ("Line 2\n", 14)):
        answer = done(tools, "file_write", path="f", content=content, mode="append", create_dirs=create_dirs)
        assert (answer.metadata["size_bytes"], answer.metadata["bytes_written"]) == (size, 7)
        assert answer.metadata["mode"] == "append"
    assert snapshot(directory) == {"f": b"Line 1\nLine 2\n"}


@requirement("W-13")
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_missing_parent_is_made_only_when_requested(tools: Toolbox, directory: Path, mode: str) -> None:
    path = "deep/nested/dir/file.txt"
    answer = refused(tools, "file_write", "path.missing", path=path, content="x", mode=mode)
    assert answer.error == "Parent directory does not exist: deep/nested/dir. Set create_dirs to create it."
    assert snapshot(directory) == {}
    made = done(tools, "file_write", path=path, content="x", mode=mode, create_dirs=True)
    assert made.metadata["created_dirs"]
    assert (directory / path).read_bytes() == b"x"
    again = done(tools, "file_write", path=path, content="y", mode=mode, create_dirs=True)
    assert not again.metadata["created_dirs"]


@requirement("W-09", "W-14", "W-15")
@pytest.mark.parametrize(
    "path", ["../evil", "/etc/evil", "../../../tmp/evil.txt", "d/../../evil", "way/evil", "dangling"]
)
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_nothing_is_written_outside(
    tools: Toolbox, directory: Path, outside: Path, path: str, mode: str
) -> None:
    tree(directory, "d/", "way => ../outside", "dangling => ../outside/new")
    before = snapshot(directory)
    answer = tools.call("file_write", {"path": path, "content": "x", "mode": mode, "create_dirs": True})
    assert answer.error == f"Writing {path} is not allowed. Use session workspace."
    assert "changes" not in answer.metadata
    assert snapshot(directory) == before
    assert snapshot(outside) == {"secret": b"secret data"}
    assert not (directory.parent / "evil").exists()


@requirement("P-15")
def test_a_path_that_climbs_through_what_is_missing_makes_nothing(tools: Toolbox, directory: Path) -> None:
    refused(tools, "file_write", "path.escape", path="a/../../evil", content="x", create_dirs=True)
    assert snapshot(directory) == {}
    assert not (directory.parent / "evil").exists()


def test_a_refusal_is_recorded_once_as_the_write_it_was(tools: Toolbox, workspace: Workspace) -> None:
    refused(tools, "file_write", "path.escape", path="../evil", content="x", create_dirs=True)
    assert [(event.operation, event.path, event.error) for event in workspace.changes()] == [
        ("write", "../evil", "path.escape")
    ]


@requirement("W-17")
def test_an_answer_never_names_a_place_of_the_host(tools: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    answer = done(tools, "file_write", path="./d/../f", content="x")
    assert str(directory) not in answer.to_json()


@requirement("W-27", "W-28")
@pytest.mark.parametrize(
    "content",
    ["x" * 200_000, "'quotes' \"and\" $dollars `ticks`\n\r\n\t", "", "ä世界\U0001f600", "\0binary\x01"],
)
def test_any_text_is_stored_as_it_is(tools: Toolbox, directory: Path, content: str) -> None:
    done(tools, "file_write", path="it's $(odd)", content=content)
    assert (directory / "it's $(odd)").read_bytes() == content.encode()


@requirement("W-29")
def test_a_path_that_begins_with_a_dash_is_a_name(tools: Toolbox, directory: Path) -> None:
    done(tools, "file_write", path="-rf", content="x")
    assert snapshot(directory) == {"-rf": b"x"}


def test_base64_stands_for_bytes(tools: Toolbox, directory: Path) -> None:
    content = bytes(range(256))
    text = base64.b64encode(content).decode()
    answer = done(tools, "file_write", path="f", content=text, encoding="base64")
    assert answer.metadata["bytes_written"] == 256
    assert (directory / "f").read_bytes() == content
    assert "diff" not in answer.metadata
    answer = refused(tools, "file_write", "text.encoding", path="g", content="no base64!", encoding="base64")
    assert answer.metadata["next"] == "Give base64, or use another encoding."


@pytest.mark.parametrize(
    ("encoding", "content", "helps"),
    [
        ("ascii", "é", "utf-8"),
        ("latin-1", "世", "utf-8"),
        ("utf-8", "\ud800", "base64"),
        (None, "\udcff", "base64"),
    ],
)
def test_text_that_its_encoding_cannot_say_is_refused(
    tools: Toolbox, directory: Path, encoding: str | None, content: str, helps: str
) -> None:
    answer = refused(tools, "file_write", "text.encoding", path="f", content=content, encoding=encoding)
    assert answer.metadata["next"] == f"Use encoding {helps}."
    assert snapshot(directory) == {}


def test_a_write_shows_what_it_changed(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = one\ntwo\n")
    answer = done(tools, "file_write", path="f", content="one\n2\n")
    assert answer.metadata["diff"] == ("--- f\n+++ f\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n")
    assert answer.metadata["changes"] == [
        {"action": "changed", "path": "/workspace/f", "size_bytes": 6, "before_bytes": 8}
    ]
    appended = done(tools, "file_write", path="f", content="3\n", mode="append")
    assert appended.metadata["diff"].endswith(" one\n 2\n+3\n")
    made = done(tools, "file_write", path="d/new", content="x\n", create_dirs=True)
    assert made.metadata["changes"] == [
        {"action": "created", "path": "/workspace/d", "type": "directory"},
        {"action": "created", "path": "/workspace/d/new", "size_bytes": 2},
    ]


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_lost_update_is_refused_with_the_current_version(
    tools: Toolbox, directory: Path, mode: str
) -> None:
    tree(directory, "f = one")
    seen = done(tools, "file_read", path="f").metadata["version"]
    current = done(tools, "file_write", path="f", content="two", if_match=seen).metadata["version"]
    answer = refused(tools, "file_write", "path.changed", path="f", content="three", mode=mode, if_match=seen)
    assert answer.metadata["version"] == current
    assert answer.error == (
        "Path was changed in the meantime, nothing was done: f."
        " Use file_read again and continue from its version."
    )
    assert snapshot(directory) == {"f": b"two"}
    done(tools, "file_write", path="f", content="!", mode=mode, if_match=current)
    assert (directory / "f").read_bytes().endswith(b"!")


@pytest.mark.parametrize("mode", ["overwrite", "append"])
@pytest.mark.parametrize("create_dirs", [False, True])
def test_a_version_of_what_is_gone_is_refused(
    tools: Toolbox, directory: Path, mode: str, create_dirs: bool
) -> None:
    answer = refused(
        tools,
        "file_write",
        "path.changed",
        path="f",
        content="x",
        mode=mode,
        create_dirs=create_dirs,
        if_match="1-2-3",
    )
    assert answer.metadata["version"] is None
    assert snapshot(directory) == {}


def test_a_directory_is_not_written(tools: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    for mode in ("overwrite", "append"):
        refused(tools, "file_write", "path.is_directory", path="d", content="x", mode=mode)
    assert snapshot(directory) == {"d": None}


def test_a_link_inside_is_written_through(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = one", "in => f")
    done(tools, "file_write", path="in", content="two")
    assert snapshot(directory) == {"f": b"two", "in": "f"}


@requirement("Q-05")
def test_the_quota_is_reported_in_the_promised_words(directory: Path) -> None:
    content = "x" * (5 * MIB // 2)
    limits = Limits(disk_bytes=MIB * 100)
    tree(directory, "full")
    os.truncate(directory / "full", MIB * 100)
    with Workspace.open(directory, limits=limits) as workspace, Toolbox(workspace) as toolbox:
        answer = refused(toolbox, "file_write", "quota.bytes", path="f", content=content)
    holds(answer, '{"success": false, "error": "Workspace quota exceeded: 102.5MB > 100MB limit"}')
    assert answer.metadata["next"] == "Delete what is no longer needed, or write less."
    assert [each.name for each in directory.iterdir()] == ["full"]


@pytest.mark.parametrize("role", ["generalist", "critic", "nobody"])
def test_a_role_that_may_not_write_has_no_write(workspace: Workspace, directory: Path, role: str) -> None:
    with Toolbox(workspace, role) as toolbox:
        assert "file_write" not in toolbox.names
        refused(toolbox, "file_write", "tool.unknown", path="f", content="x")
    assert snapshot(directory) == {}


def test_a_write_that_is_out_of_time_has_not_happened(workspace: Workspace, directory: Path) -> None:
    refused(hurried(workspace, 1), "file_write", "limit.time", path="d/f", content="x", create_dirs=True)
    assert snapshot(directory) == {}


def test_what_was_written_is_listed_and_found(tools: Toolbox) -> None:
    done(tools, "file_write", path="data.txt", content="test data")
    assert [entry["name"] for entry in output(tools, "file_list", path=".")] == ["data.txt"]
    assert output(tools, "file_search", query="TEST")[0]["content"] == "test data"
