"""A power loss at any moment: with `disk`, what was acknowledged is there, and nothing by halves."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from carrel.errors import EscapeError
from carrel.policy.rules import AccessMode, PathRule
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.local import ledger_page as ledgers
from carrel.workspace.unmediated_run import UnmediatedRun
from carrel.workspace.workspace import Workspace
from tests.depth import IS_THOROUGH
from tests.faults.inject import in_memory
from tests.faults.power import FLUSHES, Disk, disk
from tests.storage.ledgers import count, require_agreement
from tests.workspace.changes import CHANGES, plant_allowed, planted
from tests.workspace.traces import records_in, states_in, workspaces_in

pytestmark = [pytest.mark.root, pytest.mark.deeper]

Contents = dict[str, bytes | str | None]
"""Each path with the content of a file, the text of a link, or nothing for a directory."""


@pytest.fixture(scope="module")
def power() -> Iterator[Disk]:
    with disk() as made:
        yield made


@pytest.fixture
def sessions(power: Disk) -> Iterator[WorkspaceManager]:
    shutil.rmtree(power.place / "allowed", ignore_errors=True)
    plant_allowed(power.place / "allowed")
    with manager(power.place, "disk") as made:
        yield made


def manager(place: Path, durability: str) -> WorkspaceManager:
    rules = [PathRule(str(place / "allowed"), AccessMode.READ_WRITE)]
    return WorkspaceManager(place / "sessions", rules=rules, durability=durability)


@contextmanager
def restarted(power: Disk, copy: Path) -> Iterator[WorkspaceManager]:
    """The sessions after another start of the host, with what it had on the disk."""
    with power.restarted(copy) as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledgers, "_boot_id", lambda: b"the next start..")
        with manager(place, "disk") as found:
            yield found


def contents(directory: Path) -> Contents:
    found: Contents = {}
    for place, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(place, name)
            relative = str(path.relative_to(directory))
            if path.is_symlink():
                found[relative] = str(path.readlink())
            else:
                found[relative] = None if path.is_dir() else path.read_bytes()
    return found


def touch(workspace: Workspace, _: Path) -> None:
    workspace.touch("f", modified_ns=12345)


def run_programs(workspace: Workspace, _: Path) -> None:
    """Let a program work on the files without the gate, as in a container."""
    use = UnmediatedRun(workspace)
    use.begin()
    top = workspace.host_path(".")
    (top / "made").write_bytes(b"by a program")
    (top / "g").write_bytes(b"by a program as well")
    (top / "d/x").unlink()
    use.end()


ALL: dict[str, Callable[[Workspace, Path], object]] = {**CHANGES, "touch": touch, "programs": run_programs}
INSIDE = ("write with parents", "write over", "append", "move over", "remove a tree", "programs")
"""Of these every moment is looked at in `make test`."""
ENDS = ("mkdir with parents", "link", "remove", "move to another rule", "copy a tree", "extract", "touch")
"""Of these the end is; of all others, everything in `make thorough`."""
NAMES = [name if name in (*INSIDE, *ENDS) else pytest.param(name, marks=pytest.mark.thorough) for name in ALL]


@pytest.mark.parametrize("name", NAMES)
def test_an_acknowledged_change_is_on_the_disk_and_one_in_the_middle_is_made_or_not(
    power: Disk, sessions: WorkspaceManager, name: str
) -> None:
    session_id = planted(sessions)
    directory = sessions.root / session_id
    with sessions.open(session_id) as workspace:
        before = contents(directory)
        with power.copying() as copies:
            ALL[name](workspace, power.place / "allowed")
        after = contents(directory)
        modified_ns = workspace.stat("g").modified_ns if name == "touch" else 0
        recorded = [event.sequence for event in workspace.changes()]
    *moments, acknowledged = copies
    assert len(moments) > 3, "nothing was flushed on the way"
    for copy in moments if IS_THOROUGH or name in INSIDE else ():
        require_whole(power, copy, session_id, before, after)
    with restarted(power, acknowledged) as found:
        assert found.verify(session_id).problem is None
        with found.open(session_id) as workspace:
            assert contents(found.root / session_id) == after
            assert workspace.usage() == count(found.root / session_id)
            assert [event.sequence for event in workspace.changes()] == recorded
            assert all(event.error is None for event in workspace.changes())
            require_agreement(found, workspace)
            if name == "touch":
                assert workspace.stat("f").modified_ns == 12345
                assert workspace.stat("g").modified_ns == modified_ns


def require_whole(power: Disk, copy: Path, session_id: str, before: Contents, after: Contents) -> None:
    """Every file is as it was before or is after, and ledger, directory and journal tell the same."""
    with restarted(power, copy) as found:
        assert found.verify(session_id).problem is None
        with found.open(session_id) as workspace:
            workspace.usage()
            for path, content in contents(found.root / session_id).items():
                told = [each[path] for each in (before, after) if path in each]
                assert content in told, (copy, path)
            if b"by a program" not in after.values():
                # What programs do is recorded when they have ended.
                require_agreement(found, workspace)
        assert found.verify(session_id).problem is None


@pytest.mark.parametrize("name", ["write over", "append", "mkdir", "remove", "move", "touch", "programs"])
def test_without_flushing_an_acknowledged_change_is_lost(
    power: Disk, sessions: WorkspaceManager, name: str
) -> None:
    session_id = planted(sessions)
    before = contents(sessions.root / session_id)
    written = power.written()
    with manager(power.place, "process") as hasty, hasty.open(session_id) as workspace:
        ALL[name](workspace, power.place / "allowed")
        assert power.written() == written
        with restarted(power, power.copy()) as found, found.open(session_id) as after:
            assert contents(found.root / session_id) == before
            assert after.stat("f").modified_ns != 12345


def test_a_session_is_there_when_its_making_was_acknowledged(power: Disk, sessions: WorkspaceManager) -> None:
    with power.copying() as copies:
        sessions.create("made", ttl_seconds=77, labels={"a": "b"}).close()
    *moments, acknowledged = copies
    with restarted(power, acknowledged) as found:
        record = found.status("made").record
        assert (record.ttl_seconds, record.labels) == (77, {"a": "b"})
        with found.open("made") as workspace:
            assert workspace.list() == []
            require_agreement(found, workspace)
    for copy in moments:
        with restarted(power, copy) as found:
            found.sweep()
            names = [each(found.root) for each in (workspaces_in, records_in, states_in)]
            assert len({"made" in each for each in names}) == 1, names
            with found.get_workspace("made") as workspace:
                workspace.write("f", b"x")
                require_agreement(found, workspace)


def test_the_first_session_is_there_with_the_directories_above_it(power: Disk) -> None:
    with WorkspaceManager(power.place / "a/b/sessions", durability="disk") as first:
        first.create("one").close()
    with power.restarted(power.copy()) as place, WorkspaceManager(place / "a/b/sessions") as found:
        assert found.list_workspaces() == ["one"]
        assert [record.session_id for record in found.list_records()] == ["one"]


def test_a_session_stays_deleted_and_comes_back_whole_if_that_was_not_acknowledged(
    power: Disk, sessions: WorkspaceManager
) -> None:
    with sessions.create("gone", labels={"a": "b"}) as workspace:
        workspace.write("f", b"x")
    with power.copying() as copies:
        assert sessions.delete_workspace("gone")
    *moments, acknowledged = copies
    with restarted(power, acknowledged) as found:
        for names in (workspaces_in(found.root), records_in(found.root), states_in(found.root)):
            assert "gone" not in names
    for copy in moments:
        with restarted(power, copy) as found:
            if "gone" in workspaces_in(found.root):
                assert found.status("gone").record.labels == {"a": "b"}
                with found.open("gone") as workspace:
                    assert workspace.read("f") == b"x"
                    require_agreement(found, workspace)
            else:
                found.sweep()
                assert "gone" not in (*records_in(found.root), *states_in(found.root))


def test_a_longer_life_is_on_the_disk(power: Disk, sessions: WorkspaceManager) -> None:
    sessions.create("long").close()
    sessions.extend("long", 1234.0)
    with restarted(power, power.copy()) as found:
        assert found.status("long").record.ttl_seconds == 1234.0


def test_a_refusal_is_on_the_disk(power: Disk, sessions: WorkspaceManager) -> None:
    session_id = planted(sessions)
    with sessions.open(session_id) as workspace, suppress(EscapeError):
        workspace.write("../out", b"x")
    with restarted(power, power.copy()) as found, found.open(session_id) as workspace:
        assert [event.error for event in workspace.changes()][-1] == "path.escape"
        assert found.verify(session_id).problem is None


def test_without_flushing_a_new_session_is_lost(power: Disk) -> None:
    with manager(power.place, "process") as hasty:
        hasty.create("lost").close()
        with restarted(power, power.copy()) as found:
            assert "lost" not in (*workspaces_in(found.root), *records_in(found.root))


@pytest.mark.parametrize("name", NAMES)
def test_without_flushing_nothing_is_asked_of_the_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def flush(*_: object) -> None:
        pytest.fail("flushed")

    for module, call in FLUSHES:
        monkeypatch.setattr(module, call, flush)
    with in_memory() as place, manager(place, "process") as hasty:
        plant_allowed(place / "allowed")
        session_id = planted(hasty)
        with hasty.open(session_id) as workspace:
            ALL[name](workspace, place / "allowed")
        hasty.extend(session_id, 5.0)
        assert hasty.delete_workspace(session_id)
