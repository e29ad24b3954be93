"""The rules of a policy, at work on real directories."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel import AccessMode, PathRule, SandboxPolicy, Workspace
from carrel.errors import AccessError, EscapeError, MissingError, OutsideError
from carrel.policy.rules import Access
from tests.requirements import requirement
from tests.workspace.archives import file, tar
from tests.workspace.planting import plant, snapshot

RO, RW = AccessMode.READ_ONLY, AccessMode.READ_WRITE

Operation = Callable[[Workspace, str], object]

READS: dict[str, Operation] = {
    "read": lambda workspace, path: workspace.read(path),
    "read_with_info": lambda workspace, path: workspace.read_with_info(path),
    "read_text": lambda workspace, path: workspace.read_text(path),
    "read_lines": lambda workspace, path: workspace.read_lines(path),
    "read_chunks": lambda workspace, path: list(workspace.read_chunks(path)),
    "reader": lambda workspace, path: list(workspace.reader(path).chunks(10)),
    "stat": lambda workspace, path: workspace.stat(path),
    "exists": lambda workspace, path: workspace.exists(path),
    "list": lambda workspace, path: workspace.list(os.path.dirname(path)),
    "walk": lambda workspace, path: list(workspace.walk(os.path.dirname(path))),
    "search": lambda workspace, path: workspace.search("in", path),
    "archive": lambda workspace, path: list(workspace.archive(path)),
    "copy from": lambda workspace, path: workspace.copy(path, "copied"),
}
WRITES: dict[str, Operation] = {
    "write": lambda workspace, path: workspace.write(path, b"changed"),
    "write_chunks": lambda workspace, path: workspace.write_chunks(path, [b"changed"]),
    "append": lambda workspace, path: workspace.append(path, b"changed"),
    "edit": lambda workspace, path: workspace.edit(path, "in", "out"),
    "mkdir": lambda workspace, path: workspace.mkdir(path + ".d"),
    "extract": lambda workspace, path: workspace.extract(tar(file("f")), path + ".d"),
    "remove": lambda workspace, path: workspace.remove(path),
    "copy to": lambda workspace, path: workspace.copy("f", path, overwrite=True),
    "copy a tree to": lambda workspace, path: workspace.copy("f", path, overwrite=True, recursive=True),
    "move to": lambda workspace, path: workspace.move("f", path, overwrite=True),
    "move from": lambda workspace, path: workspace.move(path, "moved"),
}

BOTH = READS | WRITES


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A directory that may be read."""
    plant(tmp_path, "shelf/book", "shelf/sub/page")
    return tmp_path / "shelf"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A directory that may be written."""
    plant(tmp_path, "desk/book", "desk/level1/level2/page")
    return tmp_path / "desk"


@pytest.fixture
def wide(directory: Path, shelf: Path, desk: Path) -> Iterator[Workspace]:
    """A workspace with `shelf` read-only and `desk` read-write beside it."""
    plant(directory, "f")
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(shelf), RO), PathRule(str(desk), RW)])
    with Workspace.open(directory, policy=policy) as opened:
        yield opened


# Each operation asks for the access it needs


@requirement("AP-16", "AP-06")
@pytest.mark.parametrize("operation", BOTH.values(), ids=BOTH)
def test_everything_can_be_done_in_a_read_write_place(
    wide: Workspace, desk: Path, operation: Operation
) -> None:
    operation(wide, f"{desk}/book")


@requirement("AP-16", "AP-11")
@pytest.mark.parametrize("operation", READS.values(), ids=READS)
def test_a_read_only_path_can_be_read(wide: Workspace, shelf: Path, operation: Operation) -> None:
    operation(wide, f"{shelf}/book")


@requirement("AP-16", "AP-11", "AP-13")
@pytest.mark.parametrize("operation", WRITES.values(), ids=WRITES)
def test_a_read_only_path_cannot_be_changed(
    wide: Workspace, directory: Path, shelf: Path, operation: Operation
) -> None:
    before = snapshot(directory.parent)
    with pytest.raises(
        AccessError, match=f"sandbox: write access denied for '{shelf}/book.*': read-only path"
    ):
        operation(wide, f"{shelf}/book")
    assert snapshot(directory.parent) == before


@requirement("AP-09", "AP-16")
@pytest.mark.parametrize("operation", WRITES.values(), ids=WRITES)
def test_a_read_only_workspace_cannot_be_changed(directory: Path, operation: Operation) -> None:
    plant(directory, "f", "g")
    policy = SandboxPolicy.for_workspace(directory, RO)
    with Workspace.open(directory, policy=policy) as workspace:
        with pytest.raises(AccessError, match="read-only workspace"):
            operation(workspace, "g")
        assert workspace.read("g") == b"in"
    assert snapshot(directory) == {"f": b"in", "g": b"in"}


@requirement("AP-07", "AP-13", "AP-19")
@pytest.mark.parametrize("operation", BOTH.values(), ids=BOTH)
def test_nothing_can_be_done_outside_all_rules(
    wide: Workspace, directory: Path, outside: Path, operation: Operation
) -> None:
    before = snapshot(directory.parent)
    with pytest.raises(OutsideError, match=r"access denied for .*: outside workspace") as caught:
        operation(wide, f"{outside}/secret")
    assert "secret data" not in str(caught.value)
    assert snapshot(directory.parent) == before


@requirement("AP-07", "AP-09")
def test_denials_read_exactly_as_promised(directory: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, RO)
    with Workspace.open(directory, policy=policy) as workspace:
        with pytest.raises(PermissionError) as read_only:
            workspace.write("/workspace/path", b"")
        with pytest.raises(PermissionError) as outside:
            workspace.read("/path")
        with pytest.raises(PermissionError) as write_outside:
            workspace.write("/path", b"")
    assert str(read_only.value) == "sandbox: write access denied for '/workspace/path': read-only workspace"
    assert str(outside.value) == "sandbox: read access denied for '/path': outside workspace"
    assert str(write_outside.value) == "sandbox: write access denied for '/path': outside workspace"


@requirement("AP-09")
def test_a_workspace_reopened_read_write_can_be_changed(directory: Path) -> None:
    with (
        Workspace.open(directory, policy=SandboxPolicy.for_workspace(directory, RO)) as workspace,
        pytest.raises(PermissionError, match="read-only workspace"),
    ):
        workspace.write("f", b"")
    with Workspace.open(directory, policy=SandboxPolicy.for_workspace(directory, RW)) as workspace:
        workspace.write("f", b"")
    assert snapshot(directory) == {"f": b""}


# Where allowed paths are


@requirement("AP-10", "AP-14")
def test_allowed_paths_are_used_at_their_own_place(wide: Workspace, shelf: Path, desk: Path) -> None:
    assert wide.read(f"{shelf}/sub/page") == b"in"
    info = wide.write(f"{desk}/level1/level2/new", b"new")
    assert info.path == f"{desk}/level1/level2/new"
    assert (desk / "level1" / "level2" / "new").read_bytes() == b"new"
    assert [entry.path for entry in wide.list(str(shelf))] == [f"{shelf}/book", f"{shelf}/sub"]
    assert [entry.path for entry in wide.walk(f"{desk}/level1")] == [
        f"{desk}/level1/level2",
        f"{desk}/level1/level2/new",
        f"{desk}/level1/level2/page",
    ]
    assert all(wide.exists(entry.path) for entry in wide.walk(str(desk)))


def test_the_workspace_is_not_named_by_its_place_on_the_host(wide: Workspace, directory: Path) -> None:
    for path in (f"{directory}/f", str(directory)):
        with pytest.raises(OutsideError):
            wide.stat(path)


def test_patterns_and_usage_speak_of_the_workspace_alone(wide: Workspace) -> None:
    assert wide.list_files() == ["f"]
    assert wide.glob("**") == ["f"]
    assert wide.usage().entries == 1


@requirement("AP-24", "P-09")
def test_a_link_in_an_allowed_path_does_not_lead_out_of_it(
    wide: Workspace, directory: Path, shelf: Path, desk: Path, outside: Path
) -> None:
    plant(shelf, f"absolute => {outside}/secret", "relative => ../outside/secret", "dir => ../outside")
    plant(desk, "to-ws => ../ws/f", f"to-shelf => {shelf}/book", "new => ../outside/new", "own => book")
    for path in ("absolute", "relative", "dir/secret"):
        with pytest.raises(EscapeError):
            wide.read(f"{shelf}/{path}")
    for path in ("to-ws", "to-shelf", "new"):
        with pytest.raises(EscapeError):
            wide.write(f"{desk}/{path}", b"changed")
    assert wide.read(f"{desk}/own") == b"in"
    assert snapshot(outside) == {"secret": b"secret data"}
    assert (directory / "f").read_bytes() == b"in"


@requirement("P-17", "P-05")
@pytest.mark.parametrize("path", ["shelf/../outside/secret", "shelf/sub/../../outside/secret", "shelf/.."])
def test_two_dots_do_not_lead_out_of_an_allowed_path(
    wide: Workspace, outside: Path, tmp_path: Path, path: str
) -> None:
    with pytest.raises(EscapeError):
        wide.read(f"{tmp_path}/{path}")
    assert wide.read(f"{tmp_path}/shelf/sub/../book") == b"in"


def test_an_error_beneath_an_allowed_path_names_it_as_asked(wide: Workspace, shelf: Path) -> None:
    with pytest.raises(MissingError, match=f"no such file or directory: '{shelf}/missing'"):
        wide.read(f"{shelf}/missing")


def test_a_rule_holds_for_what_does_not_exist_yet(wide: Workspace, directory: Path, tmp_path: Path) -> None:
    rules = [PathRule(str(tmp_path / "later"), RW)]
    policy = SandboxPolicy.for_workspace(directory, allow=rules)
    with Workspace.open(directory, policy=policy) as workspace:
        with pytest.raises(MissingError):
            workspace.write(f"{tmp_path}/later/f", b"")
        assert workspace.explain(f"{tmp_path}/later/f", Access.WRITE).allowed
        (tmp_path / "later").mkdir()
        workspace.write(f"{tmp_path}/later/f", b"")
    assert snapshot(tmp_path / "later") == {"f": b""}


def test_an_allowed_path_that_is_swapped_for_another_directory_stays_the_one_it_was(
    wide: Workspace, desk: Path, outside: Path
) -> None:
    wide.read(f"{desk}/book")
    desk.rename(desk.with_name("moved"))
    desk.symlink_to(outside)
    wide.write(f"{desk}/new", b"new")
    assert (desk.with_name("moved") / "new").exists()
    assert snapshot(outside) == {"secret": b"secret data"}


@requirement("AP-15")
def test_an_earlier_rule_inside_a_later_one_keeps_its_say(directory: Path, tmp_path: Path) -> None:
    plant(tmp_path, "big/shut/f", "big/open/f", "big/link => shut")
    rules = [PathRule(f"{tmp_path}/big/shut", RO), PathRule(f"{tmp_path}/big", RW)]
    policy = SandboxPolicy.for_workspace(directory, allow=rules)
    with Workspace.open(directory, policy=policy) as workspace:
        workspace.write(f"{tmp_path}/big/open/f", b"changed")
        assert workspace.read(f"{tmp_path}/big/shut/f") == b"in"
        for path in ("big/shut/f", "big/link/f", "big/open/../shut/f", "big/shut/../shut/f"):
            with pytest.raises((AccessError, EscapeError, PermissionError)):
                workspace.write(f"{tmp_path}/{path}", b"changed")
        for path in ("big/shut", "big/open/../shut"):
            with pytest.raises((OSError, ValueError)):
                workspace.remove(f"{tmp_path}/{path}", recursive=True)
        with pytest.raises((OSError, ValueError)):
            workspace.move(f"{tmp_path}/big/open/../shut", f"{tmp_path}/big/moved")
    assert (tmp_path / "big" / "shut" / "f").read_bytes() == b"in"


@requirement("AP-15")
def test_an_earlier_rule_keeps_its_say_about_a_directory_that_is_not_there_yet(
    directory: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "big/open/f", "big/link => shut")
    rules = [PathRule(f"{tmp_path}/big/shut", RO), PathRule(f"{tmp_path}/big", RW)]
    policy = SandboxPolicy.for_workspace(directory, allow=rules)
    with Workspace.open(directory, policy=policy) as workspace:
        workspace.read(f"{tmp_path}/big/open/f")
        for path in ("big/shut/f", "big/open/../shut/f", "big/link/f"):
            with pytest.raises((OSError, ValueError)):
                workspace.write(f"{tmp_path}/{path}", b"made")
        for path in ("big/open/../shut", "big/link"):
            with pytest.raises((OSError, ValueError)):
                workspace.mkdir(f"{tmp_path}/{path}")
        assert not (tmp_path / "big" / "shut").exists()
        plant(tmp_path, "big/shut/f")
        for path in ("big/shut/f", "big/open/../shut/f", "big/link/f"):
            with pytest.raises((OSError, ValueError)):
                workspace.write(f"{tmp_path}/{path}", b"changed")
    assert (tmp_path / "big" / "shut" / "f").read_bytes() == b"in"


@requirement("AP-15")
def test_a_later_rule_inside_an_earlier_one_has_no_say(directory: Path, tmp_path: Path) -> None:
    plant(directory, "sub/f")
    plant(tmp_path, "big/open/f")
    rules = [
        PathRule(f"{directory}/sub", RW),
        PathRule(f"{tmp_path}/big", RO),
        PathRule(f"{tmp_path}/big/open", RW),
    ]
    with Workspace.open(directory, policy=SandboxPolicy.for_workspace(directory, RO, rules)) as workspace:
        for path in ("sub/f", f"{tmp_path}/big/open/f", "/workspace/sub/f", f"{directory}/sub/f"):
            with pytest.raises(PermissionError):
                workspace.write(path, b"changed")
    assert (directory / "sub" / "f").read_bytes() == (tmp_path / "big" / "open" / "f").read_bytes() == b"in"


@requirement("AP-23")
def test_an_allowed_path_in_other_letters_is_another_path(
    wide: Workspace, shelf: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "SHELF/book = other")
    with pytest.raises(OutsideError):
        wide.read(f"{tmp_path}/SHELF/book")


@requirement("P-25")
def test_a_directory_whose_name_begins_like_an_allowed_one_is_outside(
    wide: Workspace, tmp_path: Path
) -> None:
    plant(tmp_path, "shelf-evil/book", "desk2/book")
    for path in ("shelf-evil/book", "desk2/book"):
        with pytest.raises(OutsideError):
            wide.read(f"{tmp_path}/{path}")


def test_an_allowed_path_that_is_a_link_is_known_by_both_its_names(directory: Path, tmp_path: Path) -> None:
    plant(tmp_path, "real/f", "link => real")
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(f"{tmp_path}/link")])
    with Workspace.open(directory, policy=policy) as workspace:
        for name in ("link", "real"):
            assert workspace.read(f"{tmp_path}/{name}/f") == b"in"
            with pytest.raises(AccessError):
                workspace.write(f"{tmp_path}/{name}/f", b"")


@pytest.mark.disk
def test_a_rule_for_the_whole_host_leaves_the_workspace_to_its_own_rule(
    directory: Path, outside: Path
) -> None:
    plant(directory, "f")
    policy = SandboxPolicy.for_workspace(directory, RO, [PathRule("/", RW)])
    with Workspace.open(directory, policy=policy) as workspace:
        assert workspace.read(f"{outside}/secret") == b"secret data"
        for path in ("f", f"{directory}/f", f"{outside}/../ws/f"):
            with pytest.raises(PermissionError):
                workspace.write(path, b"changed")
    assert (directory / "f").read_bytes() == b"in"


def test_a_policy_of_another_directory_is_refused(directory: Path, outside: Path) -> None:
    with pytest.raises(ValueError, match="another directory") as caught:
        Workspace.open(directory, policy=SandboxPolicy.for_workspace(outside))
    assert str(directory) not in str(caught.value)


# Nothing, and everything


def test_an_empty_list_of_rules_allows_nothing(directory: Path) -> None:
    plant(directory, "f")
    with Workspace.open(directory, policy=SandboxPolicy(str(directory))) as workspace:
        for operation in (*READS.values(), *WRITES.values()):
            for path in ("./f", "/workspace/f", f"{directory}/f"):
                with pytest.raises(OutsideError, match="outside workspace"):
                    operation(workspace, path)
        for listing in (workspace.list_files, workspace.usage, lambda: workspace.glob("*")):
            with pytest.raises(OutsideError):
                listing()
    assert snapshot(directory) == {"f": b"in"}


@requirement("AP-12")
@pytest.mark.disk
def test_a_policy_switched_off_confines_nothing(directory: Path, outside: Path) -> None:
    plant(directory, "f", f"out => {outside}")
    on = SandboxPolicy.for_workspace(directory, RO)
    off = dataclasses.replace(on, enabled=False)
    with Workspace.open(directory, policy=off) as workspace:
        assert workspace.confinement == "none"
        assert workspace.read(f"{outside}/secret") == b"secret data"
        assert workspace.read("../outside/secret") == b"secret data"
        assert workspace.read("out/secret") == b"secret data"
        workspace.write("f", b"changed")
        workspace.write(f"{outside}/new", b"new")
        assert workspace.explain("/etc/passwd", Access.WRITE).allowed
    with Workspace.open(directory, policy=on) as workspace:
        for path in (f"{outside}/secret", "../outside/secret", "out/secret"):
            with pytest.raises(ValueError, match="workspace"):
                workspace.read(path)
    assert snapshot(outside) == {"secret": b"secret data", "new": b"new"}


@requirement("AP-12", "P-08")
def test_the_name_of_the_workspace_means_the_workspace_also_when_the_policy_is_off(
    directory: Path, tmp_path: Path
) -> None:
    place = str(tmp_path / "made").lstrip("/")
    off = SandboxPolicy(str(directory), enabled=False)
    with Workspace.open(directory, policy=off) as workspace:
        workspace.write(f"/workspace/{place}", b"in")
        assert workspace.read(place) == b"in"
    assert (directory / place).read_bytes() == b"in"
    assert not (tmp_path / "made").exists()


# Explaining


def test_the_deciding_rule_is_named(wide: Workspace, directory: Path, shelf: Path, outside: Path) -> None:
    plant(directory, f"out => {outside}/secret")
    rows = [
        ("f", Access.WRITE, 0, None),
        ("missing/f", Access.WRITE, 0, None),
        ("/workspace/f", Access.READ, 0, None),
        (f"{shelf}/book", Access.READ, 1, None),
        (f"{shelf}/book", Access.WRITE, 1, "read-only path"),
        (f"{outside}/secret", Access.READ, None, "outside workspace"),
        ("../outside/secret", Access.READ, None, "outside workspace"),
        ("out", Access.READ, None, "outside workspace"),
        (f"{directory}/f", Access.READ, None, "outside workspace"),
    ]
    for path, access, index, reason in rows:
        decision = wide.explain(path, access)
        assert (decision.path, decision.access) == (path, access)
        assert (decision.index, decision.reason, decision.allowed) == (index, reason, reason is None), path
        assert decision.rule == (None if index is None else wide.policy.allowed_paths[index])


@pytest.mark.parametrize("path", ["f", "../x", "/etc/passwd", "desk", "missing"])
def test_an_explanation_is_what_happens(wide: Workspace, path: str) -> None:
    allowed = wide.explain(path, "write").allowed
    try:
        wide.write(path, b"")
    except ValueError:
        assert not allowed
    else:
        assert allowed


def test_explaining_changes_and_records_nothing(wide: Workspace, directory: Path) -> None:
    before = snapshot(directory.parent)
    wide.explain("new/f", "write")
    wide.explain("/etc/passwd", "write")
    assert snapshot(directory.parent) == before
    assert list(wide.changes()) == []
    with pytest.raises(ValueError, match="'run' is not a valid Access"):
        wide.explain("f", "run")
