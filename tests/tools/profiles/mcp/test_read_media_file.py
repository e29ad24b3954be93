"""`read_media_file`: an image or a sound, as base64."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused

PNG = bytes.fromhex("89504e470d0a1a0a0000000d494844520000001000000020")


def test_an_image_comes_with_media_type_size_and_version(
    mcp: Toolbox, workspace: Workspace, directory: Path
) -> None:
    (directory / "a.png").write_bytes(PNG)
    answer = done(mcp, "read_media_file", path="a.png")
    assert answer.output == base64.b64encode(PNG).decode()
    assert answer.metadata == {
        "path": "/workspace/a.png",
        "size_bytes": len(PNG),
        "version": workspace.stat("a.png").version,
        "encoding": "base64",
        "media_type": "image/png",
        "width": 16,
        "height": 32,
    }


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.mp3", b"\xff\xfb\0", "audio/mpeg"),
        ("a.wav", b"RIFF\0\0\0\0WAVE", "audio/wav"),
        ("a.svg", b"<svg/>", "image/svg+xml"),
        ("a.txt", b"text", "text/plain"),
        ("unknown", b"\0", "application/octet-stream"),
    ],
)
def test_the_media_type_is_reported(
    mcp: Toolbox, directory: Path, name: str, content: bytes, kind: str
) -> None:
    (directory / name).write_bytes(content)
    answer = done(mcp, "read_media_file", path=name)
    assert base64.b64decode(answer.output) == content
    assert answer.metadata["media_type"] == kind


def test_it_comes_whole_or_not_at_all(workspace: Workspace, directory: Path) -> None:
    (directory / "a.png").write_bytes(PNG)
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=10)
    assert base64.b64decode(done(mcp, "read_media_file", path="a.png").output) == PNG
    small = Toolbox(workspace, profile="mcp", max_file_size=len(PNG) - 1)
    told = refused(small, "read_media_file", "limit.read_bytes", path="a.png")
    assert told == f"File too large: {len(PNG)} bytes (max {len(PNG) - 1}). Choose a smaller file."


def test_what_is_not_there_or_no_file_is_refused(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "d/")
    refused(mcp, "read_media_file", "path.missing", path="none.png")
    refused(mcp, "read_media_file", "path.is_directory", path="d")
