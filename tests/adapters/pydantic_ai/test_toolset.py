"""`CarrelToolset` offers the tools of a role, and gives the model something to act on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import BinaryImage, ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from carrel.adapters.pydantic_ai import CarrelToolset, CarrelWorkspace
from carrel.policy.roles import Role
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.images import png

CTX = RunContext(deps=None, model=TestModel(), usage=RunUsage(), max_retries=3)


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[CarrelWorkspace]:
    with CarrelWorkspace(workspace_root=tmp_path / "sessions") as backend:
        yield backend


def call(toolset: CarrelToolset[None], name: str, arguments: dict[str, Any]) -> str | list[str | BinaryImage]:
    async def main() -> str | list[str | BinaryImage]:
        tools = await toolset.get_tools(CTX)
        tool = tools.get(name) or next(iter(tools.values()))
        return await toolset.call_tool(name, arguments, CTX, tool)

    return asyncio.run(main())


def test_the_tools_are_those_of_the_role_as_the_toolbox_describes_them(workspace: Workspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(workspace, "critic", id="files")
    tools = asyncio.run(toolset.get_tools(CTX))
    told = {
        name: (tool.tool_def.description, tool.tool_def.parameters_json_schema)
        for name, tool in tools.items()
    }
    schemas = Toolbox(workspace, "critic").schemas("anthropic")
    assert told == {tool["name"]: (tool["description"], tool["input_schema"]) for tool in schemas}
    assert toolset.id == "files"
    assert {tool.max_retries for tool in tools.values()} == {3}
    retried: CarrelToolset[None] = CarrelToolset(workspace, "critic", max_retries=7)
    assert {tool.max_retries for tool in asyncio.run(retried.get_tools(CTX)).values()} == {7}


def test_a_profile_names_the_tools_otherwise(workspace: Workspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(workspace, profile="coding")
    assert "read" in asyncio.run(toolset.get_tools(CTX))


def test_nothing_is_made_before_the_tools_are_asked_for(tmp_path: Path) -> None:
    backend = CarrelWorkspace(workspace_root=tmp_path / "sessions")
    toolset: CarrelToolset[None] = CarrelToolset(backend)
    assert list(tmp_path.iterdir()) == []
    with backend:
        asyncio.run(toolset.get_tools(CTX))
        assert backend.ref is not None
    toolset.close()


def test_tools_and_workspace_have_the_same_files(backend: CarrelWorkspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(backend)
    assert call(toolset, "file_write", {"path": "a.txt", "content": "hello"}) == "/workspace/a.txt"
    assert asyncio.run(backend.read_bytes("/workspace/a.txt")) == b"hello"
    assert call(toolset, "bash", {"command": "cat a.txt"}) == "hello"


def test_an_image_is_an_image_of_the_framework(backend: CarrelWorkspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(backend)
    backend.open().write("p.png", png())
    size = len(png())
    shown = call(toolset, "file_read", {"path": "p.png"})
    assert isinstance(shown, list)
    text, image = shown
    assert text == f"[Image /workspace/p.png: image/png, {size} bytes, 2 x 1 pixels]"
    assert isinstance(image, BinaryImage)
    assert (image.data, image.media_type, image.identifier) == (png(), "image/png", "/workspace/p.png")


def test_what_cannot_be_done_is_a_failed_tool_with_advice(backend: CarrelWorkspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(backend)
    with pytest.raises(ToolFailed, match=r"File not found: b\.txt\. Use file_list"):
        call(toolset, "file_read", {"path": "b.txt"})
    with pytest.raises(ToolFailed, match="is not allowed"):
        call(toolset, "file_read", {"path": "../b.txt"})


def test_wrong_arguments_are_asked_for_again(backend: CarrelWorkspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(backend)
    with pytest.raises(ModelRetry, match="'path' is missing"):
        call(toolset, "file_read", {})


@pytest.mark.attack
def test_a_tool_that_the_role_does_not_have_cannot_be_called(backend: CarrelWorkspace) -> None:
    toolset: CarrelToolset[None] = CarrelToolset(backend, Role("reader", ("file_read", "bash")))
    with pytest.raises(ModelRetry, match="There is no tool 'file_write'"):
        call(toolset, "file_write", {"path": "a", "content": "b"})
    with pytest.raises(ToolFailed, match="read-only workspace"):
        call(toolset, "bash", {"command": "touch a"})
    assert asyncio.run(backend.list_dir("/workspace")) == []


def test_a_workspace_that_is_read_only_is_so_for_its_tools(tmp_path: Path) -> None:
    with CarrelWorkspace(workspace_root=tmp_path / "sessions", mode="ro") as backend:
        toolset: CarrelToolset[None] = CarrelToolset(backend)
        with pytest.raises(ToolFailed, match="read-only here"):
            call(toolset, "file_write", {"path": "a", "content": "b"})


def test_a_configured_service_is_not_asked_about_files_that_are_here(
    backend: CarrelWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_SANDBOX_ADDRESS", "127.0.0.1:9")
    toolset: CarrelToolset[None] = CarrelToolset(backend)
    assert call(toolset, "bash", {"command": "pwd"}) == "/workspace\n"
