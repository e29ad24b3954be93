"""Views of a workspace: narrower rules on the same files."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.errors import (
    AccessError,
    ClosedError,
    EscapeError,
    LimitError,
    MissingError,
    NotDirectoryError,
    OutsideError,
    PathError,
    QuotaError,
    SessionMissingError,
    UnavailableError,
)
from carrel.fs.memory.files import MemoryFiles
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.runtime.shell import BareShell
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.attack.operations import CHANGING, EVERY
from tests.workspace.archives import file, link, tar
from tests.workspace.planting import plant, snapshot
from tests.workspace.test_closing import OPERATIONS

RO = AccessMode.READ_ONLY
PATTERNS = {"glob", "glob beneath", "list_files", "list_files beneath"}


class Stop(Exception):
    """What a check raises here."""


class Late(LimitError):
    """What a check raises that looks like an error of the files."""

    def __init__(self) -> None:
        super().__init__("time", limit=1, asked=2, message="too late")


class Check:
    """Lets so many steps pass, and none after that."""

    def __init__(self, steps: int = 10**9, error: type[Exception] = Stop) -> None:
        self.seen = 0
        self.steps = steps
        self.error = error

    def __call__(self) -> None:
        self.seen += 1
        if self.seen > self.steps:
            raise self.error


@pytest.fixture
def manager(tmp_path: Path) -> WorkspaceManager:
    return WorkspaceManager(tmp_path / "sessions")


@pytest.fixture
def session(manager: WorkspaceManager) -> Iterator[Workspace]:
    with manager.create("abc", limits=Limits(disk_bytes=1_000, entries=20)) as opened:
        yield opened


# What a view shares


def test_a_view_is_the_same_workspace_in_all_but_its_rules(session: Workspace) -> None:
    view = session.narrowed(mode=RO)
    assert (view.session_id, view.limits, view.mount) == (session.session_id, session.limits, session.mount)
    assert view.created_ns == session.created_ns is not None
    assert view.gate.ledger is session.gate.ledger
    session.write("f", b"in")
    assert view.read("f") == b"in"
    with pytest.raises(AccessError):
        view.write("f", b"out")
    assert [(event.operation, event.error) for event in session.changes()] == [
        ("write", None),
        ("write", "access.denied"),
    ]


def test_a_part_is_counted_and_recorded_as_the_whole(session: Workspace) -> None:
    session.mkdir("allowed")
    view = session.narrowed(within=["allowed"])
    view.write("allowed/d/x", b"x" * 100)
    view.append("allowed/d/x", b"y")
    view.copy("allowed/d", "allowed/e", recursive=True)
    view.move("allowed/e", "allowed/g")
    view.remove("allowed/g", recursive=True)
    assert session.usage() == session.recount()
    assert session.usage().disk_bytes == 101
    assert [(event.operation, event.path) for event in session.changes()][:4] == [
        ("mkdir", "allowed"),
        ("mkdir", "allowed/d"),
        ("write", "allowed/d/x"),
        ("append", "allowed/d/x"),
    ]
    with pytest.raises(QuotaError):
        view.write("allowed/large", b"x" * 900)
    session.write("elsewhere", b"x" * 800)
    with pytest.raises(QuotaError):
        view.write("allowed/more", b"x" * 100)


def test_a_part_shows_only_records_of_what_it_shows(session: Workspace, outside: Path) -> None:
    for path in (
        "pub/a",
        "private/b",
        "pub/../private/c",
        "public",
        "pub/d/x",
        "pub/d/../e",
        "/workspace/pub/f",
    ):
        session.write(path, b"x")
    session.move("pub/a", "private/a")
    session.copy("private/b", "pub/b")
    session.move("pub/b", "pub/g")
    session.extract(tar(link("pub/l", "../private/b")))
    session.mkdir(deep := f"pub/{'/'.join(name * 200 for name in 'hijk')}")
    session.write(f"{deep}/{'../' * 5}private/{'m' * 200}", b"x")
    for path in (str(outside / "x"), "../pub/x", "pub/../../x"):
        with pytest.raises(PathError):
            session.read(path)
    view = session.narrowed(within=["pub"])
    with pytest.raises(OutsideError):
        view.read("private/b")
    everything = list(session.changes())
    shown = [(event.operation, event.path, event.other_path) for event in view.changes()]
    assert [row for row in shown if row[0] != "mkdir"] == [
        ("write", "pub/a", None),
        ("write", "pub/d/x", None),
        ("write", "pub/d/../e", None),
        ("write", "pub/f", None),
        ("move", "pub/b", "pub/g"),
        ("link", "pub/l", "../private/b"),
    ]
    # The numbers are those of the whole, so a reader goes on after any of them.
    last = everything[-1].sequence
    assert list(view.changes(last)) == []
    session.write("private/z", b"x")
    session.write("pub/z", b"x")
    assert [(event.sequence, event.path) for event in view.changes(last)] == [(last + 2, "pub/z")]


def test_a_part_is_no_way_to_make_a_deeper_tree(directory: Path) -> None:
    plant(directory, "a/b/")
    with Workspace.open(directory, limits=Limits(depth=4)) as workspace:
        view = workspace.narrowed(within=["a/b"])
        view.write("a/b/c/d", b"")
        with pytest.raises(LimitError):
            view.write("a/b/c/e/f", b"")
        with pytest.raises(LimitError):
            view.narrowed(within=["a/b/c"]).mkdir("a/b/c/e/f")
        assert len(list(workspace.walk())) == 4


# Read-only


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("name", CHANGING)
def test_nothing_changes_through_a_read_only_view(
    name: str, enabled: bool, directory: Path, outside: Path
) -> None:
    plant(directory, "f", "d/g", "mine", "mine-directory/below/f")
    before = snapshot(directory.parent)
    rules = (PathRule(str(directory), AccessMode.READ_WRITE), PathRule(str(outside), AccessMode.READ_WRITE))
    with Workspace.open(directory, policy=SandboxPolicy(str(directory), rules, enabled)) as workspace:
        view = workspace.narrowed(mode=RO).narrowed(mode=AccessMode.READ_WRITE)
        elsewhere = str(directory.parent / "elsewhere")
        for path in ("f", "d", "new", "/workspace/f", str(outside / "secret"), elsewhere):
            with pytest.raises(PermissionError):
                CHANGING[name](view, path)
        assert view.read("f") == b"in"
        assert view.read(str(outside / "secret")) == b"secret data"
        assert not view.explain("f", "write").allowed
        assert not view.policy.explain(str(outside), "write").allowed
    assert snapshot(directory.parent) == before


def test_a_policy_that_is_switched_off_has_read_only_views_without_any_rule(directory: Path) -> None:
    plant(directory, "f")
    with Workspace.open(directory, policy=SandboxPolicy(str(directory), enabled=False)) as workspace:
        view = workspace.narrowed(mode=RO)
        assert view.read("f") == b"in"
        with pytest.raises(AccessError):
            view.write("f", b"out")


def test_a_view_that_may_write_may_not_where_the_workspace_may_not(directory: Path) -> None:
    with Workspace.open(directory, policy=SandboxPolicy.for_workspace(directory, RO)) as workspace:
        view = workspace.narrowed(mode=AccessMode.READ_WRITE)
        assert view.policy == workspace.policy
        with pytest.raises(AccessError):
            view.write("f", b"")


# Within


@pytest.fixture
def parted(directory: Path) -> Iterator[Workspace]:
    plant(
        directory,
        "allowed/f",
        "allowed/d/g",
        "allowed/over => ../secret/f",
        "allowed/up => ..",
        "allowed/here => f",
        "secret/f = secret data",
        "into => allowed",
    )
    with Workspace.open(directory) as workspace:
        yield workspace


@pytest.mark.parametrize("name", sorted(EVERY.keys() - PATTERNS - {"explain", "explain a write"}))
def test_what_a_view_does_not_show_is_answered_alike_whether_it_exists_or_not(
    name: str, parted: Workspace, directory: Path
) -> None:
    view = parted.narrowed(within=["allowed"])
    before = snapshot(directory)
    for path in (
        ".",
        "secret",
        "secret/f",
        "missing",
        "allowedly",
        "into/f",
        "/workspace/secret/f",
        "x/../allowed",
    ):
        with pytest.raises(OutsideError):
            EVERY[name](view, path)
    for path in ("allowed/../secret/f", "allowed/up/secret/f", "allowed/../missing"):
        with pytest.raises((EscapeError, MissingError, NotDirectoryError)) as caught:
            EVERY[name](view, path)
        assert "secret data" not in str(caught.value)
    assert snapshot(directory) == before


@pytest.mark.parametrize("pattern", ["*", "**", "secret/*", "missing/*", "allowed*/*", "*/f"])
def test_a_pattern_that_begins_outside_finds_nothing(pattern: str, parted: Workspace) -> None:
    view = parted.narrowed(within=["allowed"])
    for find in (view.glob, view.list_files):
        with pytest.raises(OutsideError):
            find(pattern)


def test_a_link_to_another_part_leads_out(parted: Workspace) -> None:
    view = parted.narrowed(within=["allowed"])
    assert view.read("allowed/here") == b"in"
    assert parted.read("allowed/over") == b"secret data"
    for path in ("allowed/over", "allowed/up/secret/f"):
        with pytest.raises(EscapeError):
            view.read(path)
    with pytest.raises(EscapeError):
        view.write("allowed/over", b"")
    assert not view.explain("allowed/over").allowed
    assert not view.explain("secret/f").allowed
    assert view.explain("allowed/f", "write").allowed


def test_what_a_view_shows_is_spelled_as_ever(parted: Workspace) -> None:
    view = parted.narrowed(within=["allowed/d", "/workspace/allowed", "allowed"])
    assert view.within == ("allowed",)
    assert [info.path for info in view.list("allowed")] == [info.path for info in parted.list("allowed")]
    assert view.glob("allowed/**/g") == ["allowed/d/g"]
    assert view.stat("/workspace/allowed/d/g").path == "allowed/d/g"
    assert view.write("allowed/new/h", b"").path == "allowed/new/h"
    with pytest.raises(PathError):
        view.remove("allowed", recursive=True)


def test_files_go_from_one_directory_that_is_shown_to_another(directory: Path) -> None:
    plant(directory, "a/f", "b/", "c/")
    with Workspace.open(directory) as workspace:
        view = workspace.narrowed(within=["a", "b"])
        view.copy("a/f", "b/g")
        view.move("a/f", "b/f")
        with pytest.raises(OutsideError):
            view.move("b/f", "c/f")
    assert sorted(snapshot(directory)) == ["a", "b", "b/f", "b/g", "c"]


def test_a_directory_is_looked_up_by_its_name_every_time(directory: Path) -> None:
    plant(directory, "secret/f = secret data")
    with Workspace.open(directory) as workspace:
        view = workspace.narrowed(within=["late/r"])
        with pytest.raises(MissingError):
            view.read("late/r/f")
        with pytest.raises(MissingError):
            view.write("late/r/f", b"")
        workspace.write("late/r/f", b"here")
        assert view.read("late/r/f") == b"here"
        workspace.move("late", "gone")
        with pytest.raises(MissingError):
            view.read("late/r/f")
        plant(directory, "late/r => ../secret")
        with pytest.raises(NotDirectoryError):
            view.read("late/r/f")
        (directory / "late/r").unlink()
        (directory / "late").rmdir()
        plant(directory, "r/f", "late => secret", "secret/r/f")
        with pytest.raises(NotDirectoryError):
            view.read("late/r/f")


def test_a_switched_off_policy_does_not_open_the_rest(parted: Workspace, directory: Path) -> None:
    with Workspace.open(directory, policy=SandboxPolicy(str(directory), enabled=False)) as workspace:
        assert workspace.read(str(directory / "secret/f")) == b"secret data"
        view = workspace.narrowed(within=["allowed"])
        assert view.write("allowed/f", b"new").size_bytes == 3
        for path in (str(directory / "secret/f"), "/etc/passwd", "secret/f", "allowed/over"):
            with pytest.raises(EscapeError):
                view.read(path)


@pytest.mark.parametrize(
    "path", ["", "..", "a/../b", "../x", "/etc", "/workspaces/a", "/", "a\0b", "/workspace/.."]
)
def test_a_path_that_cannot_be_within_is_refused_at_once(path: str, workspace: Workspace) -> None:
    with pytest.raises(ValueError, match=r"path|workspace|\.\."):
        workspace.narrowed(within=["fine", path])


def test_one_text_is_no_list_of_paths(workspace: Workspace) -> None:
    with pytest.raises(TypeError):
        workspace.narrowed(within="allowed")


@pytest.mark.parametrize("path", [".", "/workspace", "./"])
def test_the_workspace_itself_is_no_narrower(path: str, workspace: Workspace) -> None:
    assert workspace.narrowed(within=["a", path]).within is None


def test_memory_has_no_parts(workspace: Workspace) -> None:
    with Workspace(MemoryFiles(), policy=SandboxPolicy.for_workspace("/workspace")) as memory:
        with pytest.raises(UnavailableError):
            memory.narrowed(within=["a"])
        memory.write("f", b"in")
        assert memory.narrowed(mode=RO, check=Check()).read("f") == b"in"


# Views of views


def test_a_view_of_a_view_shows_what_both_show(parted: Workspace) -> None:
    view = parted.narrowed(within=["allowed/d", "into"])
    assert view.narrowed(within=["allowed", "secret"]).within == ("allowed/d",)
    assert view.narrowed(within=["allowed/d/e"]).within == ("allowed/d/e",)
    assert view.narrowed(mode=RO).within == view.within
    nothing = view.narrowed(within=["secret"])
    assert nothing.within == ()
    for path in ("secret/f", "allowed/d/g", "."):
        with pytest.raises(OutsideError):
            nothing.read(path)
    with pytest.raises(AccessError):
        view.narrowed(mode=RO).narrowed(within=["allowed"]).write("allowed/d/g", b"")


def test_the_checks_of_both_are_asked(workspace: Workspace) -> None:
    outer, inner = Check(), Check(0)
    view = workspace.narrowed(check=outer).narrowed(check=inner)
    with pytest.raises(Stop):
        view.write("f", b"")
    assert (outer.seen, inner.seen) == (1, 1)


# Closing


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_view_ends_with_its_workspace_and_not_the_other_way_round(
    session: Workspace, operation: Callable[[Workspace], object]
) -> None:
    session.write("f", b"in")
    views = [session.narrowed(), session.narrowed(within=["a"]), session.narrowed().narrowed(check=Check())]
    for view in views:
        with view:
            view.exists("a/f")
        with pytest.raises(ClosedError):
            operation(view)
    assert session.read("f") == b"in"
    views = [session.narrowed(), session.narrowed(within=["a"]), session.narrowed().narrowed(check=Check())]
    session.close()
    for view in views:
        with pytest.raises(ClosedError):
            operation(view)


def test_a_view_of_a_deleted_session_says_so(manager: WorkspaceManager) -> None:
    session = manager.create("gone")
    session.write("a/f", b"in")
    view = session.narrowed(within=["a"], check=Check())
    manager.delete_workspace("gone")
    for workspace in (session, view):
        with pytest.raises((SessionMissingError, MissingError)) as caught:
            workspace.write("a/f", b"in")
        assert type(caught.value) is SessionMissingError
    session.close()


def test_a_view_keeps_its_workspace(directory: Path) -> None:
    plant(directory, "a/f")
    view = Workspace.open(directory, limits=Limits(disk_bytes=100)).narrowed(within=["a"])
    gc.collect()
    view.write("a/g", b"in")
    assert view.read("a/f") == b"in"


# Checks

WORK: dict[str, Callable[[Workspace], object]] = {
    "read": lambda view: view.read("d/f1"),
    "stat": lambda view: view.stat("d/f1"),
    "read_chunks": lambda view: list(view.read_chunks("large", chunk_bytes=10)),
    "read_lines": lambda view: view.read_lines("large"),
    "list": lambda view: view.list("d"),
    "walk": lambda view: list(view.walk()),
    "read_tree": lambda view: [list(each.chunks) for each in view.read_tree()],
    "search": lambda view: view.search("in"),
    "archive": lambda view: list(view.archive()),
    "archive as zip": lambda view: list(view.archive(format="zip")),
    "write": lambda view: view.write("new/f", b"in"),
    "write_chunks": lambda view: view.write_chunks("new/f", [b"in"] * 5),
    "append": lambda view: view.append("new/f", b"in"),
    "append more": lambda view: view.append("d/f1", b"in"),
    "edit": lambda view: view.edit("d/f1", "in", "out"),
    "mkdir": lambda view: view.mkdir("new/d"),
    "touch": lambda view: view.touch("new"),
    "copy": lambda view: view.copy("d", "new/deep/er", recursive=True),
    "copy across": lambda view: view.copy("d", "/workspace/new", recursive=True),
    "move": lambda view: view.move("d", "new"),
    "remove": lambda view: view.remove("d", recursive=True),
    "extract": lambda view: view.extract(tar(*(file(f"x/{name}") for name in "abc")), "new/er"),
}


@pytest.mark.parametrize("error", [Stop, TimeoutError, Late])
@pytest.mark.parametrize("name", WORK)
def test_a_check_stops_work_at_any_step_and_nothing_is_left(
    name: str, error: type[Exception], directory: Path, workspace: Workspace
) -> None:
    plant(directory, "large = " + "in\n" * 100, *(f"d/f{number}" for number in range(5)))
    before = snapshot(directory)
    whole = Check()
    for steps in range(10**6):
        check = Check(steps, error)
        try:
            WORK[name](workspace.narrowed(check=check))
        except error:
            assert check.seen == steps + 1
            assert snapshot(directory) == before
        else:
            whole = check
            break
    assert whole.seen >= 1
    assert (
        name not in ("read_chunks", "walk", "read_tree", "archive", "copy", "write_chunks") or whole.seen > 5
    )


@pytest.mark.parametrize("error", [Stop, TimeoutError])
def test_a_check_that_stops_between_two_rules_leaves_nothing(
    error: type[Exception], directory: Path, outside: Path
) -> None:
    plant(directory, "d/e/f", "d/g")
    plant(outside, "there/")
    before = snapshot(directory.parent)
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(outside), AccessMode.READ_WRITE)])
    with Workspace.open(directory, policy=policy) as workspace:
        for steps in range(10**6):
            try:
                workspace.narrowed(check=Check(steps, error)).move("d", str(outside / "there/d"))
            except error:
                assert snapshot(directory.parent) == before
            else:
                break
    assert sorted(snapshot(directory)) == []
    assert (outside / "there/d/e/f").read_bytes() == b"in"


# In a shell


@pytest.mark.parametrize(
    "line",
    [
        "touch f",
        "touch new",
        "echo x > f",
        "echo x >> f",
        "sed -i s/in/out/ f",
        "find . -delete",
        "rm -r d",
        "cp f g",
        "mv f g",
        "mkdir m",
        "echo x | tee f",
        "rmdir e",
    ],
)
def test_a_shell_changes_nothing_in_a_read_only_view(
    line: str, directory: Path, workspace: Workspace
) -> None:
    plant(directory, "f", "d/g", "e/")
    before = snapshot(directory)
    result = BareShell(workspace.narrowed(mode=RO), pipelines=True).run(line)
    assert snapshot(directory) == before
    assert result.stderr
    assert BareShell(workspace, pipelines=True).run(line).exit_code == 0
    assert snapshot(directory) != before or line == "touch f"


def test_a_shell_sees_only_what_a_view_shows(parted: Workspace) -> None:
    shell = BareShell(parted.narrowed(within=["allowed"]), pipelines=True)
    assert shell.run("cd allowed && cat f d/g").stdout == b"inin"
    for line in (
        "cat ../secret/f",
        "cat over",
        "cat up/secret/f",
        "ls ..",
        "cp over mine",
        "grep -r data /workspace",
    ):
        result = shell.run(line)
        assert result.exit_code != 0, line
        assert b"secret data" not in result.stdout + result.stderr
    assert shell.run("ls /workspace/secret").stdout == shell.run("ls /workspace/missing").stdout == b""


def test_a_check_stops_a_command_line(directory: Path, workspace: Workspace) -> None:
    plant(directory, *(f"d/f{number}" for number in range(20)))
    with pytest.raises(Stop):
        BareShell(workspace.narrowed(check=Check(10))).run("find . -delete")
