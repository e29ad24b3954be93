"""What a workspace may hold: bytes and entries, exact for every way of writing."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from carrel.errors import CarrelError, DiskLowError, LimitError, QuotaError
from carrel.fs.memory.files import MemoryFiles
from carrel.policy.rules import Access, AccessMode, PathRule, SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.quota import render_bytes
from carrel.values import MIB, FileKind, Limits, Usage
from carrel.workspace.workspace import Workspace
from tests.depth import IS_THOROUGH
from tests.faults.inject import failing, in_memory
from tests.requirements import requirement
from tests.storage.ledgers import count, leftovers, page
from tests.workspace.archives import directory as folder
from tests.workspace.archives import file, link, tar

NO_LIMITS = Limits(disk_bytes=None, entries=None)


def usage(disk_bytes: int, entries: int) -> Usage:
    return Usage(disk_bytes=disk_bytes, entries=entries)


# Every kind of workspace


class Kind(Protocol):
    """A workspace that can be opened again with other ceilings."""

    allowed: Path
    """A directory besides, where nothing is counted."""

    def open(self, limits: Limits) -> Workspace: ...

    def leftovers(self) -> list[str]: ...


class Session:
    """Of a manager: counted by a ledger on the disk."""

    def __init__(self, base: Path, allowed: Path) -> None:
        self.allowed = allowed
        rule = PathRule(str(allowed), AccessMode.READ_WRITE)
        self.sessions = WorkspaceManager(base / "sessions", rules=[rule])
        self.sessions.create("one", limits=NO_LIMITS).close()

    def open(self, limits: Limits) -> Workspace:
        return self.sessions.open("one", limits=limits)

    def leftovers(self) -> list[str]:
        return leftovers(self.sessions, "one")


class Directory:
    """Any directory of the host: counted in memory."""

    def __init__(self, base: Path, allowed: Path) -> None:
        self.allowed = allowed
        self.place = base / "ws"
        self.place.mkdir()
        rule = PathRule(str(allowed), AccessMode.READ_WRITE)
        self.policy = SandboxPolicy.for_workspace(self.place, allow=[rule])

    def open(self, limits: Limits) -> Workspace:
        return Workspace.open(self.place, limits=limits, policy=self.policy)

    def leftovers(self) -> list[str]:
        return [name for name in os.listdir(self.place) if name.startswith(".carrel")]


class Memory:
    """No files at all."""

    def __init__(self, base: Path, allowed: Path) -> None:
        self.allowed = allowed
        self.files = MemoryFiles()
        rule = PathRule(str(allowed), AccessMode.READ_WRITE)
        self.policy = SandboxPolicy.for_workspace(base / "none", allow=[rule])

    def open(self, limits: Limits) -> Workspace:
        return Workspace(self.files, limits=limits, policy=self.policy)

    def leftovers(self) -> list[str]:
        return []


@pytest.fixture(params=[Session, Directory, Memory], ids=lambda kind: kind.__name__.lower())
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    """Each kind of workspace, with something in it: 50 bytes in 4 entries."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "n").write_bytes(b"n" * 20)
    made: Kind = request.param(tmp_path, allowed)
    workspace = made.open(NO_LIMITS)
    workspace.write("f", b"a" * 39 + b"b")
    workspace.write("d/x", b"x" * 10)
    make_link(workspace, "l", "f")
    if not isinstance(made, Memory):
        workspace.close()
    return made


BEFORE = usage(50, 4)


def make_link(workspace: Workspace, path: str, target: str) -> None:
    files, where = workspace.gate.permit(Access.WRITE, path)
    files.link(where, target)


def contents(workspace: Workspace) -> dict[str, bytes | FileKind]:
    """Everything there is."""
    return {info.path: workspace.read(info.path) if info.is_file else info.kind for info in workspace.walk()}


