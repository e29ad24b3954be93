"""`kill -9` in the middle of a write or a removal (E39)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carrel.fs.local.draft import ABANDONED_SECONDS
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.workspace.traces import drafts_in, sweep_all, trash_in

OLD = b"old content"
TOP = Path(__file__).parents[2]
LONG_AGO = 2 * ABANDONED_SECONDS


@contextmanager
def in_the_middle(work: str, workspace: Workspace) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has stopped in the middle of *work*; it is killed at the end, if not before."""
    directory = workspace.host_path(".")
    kind = "bare" if workspace.session_id is None else "session"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.victim", work, kind, str(directory)],
        cwd=TOP,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in the middle\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def kill_in_the_middle(work: str, workspace: Workspace) -> None:
    with in_the_middle(work, workspace):
        pass


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def make_links(place: Path) -> None:
    """Two directories with a link of the same name, to be copied one over the other."""
    for name, text in (("links", "new"), ("old-links", "old")):
        (place / name).mkdir()
        (place / name / "l").symlink_to(text)


def make_old(*paths: Path) -> None:
    """Let files look as if they were written long ago."""
    then = time.time() - LONG_AGO
    for path in paths:
        os.utime(path, (then, then), follow_symlinks=False)


@requirement("W-18")
@pytest.mark.parametrize("work", ["write", "write_new", "append"])
def test_a_writer_that_is_killed_leaves_the_old_content_and_nothing_in_the_workspace(
    workspace: Workspace, work: str
) -> None:
    workspace.write("old", OLD)
    place = workspace.host_path(".")
    kill_in_the_middle(work, workspace)
    assert [name for name in names(place) if not name.startswith("a")] == ["old"]
    assert [name for name in names(place) if (place / name).is_file()] == ["old"]
    assert workspace.read("old") == OLD


@requirement("W-18")
@pytest.mark.parametrize("work", ["publish", "write_named", "relink"])
def test_a_draft_that_a_killed_writer_left_in_a_bare_workspace_goes_when_it_is_opened_again(
    bare: Workspace, directory: Path, work: str
) -> None:
    bare.write("old", OLD)
    make_links(directory)
    kill_in_the_middle(work, bare)
    assert bare.read("old") == OLD
    make_old(*directory.iterdir())
    with Workspace.open(directory) as again:
        assert [info.path for info in again.walk()] == ["links", "links/l", "old", "old-links", "old-links/l"]
        assert again.stat("old-links/l", follow_symlinks=False).target == "old"


def test_a_draft_in_a_bare_workspace_stays_while_its_writer_lives(bare: Workspace, directory: Path) -> None:
    bare.write("old", OLD)
    with in_the_middle("write_named", bare):
        make_old(*directory.iterdir())
        Workspace.open(directory).close()
        assert len(os.listdir(directory)) == 2


@requirement("W-18")
@pytest.mark.parametrize("work", ["write", "publish", "relink"])
def test_a_draft_that_a_killed_writer_left_beside_a_session_is_cleared_when_it_is_old(
    session: Workspace, sessions: WorkspaceManager, work: str
) -> None:
    session.write("old", OLD)
    make_links(session.host_path("."))
    kill_in_the_middle(work, session)
    assert session.read("old") == OLD
    drafts = drafts_in(sessions.root)
    assert len(drafts) == 1
    sessions.sweep()
    assert drafts_in(sessions.root) == drafts, "it is young, so its writer may not have locked it yet"
    make_old(*drafts)
    sweep_all(sessions)
    assert drafts_in(sessions.root) == []
    assert names(session.host_path(".")) == ["links", "links/l", "old", "old-links", "old-links/l"]


def test_the_draft_of_a_living_writer_is_never_cleared(
    session: Workspace, sessions: WorkspaceManager
) -> None:
    session.write("old", OLD)
    with in_the_middle("write", session) as process:
        drafts = drafts_in(sessions.root)
        assert len(drafts) == 1
        make_old(*drafts)
        sessions.sweep()
        sessions.open("one").close()
        assert drafts_in(sessions.root) == drafts
        process.communicate(b"\n")
        assert process.returncode == 0
    assert drafts_in(sessions.root) == []
    assert session.read("old").startswith(b"new ")


def test_a_tree_that_a_killed_process_was_removing_is_cleared_at_once(
    session: Workspace, sessions: WorkspaceManager
) -> None:
    for number in range(100):
        session.write(f"tree/{number}/f", b"x")
    kill_in_the_middle("remove", session)
    assert names(session.host_path(".")) == [], "it was moved away before anything else"
    assert len(trash_in(sessions.root)) == 1
    sessions.sweep()
    assert trash_in(sessions.root) == []
    assert session.usage().entries == 0


def test_a_tree_in_the_trash_is_left_to_its_living_remover(
    session: Workspace, sessions: WorkspaceManager
) -> None:
    for number in range(100):
        session.write(f"tree/{number}/f", b"x")
    with in_the_middle("remove", session) as process:
        thrown = trash_in(sessions.root)
        assert len(thrown) == 1
        held = names(sessions.root / ".carrel/trash" / thrown[0])
        make_old(sessions.root / ".carrel/trash" / thrown[0])
        sessions.sweep()
        assert names(sessions.root / ".carrel/trash" / thrown[0]) == held
        process.communicate(b"\n" * 1000)
        assert process.returncode == 0
    assert trash_in(sessions.root) == []


def test_a_removal_that_was_cut_short_in_a_bare_workspace_can_be_repeated(bare: Workspace) -> None:
    for number in range(100):
        bare.write(f"tree/{number}/f", b"x")
    kill_in_the_middle("remove", bare)
    bare.remove("tree", recursive=True)
    assert bare.list() == []


@pytest.mark.usefixtures("session")
def test_a_leftover_that_cannot_be_removed_hinders_nobody(
    sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's file in the trash, say, where we are not root."""
    for name in ("stuck", "loose"):
        (sessions.root / ".carrel/trash" / name).mkdir()
    really = os.rmdir

    def rmdir(name: bytes, **more: int) -> None:
        if name == b"stuck":
            raise PermissionError(1, "Operation not permitted")
        really(name, **more)

    monkeypatch.setattr(os, "rmdir", rmdir)
    sessions.sweep()
    assert trash_in(sessions.root) == ["stuck"]
