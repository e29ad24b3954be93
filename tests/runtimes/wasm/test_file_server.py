"""The host answers file operations through the gate, also those that no honest worker would ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from carrel.runtimes.wasm.file_server import _MAX_READERS, PIECE_BYTES, FileServer
from carrel.runtimes.wasm.protocol import PIECE
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

OPERATIONS = (
    "stat",
    "list",
    "read",
    "piece",
    "edit",
    "create",
    "replace",
    "append",
    "mkdir",
    "remove",
    "rmdir",
)


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


# Large files


def open_large(mount: FileServer, directory: Path, name: str = "large") -> str:
    """Make a file that is served in pieces, and open it; return its version."""
    (directory / name).write_bytes(b"first" + bytes(2 * PIECE_BYTES) + b"last")
    head, body = mount.answer({"operation": "read", "path": f"/app/{name}"}, b"")
    assert (head["size"], head["piece_bytes"], body) == (2 * PIECE_BYTES + 9, PIECE_BYTES, b"")
    return str(head["version"])


def piece(mount: FileServer, version: str, offset: int, length: int, path: str = "/app/large") -> object:
    """A piece of a file, or the name of the error."""
    about: dict[str, object] = {"operation": "piece", "path": path, "target": version}
    head, body = mount.answer(about, PIECE.pack(offset, length))
    return head.get("error", body)


def test_a_large_file_is_served_in_pieces(mount: FileServer, directory: Path) -> None:
    version = open_large(mount, directory)
    assert piece(mount, version, 0, 5) == b"first"
    assert piece(mount, version, 2 * PIECE_BYTES + 5, 100) == b"last"
    assert piece(mount, version, 0, 2**32 - 1) == b"first" + bytes(PIECE_BYTES - 5)


@pytest.mark.parametrize("offset", [2 * PIECE_BYTES + 9, 2**40, 2**63, 2**64 - 1])
def test_after_the_end_of_a_file_there_is_nothing(mount: FileServer, directory: Path, offset: int) -> None:
    assert piece(mount, open_large(mount, directory), offset, 100) == b""


def test_the_opened_version_is_served_while_it_is_kept_open(mount: FileServer, directory: Path) -> None:
    version = open_large(mount, directory)
    (directory / "large").unlink()
    (directory / "large").write_bytes(b"other" * PIECE_BYTES)
    assert piece(mount, version, 0, 5) == b"first"


@pytest.mark.attack
def test_a_version_that_is_gone_is_stale(mount: FileServer, directory: Path) -> None:
    version = open_large(mount, directory)
    for number in range(_MAX_READERS):
        open_large(mount, directory, f"large{number}")
    assert piece(mount, version, 0, 5) == b"first"
    mount.close()
    with open(directory / "large", "ab") as file:
        file.write(b"more")
    assert piece(mount, version, 0, 5) == "ESTALE"
    assert piece(mount, "", 0, 5) == "ESTALE"
    (directory / "large").unlink()
    assert piece(mount, version, 0, 5) == "ENOENT"


def test_few_large_files_are_kept_open(mount: FileServer, directory: Path) -> None:
    versions = [open_large(mount, directory, f"large{number}") for number in range(2 * _MAX_READERS)]
    opened = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    assert sum(path.startswith(str(directory / "large")) for path in opened) == _MAX_READERS
    for number, version in enumerate(versions):
        assert piece(mount, version, 0, 5, f"/app/large{number}") == b"first"
    mount.close()
    opened = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    assert not any(path.startswith(str(directory / "large")) for path in opened)


@pytest.mark.attack
@pytest.mark.parametrize("body", [b"", b"data", bytes(100)])
def test_a_piece_without_its_place_is_refused(mount: FileServer, directory: Path, body: bytes) -> None:
    about: dict[str, object] = {"operation": "piece", "path": "/app/large"}
    about["target"] = open_large(mount, directory)
    assert mount.answer(about, body)[0] == {"error": "EINVAL"}


@pytest.mark.parametrize(
    ("read_bytes", "is_in_pieces"), [(1_000, True), (1, True), (0, False), (None, False)]
)
def test_the_limit_of_a_read_is_that_of_a_piece(
    directory: Path, read_bytes: int | None, is_in_pieces: bool
) -> None:
    (directory / "f").write_bytes(b"x" * 2_000)
    with Workspace.open(directory, limits=Limits(read_bytes=read_bytes)) as workspace:
        mount = FileServer(workspace, mount_path="/app")
        head, body = mount.answer({"operation": "read", "path": "/app/f"}, b"")
        assert head.get("piece_bytes") == (read_bytes if is_in_pieces else None)
        if is_in_pieces:
            assert piece(mount, str(head["version"]), 0, 2_000, "/app/f") == b"x" * (read_bytes or 0)
        elif read_bytes == 0:
            assert head == {"error": "EFBIG"}
        else:
            assert body == b"x" * 2_000
        mount.close()


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