Act = Callable[[Workspace, Path], object]
GROWTHS: dict[str, tuple[Act, int, int]] = {
    "write": (lambda w, _: w.write("n", b"n" * 20), 20, 1),
    "write without overwriting": (lambda w, _: w.write("n", b"n" * 20, overwrite=False), 20, 1),
    "write an empty file": (lambda w, _: w.write("n", b""), 0, 1),
    "write over": (lambda w, _: w.write("f", b"n" * 60), 20, 0),
    "write through a link": (lambda w, _: w.write("l", b"n" * 60), 20, 0),
    "write with parents": (lambda w, _: w.write("p/q/n", b"n" * 20), 20, 3),
    "write much": (lambda w, _: w.write("p/n", b"n" * 2 * MIB), 2 * MIB, 2),
    "write by chunks": (lambda w, _: w.write_chunks("p/n", [b"n" * 10] * 2), 20, 2),
    "write by chunks over": (lambda w, _: w.write_chunks("f", [b"n" * 30] * 2), 20, 0),
    "append": (lambda w, _: w.append("f", b"n" * 20), 20, 0),
    "append through a link": (lambda w, _: w.append("l", b"n" * 20), 20, 0),
    "append to a new one": (lambda w, _: w.append("p/n", b"n" * 20), 20, 2),
    "edit": (lambda w, _: w.edit("f", "b", "b" * 21), 20, 0),
    "copy": (lambda w, _: w.copy("f", "p/n"), 40, 2),
    "copy over": (lambda w, _: w.copy("f", "d/x", overwrite=True), 30, 0),
    "copy a tree": (lambda w, _: w.copy("d", "p/e", recursive=True), 10, 3),
    "copy a link": (lambda w, _: w.copy("l", "m", recursive=True), 0, 1),
    "copy from another rule": (lambda w, allowed: w.copy(allowed / "n", "p/n"), 20, 2),
    "copy a tree from another rule": (lambda w, allowed: w.copy(allowed, "p/n", recursive=True), 20, 3),
    "move from another rule": (lambda w, allowed: w.move(allowed / "n", "n"), 20, 1),
    "mkdir": (lambda w, _: w.mkdir("p"), 0, 1),
    "mkdir with parents": (lambda w, _: w.mkdir("p/q/r"), 0, 3),
    "link": (lambda w, _: make_link(w, "m", "f"), 0, 1),
    "extract": (lambda w, _: w.extract(tar(file("p/n", b"n" * 20), folder("q"), link("m", "f"))), 20, 4),
    "extract over": (lambda w, _: w.extract(tar(file("f", b"n" * 60)), overwrite=True), 20, 0),
}
OTHERS: dict[str, tuple[Act, int, int]] = {
    "write the same again": (lambda w, _: w.write("f", b"n" * 40), 0, 0),
    "write less": (lambda w, _: w.write("f", b""), -40, 0),
    "edit": (lambda w, _: w.edit("f", "b", ""), -1, 0),
    "remove": (lambda w, _: w.remove("f"), -40, -1),
    "remove a link": (lambda w, _: w.remove("l"), 0, -1),
    "remove a tree": (lambda w, _: w.remove("d", recursive=True), -10, -2),
    "remove a file recursively": (lambda w, _: w.remove("f", recursive=True), -40, -1),
    "move": (lambda w, _: w.move("f", "d/f"), 0, 0),
    "move a directory": (lambda w, _: w.move("d", "e"), 0, 0),
    "move over": (lambda w, _: w.move("f", "d/x", overwrite=True), -10, -1),
    "move onto itself": (lambda w, _: w.move("f", "f", overwrite=True), 0, 0),
    "move to another rule": (lambda w, allowed: w.move("d", allowed / "d"), -10, -2),
    "copy to another rule": (lambda w, allowed: w.copy("d", allowed / "d", recursive=True), 0, 0),
    "write to another rule": (lambda w, allowed: w.write(allowed / "new", b"n" * 1000), 0, 0),
    "make what is there": (lambda w, _: w.mkdir("d", exist_ok=True), 0, 0),
}


