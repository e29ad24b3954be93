"""The calls of the reference filesystem server, by its names and with its arguments."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from mcp_types import EmbeddedResource, ImageContent, TextContent

from tests.fronts.mcp.conftest import Near
from tests.fronts.mcp.talk import Talk

NAMES = {
    "read_file",
    "read_text_file",
    "read_media_file",
    "read_multiple_files",
    "write_file",
    "edit_file",
    "create_directory",
    "list_directory",
    "list_directory_with_sizes",
    "directory_tree",
    "move_file",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.fixture
def talk(near: Near) -> Talk:
    """A client that was written for the reference server."""
    talk = near(profiles=("mcp",), role="developer", session="s1")
    talk.call("write_file", path="/workspace/a.txt", content="one\ntwo\nthree\n")
    talk.call("create_directory", path="sub/deep")
    talk.call("write_file", path="sub/b.md", content="b")
    return talk


def said(talk: Talk, tool: str, **arguments: object) -> str:
    """The text of an answer, which a program finds as `content`, as the reference server has it."""
    answer = talk.call(tool, **arguments)
    assert not answer.is_error, answer
    (content,) = answer.content
    assert isinstance(content, TextContent)
    assert answer.structured_content["content"] == content.text
    return content.text


def test_the_tools_are_its_fourteen_and_take_its_arguments(talk: Talk) -> None:
    tools = {tool.name: tool for tool in talk.run(talk.client.list_tools).tools}
    assert tools.keys() == NAMES
    arguments = {name: set(tool.input_schema["properties"]) for name, tool in tools.items()}
    assert arguments["read_text_file"] >= {"path", "head", "tail"}
    assert arguments["edit_file"] >= {"path", "edits", "dryRun"}
    assert arguments["directory_tree"] == {"path", "excludePatterns"}
    assert arguments["search_files"] == {"path", "pattern", "excludePatterns"}
    assert arguments["list_directory_with_sizes"] == {"path", "sortBy"}
    assert arguments["move_file"] == {"source", "destination"}
    assert arguments["list_allowed_directories"] == set()
    for tool in tools.values():
        assert tool.output_schema is not None
        assert "content" in tool.output_schema["required"]


def test_text_is_read_whole_or_from_one_end(talk: Talk) -> None:
    assert said(talk, "read_text_file", path="a.txt") == "one\ntwo\nthree\n"
    assert said(talk, "read_file", path="/workspace/a.txt") == "one\ntwo\nthree\n"
    assert said(talk, "read_text_file", path="a.txt", head=1) == "one\n"
    assert said(talk, "read_text_file", path="a.txt", tail=1) == "three\n"
    assert "together" in talk.text("read_text_file", path="a.txt", head=1, tail=1)


def test_several_files_are_read_and_one_that_is_missing_says_so(talk: Talk) -> None:
    text = said(talk, "read_multiple_files", paths=["a.txt", "none"])
    assert text.startswith("a.txt:\none\n")
    assert "\n---\nnone: Error - " in text


def test_an_image_is_an_image(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "sessions" / "s1" / "p.png").write_bytes(PIXEL)
    answer = talk.call("read_media_file", path="p.png")
    (image,) = answer.content
    assert isinstance(image, ImageContent)
    assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", PIXEL)
    assert answer.structured_content["content"] == [
        {"type": "image", "data": image.data, "mimeType": "image/png"}
    ]


def test_what_is_no_image_comes_as_a_file(talk: Talk) -> None:
    answer = talk.call("read_media_file", path="sub/b.md")
    (file,) = answer.content
    assert isinstance(file, EmbeddedResource)
    assert file.resource.uri == "carrel:///sub/b.md"


def test_edits_give_a_diff_and_a_dry_run_changes_nothing(talk: Talk) -> None:
    edits = [{"oldText": "two", "newText": "2"}]
    diff = said(talk, "edit_file", path="a.txt", edits=edits, dryRun=True)
    assert "-two\n+2\n" in diff
    assert said(talk, "read_text_file", path="a.txt") == "one\ntwo\nthree\n"
    assert said(talk, "edit_file", path="a.txt", edits=edits) == diff
    assert said(talk, "read_text_file", path="a.txt") == "one\n2\nthree\n"


def test_directories_are_listed_in_its_ways(talk: Talk) -> None:
    assert said(talk, "list_directory", path=".").splitlines() == ["[FILE] a.txt", "[DIR] sub"]
    assert "[FILE] a.txt" in said(talk, "list_directory_with_sizes", path=".", sortBy="size")
    assert json.loads(said(talk, "directory_tree", path=".", excludePatterns=["deep"])) == [
        {"name": "a.txt", "type": "file"},
        {"name": "sub", "type": "directory", "children": [{"name": "b.md", "type": "file"}]},
    ]
    assert said(talk, "search_files", path=".", pattern="*.md") == "/workspace/sub/b.md"
    assert "size: 14" in said(talk, "get_file_info", path="a.txt").splitlines()
    assert said(talk, "list_allowed_directories") == "Allowed directories:\n/workspace"


def test_files_are_moved_and_directories_made(talk: Talk) -> None:
    said(talk, "move_file", source="a.txt", destination="sub/c.txt")
    said(talk, "create_directory", path="x/y")
    assert said(talk, "list_directory", path="sub").splitlines() == [
        "[FILE] b.md",
        "[FILE] c.txt",
        "[DIR] deep",
    ]


def test_what_it_would_refuse_is_refused(talk: Talk) -> None:
    for path in ("/etc/passwd", "../outside"):
        answer = talk.call("read_text_file", path=path)
        assert answer.is_error
        assert "content" not in answer.structured_content
