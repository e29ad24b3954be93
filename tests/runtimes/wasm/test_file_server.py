"""The host answers file operations through the gate, also those that no honest worker would ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from carrel.runtimes.wasm.file_server import FileServer
from carrel.workspace.workspace import Workspace

OPERATIONS = ("stat", "list", "read", "edit", "create", "replace", "append", "mkdir", "remove", "rmdir")


@pytest.fixture
def mount(workspace: Workspace) -> FileServer:
    return FileServer(workspace, mount_path="/app")


def ask(mount: FileServer, operation: object, path: object, target: object = "") -> object:
    """The error of an operation by its name, or `None`."""
    return mount.answer({"operation": operation, "path": path, "target": target}, b"data")[0].get("error")


@pytest.mark.attack
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "path",
    [
        "/app/../outside/secret",
        "/workspace/../../etc/passwd",
        "/app/sub/../../outside/secret",
        "/app//outside/../../outside/secret",
        "/etc/passwd",
        "etc/passwd",
        "../outside/secret",
        "/app/..",
        "/application/secret",
        "/app\\..\\outside",
        "/app/nul\0",
        "",
        "/",
        ".",
        None,
        7,
        ["/app/a"],
        "/app/" + "a/" * 5_000,
    ],
)
def test_no_path_leads_out(
    mount: FileServer, directory: Path, outside: Path, operation: str, path: object
) -> None:
    (directory / "sub").mkdir()
    if operation not in ("stat", "list") or path not in ("", "/"):
        assert ask(mount, operation, path) is not None
    assert ask(mount, "rename", "/app/sub", path) is not None
    assert ask(mount, "rename", path, "/app/new") is not None
    assert os.listdir(directory) == ["sub"]
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret data"


@pytest.mark.parametrize("operation", [None, "", "READ", "chmod", "answer", "__init__", 1])
def test_an_unknown_operation_is_not_there(mount: FileServer, operation: object) -> None:
    assert ask(mount, operation, "/app/a") == "ENOSYS"


@pytest.mark.attack
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_workspace_itself_stays(mount: FileServer, directory: Path, operation: str) -> None:
    ask(mount, operation, "/app")
    ask(mount, "rename", "/app", "/app/new")
    ask(mount, "rename", "/app/new", "/app")
    assert os.listdir(directory) == []


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(
    mount: FileServer, workspace: Workspace, directory: Path
) -> None:
    assert ask(mount, "create", "/app/a") is None
    workspace.write("a", b"theirs")
    assert ask(mount, "replace", "/app/a") is not None
    assert (directory / "a").read_bytes() == b"theirs"
    assert ask(mount, "read", "/app/a") is None
    assert ask(mount, "replace", "/app/a") is None
    assert (directory / "a").read_bytes() == b"data"


def test_names_that_are_no_text_are_not_told(mount: FileServer, directory: Path) -> None:
    (directory / "fine").touch()
    (directory / os.fsdecode(b"caf\xe9")).touch()
    assert json.loads(mount.answer({"operation": "list", "path": "/app"}, b"")[1]) == [["fine", "file"]]