@requirement("Q-08")
@pytest.mark.parametrize("name", [*GROWTHS, *(f"then {name}" for name in OTHERS)])
def test_every_change_is_counted_exactly(kind: Kind, name: str) -> None:
    act, more_bytes, more_entries = {**GROWTHS, **{f"then {name}": row for name, row in OTHERS.items()}}[name]
    with kind.open(Limits(disk_bytes=10 * MIB)) as workspace:
        assert workspace.usage() == BEFORE
        act(workspace, kind.allowed)
        after = usage(BEFORE.disk_bytes + more_bytes, BEFORE.entries + more_entries)
        assert workspace.usage() == after
        assert workspace.recount() == after


@requirement("Q-01", "Q-08")
@pytest.mark.parametrize("name", [name for name, row in GROWTHS.items() if row[1]])
def test_no_change_passes_the_ceiling_of_bytes_and_none_leaves_a_trace(kind: Kind, name: str) -> None:
    act, more_bytes, _ = GROWTHS[name]
    limit = BEFORE.disk_bytes + more_bytes
    error = refused(kind, act, Limits(disk_bytes=limit - 1))
    assert (error.code, error.errno, error.limit) == ("quota.bytes", errno.EDQUOT, limit - 1)
    assert limit - 1 < error.asked <= limit
    with kind.open(Limits(disk_bytes=limit)) as workspace:
        act(workspace, kind.allowed)
        assert workspace.usage().disk_bytes == limit


@requirement("Q-08", "Q-12")
@pytest.mark.parametrize("name", [name for name, row in GROWTHS.items() if row[2]])
def test_no_change_passes_the_ceiling_of_entries_and_none_leaves_a_trace(kind: Kind, name: str) -> None:
    act, _, more_entries = GROWTHS[name]
    limit = BEFORE.entries + more_entries
    error = refused(kind, act, Limits(entries=limit - 1))
    assert (error.code, error.errno, error.limit) == ("quota.entries", errno.EDQUOT, limit - 1)
    assert str(error) == f"Workspace quota exceeded: {limit} entries > {limit - 1} limit"
    with kind.open(Limits(entries=limit)) as workspace:
        act(workspace, kind.allowed)
        assert workspace.usage().entries == limit


def refused(kind: Kind, act: Act, limits: Limits) -> QuotaError:
    """The error of what must not be possible; nothing is changed, and the attempt is recorded."""
    workspace = kind.open(limits)
    before = contents(workspace)
    since = max((event.sequence for event in workspace.changes()), default=0)
    with pytest.raises(QuotaError) as caught:
        act(workspace, kind.allowed)
    if act is not GROWTHS["link"][0]:  # which comes without a gate
        event = list(workspace.changes(since))[-1]
        assert (event.error, event.path) == (caught.value.code, caught.value.path)
        assert caught.value.filename == caught.value.path
    assert contents(workspace) == before
    assert workspace.usage() == BEFORE == workspace.recount()
    assert (kind.allowed / "n").read_bytes() == b"n" * 20
    if not isinstance(kind, Memory):
        workspace.close()
    assert kind.leftovers() == []
    return caught.value


@pytest.mark.parametrize("limits", [Limits(disk_bytes=89), Limits(entries=7)], ids=["bytes", "entries"])
def test_an_archive_that_does_not_fit_is_refused_before_anything_is_made(kind: Kind, limits: Limits) -> None:
    """Its first members would fit; none of them is written and removed again."""
    workspace = kind.open(limits)
    since = max(event.sequence for event in workspace.changes()) if list(workspace.changes()) else 0
    with pytest.raises(QuotaError):
        workspace.extract(tar(*(file(name, b"n" * 10) for name in "mnop")), "d")
    errors = [(event.operation, event.path, event.error) for event in workspace.changes(since)]
    assert errors == [("extract", "d", "quota.bytes" if limits.entries == 100_000 else "quota.entries")]


