"""Every kind of change, and something to change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from carrel.policy.rules import Access
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.workspace.archives import directory, file, link, tar

NEW = b"new content"


def planted(sessions: WorkspaceManager) -> str:
    """A new session with something of everything in it; its id."""
    with sessions.create() as workspace:
        plant(workspace)
        assert workspace.session_id is not None
        return workspace.session_id


def plant_allowed(directory: Path) -> None:
    directory.mkdir()
    (directory / "f").write_bytes(b"from outside")


def make_link(workspace: Workspace, path: str, target: str) -> None:
    files, where = workspace.gate.permit(Access.WRITE, path)
    files.link(where, target)


def plant(workspace: Workspace) -> None:
    """Something of everything."""
    workspace.write("f", b"old")
    workspace.write("g", b"other content")
    workspace.write("d/x", b"xxx")
    workspace.write("d/e/y", b"yyyy")
    workspace.mkdir("empty")
    make_link(workspace, "s", "f")
    make_link(workspace, "d/s", "x")


CHANGES: dict[str, Callable[[Workspace, Path], object]] = {
    "write": lambda workspace, _: workspace.write("new", NEW),
    "write without overwriting": lambda workspace, _: workspace.write("new", NEW, overwrite=False),
    "write over": lambda workspace, _: workspace.write("f", NEW),
    "write the same": lambda workspace, _: workspace.write("f", b"old"),
    "write through a link": lambda workspace, _: workspace.write("s", NEW),
    "write with parents": lambda workspace, _: workspace.write("p/q/new", NEW),
    "write by chunks": lambda workspace, _: workspace.write_chunks("p/new", [NEW, NEW]),
    "append": lambda workspace, _: workspace.append("f", NEW),
    "append through a link": lambda workspace, _: workspace.append("s", NEW),
    "append to a new one": lambda workspace, _: workspace.append("p/new", NEW),
    "edit": lambda workspace, _: workspace.edit("f", "old", "other"),
    "mkdir": lambda workspace, _: workspace.mkdir("p"),
    "mkdir with parents": lambda workspace, _: workspace.mkdir("p/q/r"),
    "link": lambda workspace, _: make_link(workspace, "l", "d/x"),
    "remove": lambda workspace, _: workspace.remove("f"),
    "remove a link": lambda workspace, _: workspace.remove("s"),
    "remove a directory": lambda workspace, _: workspace.remove("empty"),
    "remove a tree": lambda workspace, _: workspace.remove("d", recursive=True),
    "move": lambda workspace, _: workspace.move("f", "d/f"),
    "move over": lambda workspace, _: workspace.move("f", "g", overwrite=True),
    "move a directory": lambda workspace, _: workspace.move("d", "empty/d"),
    "move a directory over": lambda workspace, _: workspace.move("d", "empty", overwrite=True),
    "copy": lambda workspace, _: workspace.copy("f", "p/f"),
    "copy over": lambda workspace, _: workspace.copy("f", "g", overwrite=True),
    "copy a tree": lambda workspace, _: workspace.copy("d", "c", recursive=True),
    "copy from another rule": lambda workspace, allowed: workspace.copy(allowed / "f", "c"),
    "copy to another rule": lambda workspace, allowed: workspace.copy("f", allowed / "c"),
    "move from another rule": lambda workspace, allowed: workspace.move(allowed / "f", "c"),
    "move to another rule": lambda workspace, allowed: workspace.move("d", allowed / "c"),
    "extract": lambda workspace, _: workspace.extract(
        tar(directory("p"), file("p/h"), link("p/l", "h"), file("f")), overwrite=True
    ),
}
