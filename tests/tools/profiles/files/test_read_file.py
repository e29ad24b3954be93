"""`read_file`: complete, as text or as bytes."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.files.answers import data, done, refused

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


@requirement("R-03")
def test_a_text_comes_with_its_encoding(files: Toolbox, directory: Path) -> None:
    tree(directory, 'data/output/result.json = {"result": 42}')
    answer = done(files, "read_file", path="data/output/result.json")
    assert answer.data == {"content": '{"result": 42}', "encoding": "utf-8"}
    assert answer.metadata["path"] == "/workspace/data/output/result.json"
    assert (answer.metadata["size_bytes"], answer.metadata["media_type"]) == (14, "application/json")


@requirement("R-02")
def test_what_is_not_text_comes_as_base64_and_says_so(files: Toolbox, directory: Path) -> None:
    (directory / "image.png").write_bytes(PNG)
    answer = done(files, "read_file", path="image.png")
    assert answer.data["encoding"] == "base64"
    assert base64.b64decode(answer.data["content"]) == PNG
    assert answer.metadata["media_type"] == "image/png"


@requirement("R-17")
def test_bytes_that_are_no_utf_8_come_as_base64(files: Toolbox, directory: Path) -> None:
    (directory / "old.txt").write_bytes(b"gr\xfcn")
    assert data(files, "read_file", path="old.txt")["encoding"] == "base64"
    assert data(files, "read_file", path="old.txt", encoding="latin-1") == {
        "content": "grün",
        "encoding": "latin-1",
    }


@requirement("R-17")
def test_a_binary_file_requested_as_text_is_refused_with_advice(files: Toolbox, directory: Path) -> None:
    (directory / "old.txt").write_bytes(b"gr\xfcn")
    answer = refused(files, "read_file", "text.encoding", path="old.txt", encoding="utf-8")
    assert answer.error is not None
    assert answer.error.startswith("Unable to decode 'old.txt' with encoding 'utf-8'")
    assert answer.metadata["next"] == "Use encoding base64."


def test_any_file_can_be_requested_as_base64(files: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = Hello")
    assert data(files, "read_file", path="a.txt", encoding="base64") == {
        "content": "SGVsbG8=",
        "encoding": "base64",
    }


@requirement("R-18")
def test_white_space_and_characters_of_many_bytes_survive(files: Toolbox, directory: Path) -> None:
    for content in ("  hello \n\n", "世界" * 30_000, "", "\r\n", "\ufeffbom"):
        (directory / "f").write_bytes(content.encode())
        assert data(files, "read_file", path="f") == {"content": content, "encoding": "utf-8"}


def test_an_answer_is_never_cut(workspace: Workspace, directory: Path) -> None:
    (directory / "long.txt").write_bytes(b"x" * 5000)
    with Toolbox(workspace, profile="files", answer_bytes=100) as toolbox:
        answer = done(toolbox, "read_file", path="long.txt")
    assert answer.data["content"] == "x" * 5000
    assert "truncated" not in answer.metadata


def test_a_model_reads_a_long_text_in_parts(workspace: Workspace, directory: Path) -> None:
    text = "".join(f"zeile {number} ü\n" for number in range(100))
    (directory / "f.yaml").write_text(text)
    with Toolbox(workspace, profile="files", answer_bytes=500) as toolbox:
        answer = done(toolbox, "read_file", path="f.yaml")
        assert answer.data["content"] == text
        shown = ""
        while note := answer.metadata.get("note"):
            assert answer.model_text is not None
            assert len(answer.model_text.encode()) <= 500
            shown += answer.model_text
            assert answer.text() == f"{answer.model_text}{note}"
            assert note.startswith("[Cut: ")
            answer = done(toolbox, "read_file", path="f.yaml", cursor=note.split("'")[1])
            assert answer.data["content"] == text[len(shown) :]
    assert shown + answer.text() == text


def test_a_cursor_does_not_go_on_in_another_version(workspace: Workspace) -> None:
    workspace.write("f", b"a\n" * 500)
    with Toolbox(workspace, profile="files", answer_bytes=500) as toolbox:
        note = done(toolbox, "read_file", path="f").metadata["note"]
        workspace.write("f", b"b\n" * 500)
        refused(toolbox, "read_file", "path.changed", path="f", cursor=note.split("'")[1])


def test_a_model_reads_a_text_as_it_is_and_no_base64(files: Toolbox, directory: Path) -> None:
    (directory / "image.png").write_bytes(PNG)
    (directory / "a.json").write_text('{"a": "\\n"}\n')
    (directory / "empty").write_text("")
    assert done(files, "read_file", path="a.json").text() == '{"a": "\\n"}\n'
    assert done(files, "read_file", path="empty").text() == "[The file is empty]"
    shown = done(files, "read_file", path="image.png").text()
    assert shown.endswith(": image/png, 16 bytes. It is incomplete or not valid, so it cannot be shown]")
    assert base64.b64decode(done(files, "read_file", path="image.png", encoding="base64").text()) == PNG


@requirement("R-19")
def test_10_mb_are_read_whole(files: Toolbox, directory: Path) -> None:
    content = b"0123456789abcde\n" * (10 * 2**20 // 16)
    (directory / "large.txt").write_bytes(content)
    assert data(files, "read_file", path="large.txt")["content"].encode() == content


@requirement("R-01")
def test_reading_changes_nothing(files: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = Hello")
    before = (directory / "a.txt").stat()
    answer = done(files, "read_file", path="a.txt")
    after = (directory / "a.txt").stat()
    assert (before.st_mtime_ns, before.st_ino, before.st_size) == (
        after.st_mtime_ns,
        after.st_ino,
        after.st_size,
    )
    assert "changes" not in answer.metadata


def test_the_version_is_that_of_the_workspace(files: Toolbox, workspace: Workspace) -> None:
    info = workspace.write("a.txt", b"1")
    assert done(files, "read_file", path="a.txt").metadata["version"] == info.version


@requirement("R-04")
def test_a_missing_file_is_named_and_the_next_step_reported(files: Toolbox) -> None:
    answer = refused(files, "read_file", "path.missing", path="data.txt")
    assert answer.error == "File not found: data.txt. Use list_directory to see what is there."


@requirement("R-05")
def test_a_directory_is_not_a_file(files: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    answer = refused(files, "read_file", "path.is_directory", path="d")
    assert answer.error == "Path is a directory, not a file: d. Use list_directory to see what is in it."


@pytest.mark.parametrize("encoding", ["utf-16", "rot13", "UTF-8", ""])
def test_an_encoding_that_is_not_offered_is_refused_by_name(files: Toolbox, encoding: str) -> None:
    answer = refused(files, "read_file", "tool.arguments", path="a", encoding=encoding)
    assert answer.error is not None
    assert "'encoding' must be one of utf-8, ascii, latin-1, base64" in answer.error


@requirement("R-08")
@pytest.mark.parametrize(("allowed", "asked", "most"), [(100, 10, 10), (10, 100, 10)])
def test_the_lower_of_both_ceilings_holds(directory: Path, allowed: int, asked: int, most: int) -> None:
    (directory / "ten").write_bytes(b"x" * 10)
    (directory / "more").write_bytes(b"x" * 11)
    with (
        Workspace.open(directory, limits=Limits(read_bytes=allowed)) as workspace,
        Toolbox(workspace, profile="files", max_file_size=asked) as toolbox,
    ):
        assert data(toolbox, "read_file", path="ten")["content"] == "x" * 10
        answer = refused(toolbox, "read_file", "limit.read_bytes", path="more")
    assert answer.error == f"File too large: 11 bytes (max {most}). Choose a smaller file."
    assert (answer.metadata["limit"], answer.metadata["asked"]) == (most, 11)