def test_a_tree_that_does_not_fit_is_refused_before_it_replaces_anything(kind: Kind) -> None:
    """Its first files would fit."""
    workspace = kind.open(NO_LIMITS)
    for path, size in {"d/a": 1, "d/z": 30, "e/a": 20, "e/z": 0}.items():
        workspace.write(path, b"n" * size)
    used = workspace.usage().disk_bytes
    if not isinstance(kind, Memory):
        workspace.close()
    for limit in (used + 20, used + 21):
        workspace = kind.open(Limits(disk_bytes=limit))
        before = contents(workspace)
        if limit == used + 20:
            with pytest.raises(QuotaError) as caught:
                workspace.copy("d", "e", recursive=True, overwrite=True)
            assert (caught.value.path, caught.value.asked) == ("e", used + 21)
            assert contents(workspace) == before
        else:
            workspace.copy("d", "e", recursive=True, overwrite=True)
            assert workspace.usage().disk_bytes == limit


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_grow_is_always_allowed(kind: Kind, name: str) -> None:
    """Also in a session whose ceilings were lowered below what it holds."""
    act, more_bytes, more_entries = OTHERS[name]
    with kind.open(Limits(disk_bytes=1, entries=1)) as workspace:
        act(workspace, kind.allowed)
        assert workspace.usage() == usage(BEFORE.disk_bytes + more_bytes, BEFORE.entries + more_entries)
        with pytest.raises(QuotaError, match="B > 1B limit"):
            workspace.write("new", b"n")
        with pytest.raises(QuotaError, match="entries > 1 limit"):
            workspace.mkdir("new")


@requirement("Q-06")
def test_what_is_replaced_counts_no_more(kind: Kind) -> None:
    with kind.open(Limits(disk_bytes=100)) as workspace:
        workspace.remove("d", recursive=True)
        workspace.write("f", b"1" * 60)
        workspace.write("f", b"2" * 60)
        workspace.write_chunks("f", [b"3" * 30] * 2)
        assert workspace.usage().disk_bytes == 60
        with pytest.raises(QuotaError, match="Workspace quota exceeded: 101B > 100B limit"):
            workspace.write("f", b"4" * 101)
        assert workspace.read("f") == b"3" * 60


def test_what_was_removed_is_given_back_once(kind: Kind) -> None:
    with kind.open(Limits(disk_bytes=50, entries=4)) as workspace:
        for recursive in (False, True) * 3:
            workspace.remove("f", recursive=recursive)
            with suppress(CarrelError):
                workspace.remove("f", recursive=recursive)
            assert workspace.usage() == usage(10, 3)
            workspace.write("f", b"n" * 40)
            with pytest.raises(QuotaError):
                workspace.append("f", b"n")
            with pytest.raises(QuotaError):
                workspace.mkdir("new")


def test_many_chunks_end_where_the_ceiling_is(kind: Kind) -> None:
    taken = 0

    def chunks() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"n" * 10

    with kind.open(Limits(disk_bytes=100)) as workspace, pytest.raises(QuotaError):
        workspace.write_chunks("n", chunks())
    assert taken == 6


