"""Images are shown as images: those that were read, and those that a run created."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from carrel.tools.core.formats import Format
from carrel.tools.results.media import MAX_IMAGE_BYTES, MAX_IMAGE_SIDE
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolImage, ToolResult
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.tools.images import WHOLE, png

READS: dict[str, tuple[str, dict[str, str]]] = {
    "agent": ("file_read", {"path": "p"}),
    "files": ("read_file", {"path": "p"}),
    "coding": ("read", {"file_path": "p"}),
    "editor": ("str_replace_based_edit_tool", {"command": "view", "path": "p"}),
    "mcp": ("read_media_file", {"path": "p"}),
}


def read(workspace: Workspace, profile: str, content: bytes, **more: object) -> ToolResult:
    """Write *content* and read it with the tool of *profile*."""
    workspace.write("p", content)
    name, arguments = READS[profile]
    with Toolbox(workspace, profile=profile) as toolbox:
        return toolbox.call(name, {**arguments, **more})


@requirement("R-25")
@pytest.mark.parametrize("profile", READS)
@pytest.mark.parametrize("kind", WHOLE)
def test_an_image_that_was_read_is_shown(workspace: Workspace, profile: str, kind: str) -> None:
    result = read(workspace, profile, WHOLE[kind])
    (image,) = result.images
    assert (image.path, image.media_type, image.width, image.height) == ("/workspace/p", kind, 2, 1)
    assert base64.b64decode(image.data) == WHOLE[kind]
    size = len(WHOLE[kind])
    assert image.size_bytes == size
    assert result.text() == f"[Image /workspace/p: {kind}, {size} bytes, 2 x 1 pixels]"
    program = result.output if result.data is None else result.data["content"]
    assert program == image.data


@pytest.mark.parametrize("profile", READS)
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(png()[:-20], id="incomplete png"),
        pytest.param(WHOLE["image/jpeg"][:-2], id="incomplete jpeg"),
        pytest.param(WHOLE["image/gif"][:-1], id="incomplete gif"),
        pytest.param(WHOLE["image/webp"][:-3], id="incomplete webp"),
        pytest.param(png(0, 1), id="no pixels"),
        pytest.param(b"BM" + bytes(12) + (40).to_bytes(4, "little") + bytes(12), id="bitmap"),
        pytest.param(b"a\0b", id="no image"),
    ],
)
def test_what_a_provider_would_refuse_is_described(
    workspace: Workspace, profile: str, content: bytes
) -> None:
    result = read(workspace, profile, content)
    assert result.images == ()
    assert "It is not text" in result.text() or "It is incomplete or not valid" in result.text()


@pytest.mark.parametrize(
    ("content", "is_shown"),
    [
        (png(more_bytes=MAX_IMAGE_BYTES - len(png()) - 12), True),
        (png(more_bytes=MAX_IMAGE_BYTES - len(png()) - 11), False),
        (png(MAX_IMAGE_SIDE, 1), True),
        (png(1, MAX_IMAGE_SIDE + 1), False),
    ],
)
def test_a_large_image_is_described_with_what_to_do(
    workspace: Workspace, content: bytes, is_shown: bool
) -> None:
    result = read(workspace, "agent", content)
    assert len(result.images) == is_shown
    assert ("make a copy of at most 2097152 bytes and 8000 pixels a side" in result.text()) is not is_shown
    assert f" {len(content)} bytes, " in result.text()


def test_base64_that_was_requested_is_a_text(workspace: Workspace) -> None:
    result = read(workspace, "agent", png(), encoding="base64")
    assert (base64.b64decode(result.text()), result.images) == (png(), ())


DATA = base64.b64encode(png()).decode()
URL = f"data:image/png;base64,{DATA}"
IMAGE = ToolImage(path="/workspace/p", media_type="image/png", size_bytes=9, width=2, height=1, data=DATA)


@requirement("R-25")
@pytest.mark.parametrize(
    ("format", "text_type", "block"),
    [
        ("json", "text", {"type": "image", "media_type": "image/png", "data": DATA}),
        ("openai", "text", {"type": "image_url", "image_url": {"url": URL}}),
        ("openai-responses", "input_text", {"type": "input_image", "detail": "auto", "image_url": URL}),
        (
            "anthropic",
            "text",
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
        ),
        ("mcp", "text", {"type": "image", "data": DATA, "mimeType": "image/png"}),
    ],
)
def test_the_blocks_are_those_of_the_provider(format: str, text_type: str, block: dict[str, Any]) -> None:
    result = ToolResult(success=True, output="x", model_text="shown", images=(IMAGE,))
    assert (
        result.content(format)
        == result.content(Format(format))
        == [
            {"type": text_type, "text": "shown"},
            block,
        ]
    )
    assert ToolResult(success=True).content(format) == [{"type": text_type, "text": "[Empty]"}]


def test_there_are_blocks_for_every_format_of_the_schemas() -> None:
    for format in Format:
        assert ToolResult(success=False, error="No").content(format)[0]["text"] == "No"
    with pytest.raises(ValueError, match="format must be one of json, openai, "):
        ToolResult(success=True).content("gemini")


def test_the_envelope_has_the_images(workspace: Workspace) -> None:
    (image,) = read(workspace, "agent", png()).to_dict()["images"]
    assert image == {
        "path": "/workspace/p",
        "media_type": "image/png",
        "size_bytes": len(png()),
        "width": 2,
        "height": 1,
        "data": DATA,
    }
    assert "images" not in ToolResult(success=True).to_dict()


# Images that a run created


@pytest.mark.parametrize("profile", ["agent", "coding", "editor"])
def test_an_image_that_a_run_created_is_shown(workspace: Workspace, directory: Path, profile: str) -> None:
    (directory / "a").write_bytes(png())
    with Toolbox(workspace, profile=profile) as toolbox:
        result = toolbox.call("bash", {"command": "cp a plot.png"})
        assert [image.path for image in result.images] == ["/workspace/plot.png"]
        assert base64.b64decode(result.images[0].data) == png()
        size = len(png())
        assert (
            result.text()
            == f"[No output]\n[Image /workspace/plot.png: image/png, {size} bytes, 2 x 1 pixels]"
        )
        for command in ("ls", "mv plot.png b.png", "touch b.png", "rm b.png", "cp a a.txt"):
            assert toolbox.call("bash", {"command": command}).images == ()


def test_what_is_no_image_or_too_large_is_not_attached_to_a_run(
    workspace: Workspace, directory: Path
) -> None:
    (directory / "text").write_text("x")
    (directory / "large").write_bytes(png(more_bytes=MAX_IMAGE_BYTES))
    (directory / "half").write_bytes(png(more_bytes=MAX_IMAGE_BYTES // 2))
    with Toolbox(workspace, pipelines=True) as toolbox:
        for name in ("text", "large"):
            assert toolbox.call("bash", {"command": f"cp {name} p.png"}).images == ()
        result = toolbox.call("bash", {"command": "cp half 1.png && cp half 2.png && cp half 3.png"})
        assert [image.path for image in result.images] == ["/workspace/1.png"]


def test_of_many_images_a_model_is_told_to_choose(workspace: Workspace, directory: Path) -> None:
    (directory / "a").write_bytes(png())
    with Toolbox(workspace, pipelines=True) as toolbox:
        few = toolbox.call("bash", {"command": " && ".join(f"cp a {number}.png" for number in range(4))})
        many = toolbox.call("bash", {"command": " && ".join(f"cp a x{number}.png" for number in range(5))})
    assert len(few.images) == 4
    assert many.images == ()
    assert many.text() == "[No output]\n[5 images were written: read those that you want to see]"


def test_a_file_that_was_written_is_not_shown_again(workspace: Workspace) -> None:
    arguments = {"path": "a.png", "content": DATA, "encoding": "base64"}
    with Toolbox(workspace) as toolbox:
        assert toolbox.call("file_write", arguments).images == ()
