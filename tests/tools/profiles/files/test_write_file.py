"""`write_file`: text and bytes, parents, overwriting, lost updates."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.files.answers import data, done, refused
from tests.workspace.planting import snapshot


@requirement("W-01")
def test_text_is_stored_and_its_bytes_counted(files: Toolbox, directory: Path) -> None:
    answer = done(files, "write_file", path="hello.txt", content="Hello 世界")
    assert answer.data == {"path": "/workspace/hello.txt", "bytesWritten": 12}
    assert answer.metadata["bytes_written"] == 12
    assert answer.metadata["encoding"] == "utf-8"
    assert (directory / "hello.txt").read_bytes() == "Hello 世界".encode()


@requirement("W-02")
def test_bytes_are_stored(files: Toolbox, directory: Path) -> None:
    content = bytes(range(256))
    text = base64.b64encode(content).decode()
    answer = done(files, "write_file", path="b.bin", content=text, encoding="base64")
    assert answer.data["bytesWritten"] == 256
    assert (directory / "b.bin").read_bytes() == content
    assert data(files, "read_file", path="b.bin") == {"content": text, "encoding": "base64"}


@requirement("W-03")
def test_missing_parents_are_made_and_reported(files: Toolbox, directory: Path) -> None:
    answer = done(files, "write_file", path="data/config/settings.json", content="{}")
    assert (directory / "data/config/settings.json").read_text() == "{}"
    assert [(change["action"], change["path"]) for change in answer.metadata["changes"]] == [
        ("created", "/workspace/data"),
        ("created", "/workspace/data/config"),
        ("created", "/workspace/data/config/settings.json"),
    ]


@requirement("W-04")
def test_an_existing_file_is_overwritten_with_a_diff(files: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one\n")
    answer = done(files, "write_file", path="a.txt", content="two\n")
    assert (directory / "a.txt").read_text() == "two\n"
    assert answer.metadata["diff"] == ("--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n")
    assert answer.metadata["changes"] == [
        {"action": "changed", "path": "/workspace/a.txt", "size_bytes": 4, "before_bytes": 4}
    ]


@requirement("W-05", "W-07")
@pytest.mark.parametrize("content", ["old", ""])
def test_without_force_an_existing_file_is_kept(files: Toolbox, directory: Path, content: str) -> None:
    tree(directory, f"a.txt = {content}")
    answer = refused(files, "write_file", "path.exists", path="a.txt", content="new", force=False)
    assert answer.error == "Path already exists: a.txt. Choose another name, or overwrite it."
    assert (directory / "a.txt").read_text() == content


@requirement("W-06")
def test_without_force_a_new_file_is_made(files: Toolbox, directory: Path) -> None:
    done(files, "write_file", path="a.txt", content="new", force=False)
    assert (directory / "a.txt").read_text() == "new"


def test_a_version_that_was_read_may_be_replaced_once(files: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one")
    version = done(files, "read_file", path="a.txt").metadata["version"]
    now = done(files, "write_file", path="a.txt", content="two", if_match=version).metadata["version"]
    answer = refused(files, "write_file", "path.changed", path="a.txt", content="three", if_match=version)
    assert answer.error == (
        "Path was changed in the meantime, nothing was done: a.txt."
        " Use read_file again and continue from its version."
    )
    assert answer.metadata["version"] == now
    assert (directory / "a.txt").read_text() == "two"


def test_a_role_that_may_not_write_has_no_such_operation(workspace: Workspace, directory: Path) -> None:
    with Toolbox(workspace, "critic", profile="files") as toolbox:
        assert toolbox.names == ("read_file", "list_directory", "exists", "file_info")
        refused(toolbox, "write_file", "tool.unknown", path="a", content="x")
    assert snapshot(directory) == {}


@requirement("W-26")
def test_10_mb_are_written_whole(files: Toolbox, directory: Path) -> None:
    content = "0123456789abcde\n" * (10 * 2**20 // 16)
    answer = done(files, "write_file", path="large.txt", content=content)
    assert answer.data["bytesWritten"] == 10 * 2**20
    assert (directory / "large.txt").read_text() == content


@requirement("W-27")
def test_text_of_200_kb_is_written(files: Toolbox, directory: Path) -> None:
    done(files, "write_file", path="f", content="é" * 100_000)
    assert (directory / "f").read_bytes() == ("é" * 100_000).encode()


@requirement("W-28", "W-29")
@pytest.mark.parametrize("name", ["-rf", "it's.txt", "a b", "$(touch x)", "new\nline", "é世"])
def test_odd_names_and_content_are_taken_as_they_are(files: Toolbox, directory: Path, name: str) -> None:
    content = "'\"`$(touch x)`\\\n;rm -rf .\n"
    assert data(files, "write_file", path=name, content=content)["path"] == f"/workspace/{name}"
    assert snapshot(directory) == {name: content.encode()}
    assert data(files, "read_file", path=name)["content"] == content


@pytest.mark.parametrize(
    ("content", "encoding"),
    [("not base64", "base64"), ("ü", "ascii"), ("世", "latin-1"), ("\ud800", "utf-8")],
)
def test_text_that_the_encoding_cannot_hold_is_refused(
    files: Toolbox, directory: Path, content: str, encoding: str
) -> None:
    refused(files, "write_file", "text.encoding", path="f", content=content, encoding=encoding)
    assert snapshot(directory) == {}


def test_more_than_a_file_may_hold_is_refused(workspace: Workspace, directory: Path) -> None:
    with Toolbox(workspace, profile="files", max_file_size=4) as toolbox:
        done(toolbox, "write_file", path="d/four", content="éé")
        answer = refused(toolbox, "write_file", "limit.file_bytes", path="d/five", content="ééx")
    assert answer.error == "File too large: 5 bytes (max 4). Write less at once."
    assert (answer.metadata["limit"], answer.metadata["asked"]) == (4, 5)
    assert snapshot(directory) == {"d": None, "d/four": "éé".encode()}


def test_the_disk_of_a_session_cannot_be_filled(directory: Path) -> None:
    with (
        Workspace.open(directory, limits=Limits(disk_bytes=10, entries=2)) as workspace,
        Toolbox(workspace, profile="files") as toolbox,
    ):
        done(toolbox, "write_file", path="a", content="x" * 10)
        answer = refused(toolbox, "write_file", "quota.bytes", path="b", content="x")
        assert (answer.metadata["limit"], answer.metadata["asked"]) == (10, 11)
        assert answer.metadata["next"] == "Delete what is no longer needed, or write less."
        done(toolbox, "create_directory", path="d")
        refused(toolbox, "write_file", "quota.entries", path="b", content="")
        refused(toolbox, "create_directory", "quota.entries", path="e")
    assert snapshot(directory) == {"a": b"x" * 10, "d": None}


def test_a_file_in_the_way_of_a_directory_is_kept(files: Toolbox, directory: Path) -> None:
    tree(directory, "a = old")
    refused(files, "write_file", "path.not_directory", path="a/b", content="x")
    refused(files, "write_file", "path.invalid", path=".", content="x")
    assert snapshot(directory) == {"a": b"old"}