@pytest.mark.parametrize("kind", [Session, Directory], indirect=True, ids=["session", "directory"])
@pytest.mark.parametrize("name", [name for name in GROWTHS if "rule" not in name])
def test_a_change_that_fails_is_given_back(kind: Kind, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with kind.open(Limits(disk_bytes=10 * MIB)) as workspace:
        before = contents(workspace)
        with monkeypatch.context() as patch:
            break_disk(patch)
            with pytest.raises(OSError, match="disk"):
                GROWTHS[name][0](workspace, kind.allowed)
        assert contents(workspace) == before
        assert workspace.usage() == BEFORE == workspace.recount()
    assert kind.leftovers() == []


def break_disk(patch: pytest.MonkeyPatch) -> None:
    """Let whatever puts something into its place fail."""
    for call in ("rename", "link", "symlink", "mkdir"):
        patch.setattr(os, call, failing(getattr(os, call), errno.EIO))
    patch.setattr("carrel.fs.syscalls.renameat2_unchecked", failing(os.rename, errno.EIO))
    really = os.write

    def write(fd: int, data: bytes) -> int:
        """Write half, then fail, if it is a file of the session."""
        if bytes(data[:1]) != b"n":
            return really(fd, data)
        if len(data) > 1:
            return really(fd, data[: len(data) // 2])
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    patch.setattr(os, "write", write)


# Words


@requirement("Q-05")
def test_a_refusal_says_how_much_and_what_the_limit_is(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "s", limits=Limits(disk_bytes=100 * MIB)).create() as workspace:
        for number in range(41):
            (tmp_path / "s" / str(workspace.session_id) / str(number)).touch()
            os.truncate(
                tmp_path / "s" / str(workspace.session_id) / str(number), 5 * MIB // 2 if number else 0
            )
        assert workspace.recount().disk_bytes == 100 * MIB
        with pytest.raises(QuotaError) as caught:
            workspace.write("new", b"n" * (5 * MIB // 2))
        assert str(caught.value) == "Workspace quota exceeded: 102.5MB > 100MB limit"
        with pytest.raises(QuotaError) as caught:
            workspace.write("new", b"n")
        assert str(caught.value) == "Workspace quota exceeded: 104857601 bytes > 104857600 bytes limit"
        assert caught.value.path == "new"


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1KB"),
        (1536, "1.5KB"),
        (100 * MIB, "100MB"),
        (3 * 2**30, "3GB"),
        (2**50, "1048576GB"),
    ],
)
def test_a_size_is_written_for_people(size: int, shown: str) -> None:
    assert render_bytes(size) == shown


# Where the ceilings come from


@requirement("Q-02", "Q-04")
def test_the_ceilings_of_the_manager_hold_for_each_session_by_itself(tmp_path: Path) -> None:
    sessions = WorkspaceManager(tmp_path, limits=Limits(disk_bytes=1000, entries=3, file_bytes=700))
    for _ in range(2):
        with sessions.create() as workspace:
            workspace.write("a", b"hello")
            workspace.write("b", b"world")
            assert workspace.usage() == usage(10, 2)
            workspace.write("c", b"c" * 700)
            with pytest.raises(LimitError, match="too large: 701 bytes"):
                workspace.append("c", b"c")
            with pytest.raises(QuotaError, match="4 entries"):
                workspace.write("d", b"")
            with pytest.raises(QuotaError, match="1005B"):
                workspace.write("a", b"a" * 300)


def test_the_ceilings_of_a_session_go_before_those_of_the_manager_and_stay(tmp_path: Path) -> None:
    sessions = WorkspaceManager(tmp_path, limits=Limits(disk_bytes=10))
    sessions.create("one", limits=Limits(disk_bytes=100, file_bytes=80)).close()
    for manager in (sessions, WorkspaceManager(tmp_path, limits=Limits(disk_bytes=10))):
        with manager.open("one") as workspace:
            workspace.write("f", b"f" * 80)
            with pytest.raises(QuotaError, match="101B > 100B"):
                workspace.write("g", b"f" * 21)
            with pytest.raises(LimitError, match="81 bytes"):
                workspace.append("f", b"f")
    with sessions.open("one", limits=Limits(disk_bytes=200)) as workspace:
        workspace.write("g", b"f" * 21)
    assert sessions.get_workspace_size("one") == 101


@requirement("Q-07", "Q-12")
@pytest.mark.parametrize("name", ["SHANNON_MAX_WORKSPACE_SIZE_MB", "CARREL_MAX_WORKSPACE_MB"])
def test_the_ceilings_can_be_configured(tmp_path: Path, name: str) -> None:
    environ = {name: "1", "CARREL_MAX_ENTRIES": "2", "CARREL_CONFIG": os.devnull, "CARREL_MIN_FREE_MB": "0"}
    with WorkspaceManager.from_env(environ, root=tmp_path).create() as workspace:
        workspace.write("f", b"f" * MIB)
        with pytest.raises(QuotaError, match="1048577 bytes > 1048576 bytes limit"):
            workspace.append("f", b"f")
        workspace.write("g", b"")
        with pytest.raises(QuotaError, match="3 entries > 2 limit"):
            workspace.write("h", b"")


def test_without_ceilings_everything_fits(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path, limits=NO_LIMITS).create() as workspace:
        workspace.write("f", b"f" * 200)
        assert workspace.usage() == usage(200, 1)


# What counts


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(tmp_path / "sessions", limits=Limits(disk_bytes=1000)) as made:
        yield made


@requirement("Q-13")
def test_a_file_with_many_names_counts_once_until_the_last_one_goes(sessions: WorkspaceManager) -> None:
    directory = sessions.root / "one"
    with sessions.create("one") as workspace:
        workspace.write("a", b"a" * 100)
        (directory / "d").mkdir()
        os.link(directory / "a", directory / "b")
        os.link(directory / "a", directory / "d" / "c")
        assert workspace.usage() == usage(100, 1)
        assert workspace.recount() == usage(100, 4)
        workspace.remove("a")
        assert workspace.usage() == usage(100, 3)
        workspace.remove("d", recursive=True)
        assert workspace.usage() == usage(100, 1)
        workspace.remove("b")
        assert workspace.usage() == usage(0, 0)


@requirement("Q-13")
def test_all_names_of_a_file_may_go_with_one_tree(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        workspace.write("d/a", b"a" * 100)
        os.link(sessions.root / "one/d/a", sessions.root / "one/d/b")
        assert workspace.recount() == usage(100, 3)
        workspace.remove("d", recursive=True)
        assert workspace.usage() == usage(0, 0) == workspace.recount()


@requirement("Q-13")
@pytest.mark.parametrize("act", ["write", "move", "copy"])
def test_replacing_one_of_two_names_gives_nothing_back(sessions: WorkspaceManager, act: str) -> None:
    with sessions.create("one") as workspace:
        workspace.write("a", b"a" * 100)
        workspace.write("n", b"n" * 10)
        os.link(sessions.root / "one/a", sessions.root / "one/b")
        assert workspace.recount() == usage(110, 3)
        if act == "write":
            workspace.write("a", b"n" * 10)
        elif act == "move":
            workspace.move("n", "a", overwrite=True)
        else:
            workspace.copy("n", "a", overwrite=True)
        assert workspace.usage() == count(sessions.root / "one")


@requirement("Q-13")
def test_a_sparse_file_counts_by_its_size(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        workspace.write("sparse", b"")
        os.truncate(sessions.root / "one/sparse", 10**12)
        assert workspace.recount() == usage(10**12, 1)
        with pytest.raises(QuotaError):
            workspace.write("f", b"f")
        workspace.remove("sparse")
        assert workspace.usage() == usage(0, 0)


@requirement("Q-13")
def test_empty_files_and_deep_directories_are_entries(sessions: WorkspaceManager) -> None:
    with sessions.create("one", limits=Limits(entries=60)) as workspace:
        workspace.mkdir("/".join("d" * 40))
        for number in range(20):
            workspace.write(str(number), b"")
        with pytest.raises(QuotaError, match="61 entries > 60 limit"):
            workspace.mkdir("/".join("d" * 41))
        workspace.remove("d", recursive=True)
        assert workspace.usage() == usage(0, 20)


def test_a_directory_that_becomes_a_session_is_counted(sessions: WorkspaceManager) -> None:
    adopted = sessions.root / "adopted"
    (adopted / "d").mkdir(parents=True, mode=0o700)
    os.chmod(adopted, 0o700)
    (adopted / "d/f").write_bytes(b"f" * 990)
    with sessions.open("adopted") as workspace:
        with pytest.raises(QuotaError, match="1010B"):
            workspace.write("g", b"g" * 20)
        assert workspace.usage() == usage(990, 2)


def test_drafts_are_beside_the_workspace_and_do_not_count(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        seen: list[Usage] = []

        def chunks() -> Iterator[bytes]:
            yield b"1" * 100
            seen.append(workspace.usage())
            seen.append(workspace.recount())

        workspace.write_chunks("f", chunks())
        assert seen == [usage(0, 0)] * 2
        assert workspace.usage() == usage(100, 1)


# The disk of the host


def test_a_disk_that_is_almost_full_is_left_alone(tmp_path: Path) -> None:
    sessions = WorkspaceManager(tmp_path / "sessions")
    with sessions.create("one") as workspace:
        workspace.write("f", b"f" * 10)
        workspace.write("d/g", b"g")
    low = WorkspaceManager(tmp_path / "sessions", min_free_bytes=2**60)
    with low.open("one") as workspace:
        for name, (act, _, _) in GROWTHS.items():
            if "rule" in name or "copy" in name or name == "edit":
                continue
            with pytest.raises(DiskLowError) as caught:
                act(workspace, tmp_path)
            assert (caught.value.code, caught.value.errno) == ("disk.low", errno.ENOSPC), name
            assert str(tmp_path) not in str(caught.value)
        assert workspace.usage() == usage(11, 3) == count(sessions.root / "one")
        assert leftovers(sessions, "one") == []
        workspace.write("f", b"f" * 10)
        workspace.move("f", "d/f")
        workspace.remove("d", recursive=True)
        assert workspace.usage() == usage(0, 0)


# The cost


@requirement("Q-11")
def test_what_is_used_is_known_without_looking(
    sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.create("one") as workspace:
        workspace.mkdir("empty")
        for number in range(200):
            workspace.write(f"d/{number}", b"")
        monkeypatch.setattr(os, "scandir", failing(os.scandir, errno.EIO))
        monkeypatch.setattr(os, "listdir", failing(os.listdir, errno.EIO))
        assert workspace.usage() == usage(0, 202)
        workspace.write("d/new", b"n")
        workspace.append("d/new", b"n")
        workspace.edit("d/new", "nn", "m")
        workspace.copy("d/new", "d/newer")
        workspace.move("d/new", "d/newer", overwrite=True)
        workspace.remove("d/newer")
        assert workspace.usage() == usage(0, 202)
        with sessions.open("one") as again:
            assert again.usage() == usage(0, 202)
    assert page(sessions, "one").recounts == 0


@requirement("Q-11")
def test_a_removed_tree_is_given_back_without_counting_the_rest(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        for number in range(20):
            workspace.write(f"{number}/f", b"f" * 10)
        for number in range(20):
            workspace.remove(str(number), recursive=True)
            assert workspace.usage() == count(sessions.root / "one")
    assert page(sessions, "one").recounts == 0


@requirement("Q-10")
@pytest.mark.slow
@pytest.mark.deeper
@pytest.mark.parametrize("entries", [500_000 if IS_THOROUGH else 5_000])
def test_very_many_entries_are_no_hindrance(entries: int) -> None:
    with in_memory() as place, WorkspaceManager(place / "sessions") as sessions:
        planted = sessions.root / "many"
        os.mkdir(planted, 0o700)
        for number in range(entries // 1000):
            directory = planted / str(number)
            directory.mkdir()
            for name in range(999):
                os.mknod(directory / str(name))
        with sessions.open("many", limits=Limits(entries=entries + 1)) as workspace:
            assert workspace.usage() == usage(0, entries)
            workspace.write("one-more", b"n")
            workspace.write("one-more", b"nn")
            with pytest.raises(QuotaError, match=f"{entries + 2} entries > {entries + 1} limit"):
                workspace.write("too-many", b"n")
            workspace.remove("0", recursive=True)
            workspace.write("again", b"n")
            assert workspace.usage() == usage(3, entries + 2 - 1000)
        assert page(sessions, "many").recounts == 1
