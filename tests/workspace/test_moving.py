"""Move and copy, within the workspace and between rules."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel import AccessMode, Limits, PathRule, SandboxPolicy, Workspace
from carrel.errors import IntoItselfError, LimitError, PathError
from carrel.runtimes.wasm.file_server import FileServer
from carrel.shell.runtime.shell import BareShell
from tests.requirements import requirement
from tests.workspace.planting import plant, snapshot

Transfer = Callable[[Workspace, str, str, bool], None]

TRANSFERS: dict[str, Transfer] = {
    "move": lambda workspace, source, target, overwrite: workspace.move(source, target, overwrite=overwrite),
    "copy": lambda workspace, source, target, overwrite: workspace.copy(source, target, overwrite=overwrite),
    "copy recursively": lambda workspace, source, target, overwrite: workspace.copy(
        source, target, overwrite=overwrite, recursive=True
    ),
}
every_transfer = pytest.mark.parametrize("transfer", TRANSFERS.values(), ids=TRANSFERS)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A directory that a second rule opens for reading and writing."""
    made = tmp_path / "other"
    made.mkdir()
    return made


@pytest.fixture
def wide(directory: Path, other: Path, outside: Path) -> Iterator[Workspace]:
    """A workspace with `other` read-write and `outside` read-only beside it."""
    rules = [PathRule(str(other), AccessMode.READ_WRITE), PathRule(str(outside), AccessMode.READ_ONLY)]
    policy = SandboxPolicy.for_workspace(directory, allow=rules)
    with Workspace.open(directory, policy=policy) as opened:
        yield opened


# Within the workspace


@every_transfer
def test_a_file_goes_to_another_name(workspace: Workspace, directory: Path, transfer: Transfer) -> None:
    plant(directory, "f = text", "sub/")
    (directory / "f").chmod(0o640)
    transfer(workspace, "f", "sub/g", False)
    assert (directory / "sub" / "g").read_text() == "text"
    assert stat.S_IMODE((directory / "sub" / "g").stat().st_mode) == 0o640


def test_a_moved_file_is_gone_from_its_old_name_and_a_copied_one_is_not(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "f = text")
    inode = (directory / "f").stat().st_ino
    workspace.copy("f", "copy")
    workspace.move("f", "moved")
    assert snapshot(directory) == {"copy": b"text", "moved": b"text"}
    assert (directory / "moved").stat().st_ino == inode
    workspace.write("copy", b"changed")
    assert workspace.read("moved") == b"text"


@every_transfer
@pytest.mark.parametrize("taken", ["file", "sub", "link", "dangling"])
def test_what_is_there_is_not_replaced_unless_asked(
    workspace: Workspace, directory: Path, transfer: Transfer, taken: str
) -> None:
    plant(directory, "f = new", "file = old", "sub/kept", "link => file", "dangling => nothing")
    before = snapshot(directory)
    with pytest.raises(FileExistsError, match=f"'{taken}' already exists"):
        transfer(workspace, "f", taken, False)
    assert snapshot(directory) == before


@every_transfer
def test_a_file_is_replaced_when_asked(workspace: Workspace, directory: Path, transfer: Transfer) -> None:
    plant(directory, "f = new", "file = old and longer")
    transfer(workspace, "f", "file", True)
    assert (directory / "file").read_text() == "new"


@every_transfer
def test_a_directory_is_not_replaced_by_a_file(
    workspace: Workspace, directory: Path, transfer: Transfer
) -> None:
    plant(directory, "f", "sub/kept")
    with pytest.raises(OSError, match="'sub'"):
        transfer(workspace, "f", "sub", True)
    assert snapshot(directory) == {"f": b"in", "sub": None, "sub/kept": b"in"}


@every_transfer
def test_what_is_not_there_goes_nowhere(workspace: Workspace, directory: Path, transfer: Transfer) -> None:
    plant(directory, "sub/")
    for path in ("missing", "sub/missing", "missing/f"):
        with pytest.raises(FileNotFoundError, match=f"'{path}'"):
            transfer(workspace, path, "target", False)
    assert snapshot(directory) == {"sub": None}


@pytest.mark.parametrize("recursive", [True, False])
def test_a_copy_makes_the_directories_above_its_target(
    workspace: Workspace, directory: Path, recursive: bool
) -> None:
    plant(directory, "f")
    workspace.copy("f", "a/b/g", recursive=recursive)
    assert (directory / "a" / "b" / "g").read_bytes() == b"in"


def test_a_directory_is_copied_only_when_asked(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/f")
    with pytest.raises(IsADirectoryError, match="'sub' is a directory"):
        workspace.copy("sub", "copy")
    assert not (directory / "copy").exists()


def test_a_directory_is_copied_with_everything_in_it(workspace: Workspace, directory: Path) -> None:
    plant(
        directory,
        "s/f = text",
        "s/.hidden = h",
        "s/deep/er/g = g",
        "s/empty/",
        "s/link => deep/er/g",
        "s/gone => no",
    )
    (directory / "s" / "f").chmod(0o755)
    workspace.copy("s", "t", recursive=True)
    made = snapshot(directory)
    assert {path: made[path] for path in made if path.startswith("t/")} == {
        "t/f": b"text",
        "t/.hidden": b"h",
        "t/deep": None,
        "t/deep/er": None,
        "t/deep/er/g": b"g",
        "t/empty": None,
        "t/link": "deep/er/g",
        "t/gone": "no",
    }
    assert stat.S_IMODE((directory / "t" / "f").stat().st_mode) == 0o755
    assert workspace.read("t/link") == b"g"


def test_a_directory_is_copied_over_another_only_when_asked(workspace: Workspace, directory: Path) -> None:
    plant(directory, "s/f = new", "s/link => f", "t/f = old", "t/kept", "t/link => kept")
    before = snapshot(directory)
    with pytest.raises(FileExistsError, match="'t' already exists"):
        workspace.copy("s", "t", recursive=True)
    assert snapshot(directory) == before
    workspace.copy("s", "t", recursive=True, overwrite=True)
    assert snapshot(directory / "t") == {"f": b"new", "kept": b"in", "link": "f"}


def test_names_that_look_like_paths_are_copied_as_names(workspace: Workspace, directory: Path) -> None:
    plant(directory, "s/a\\b = one", "s/a/b = two", "s/c:d = three", "s/new\nline", "s/-rf")
    workspace.copy("s", "t", recursive=True)
    assert snapshot(directory / "t") == snapshot(directory / "s")


def test_a_link_is_moved_and_copied_as_a_link_or_followed_as_a_file(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "f = text", "link => f", "sub/")
    workspace.copy("link", "followed")
    workspace.copy("link", "again", recursive=True)
    workspace.move("link", "sub/moved")
    assert snapshot(directory) == {
        "f": b"text",
        "followed": b"text",
        "again": "f",
        "sub": None,
        "sub/moved": "f",
    }


@requirement("P-09", "P-12")
def test_a_link_out_can_be_moved_away_but_not_copied(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    plant(directory, f"out => {outside}/secret", "up => ../outside", "s/up => ../../outside")
    workspace.move("out", "moved")
    assert (directory / "moved").readlink() == outside / "secret"
    for path, recursive in (("moved", False), ("moved", True), ("up", False), ("up", True), ("s", True)):
        with pytest.raises(ValueError, match="escapes session workspace"):
            workspace.copy(path, "copy", recursive=recursive)
    assert not os.path.lexists(directory / "copy" / "up")
    assert snapshot(outside) == {"secret": b"secret data"}


@pytest.mark.parametrize("target", ["s/t", "s/deep/t", "s/new/t", "s/deep/../t", "link/t"])
def test_a_directory_cannot_go_into_itself(workspace: Workspace, directory: Path, target: str) -> None:
    plant(directory, "s/deep/f", "link => s")
    before = snapshot(directory)
    with pytest.raises((IntoItselfError, FileNotFoundError)):
        workspace.move("s", target)
    with pytest.raises(IntoItselfError, match="'s' cannot be put inside itself") as caught:
        workspace.copy("s", target, recursive=True)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, OSError)
    assert snapshot(directory) == before


def test_a_file_onto_itself_changes_nothing(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f = text", "sub/")
    for transfer in TRANSFERS.values():
        with pytest.raises(FileExistsError):
            transfer(workspace, "f", "f", False)
        transfer(workspace, "f", "sub/../f", True)
    assert snapshot(directory) == {"f": b"text", "sub": None}


def test_a_directory_whose_name_begins_like_another_is_not_inside_it(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "s/f", "s-t/")
    workspace.copy("s", "s-t/s", recursive=True)
    workspace.move("s", "s-t/moved")
    assert sorted(os.listdir(directory / "s-t")) == ["moved", "s"]


@every_transfer
@pytest.mark.parametrize("path", [".", "./", "/workspace", "sub/.."])
def test_the_workspace_itself_does_not_go_anywhere(
    workspace: Workspace, directory: Path, transfer: Transfer, path: str
) -> None:
    plant(directory, "sub/f")
    with pytest.raises((PathError, IsADirectoryError)):
        transfer(workspace, path, "sub/x", False)
    assert snapshot(directory) == {"sub": None, "sub/f": b"in"}


@requirement("P-23")
def test_a_fifo_is_moved_but_not_copied(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/f")
    os.mkfifo(directory / "sub" / "fifo")
    with pytest.raises(OSError, match="is not a regular file"):
        workspace.copy("sub", "copy", recursive=True)
    workspace.move("sub/fifo", "fifo")
    assert stat.S_ISFIFO((directory / "fifo").stat().st_mode)


@every_transfer
@pytest.mark.parametrize(
    ("source", "target"), [("../outside/secret", "x"), ("f", "../x"), ("out/secret", "x"), ("f", "out/x")]
)
def test_neither_end_may_lie_outside(
    workspace: Workspace, directory: Path, outside: Path, transfer: Transfer, source: str, target: str
) -> None:
    plant(directory, "f", "out => ../outside")
    before = snapshot(directory.parent)
    with pytest.raises(ValueError, match="escapes session workspace"):
        transfer(workspace, source, target, True)
    assert snapshot(directory.parent) == before


# Between rules


@requirement("AP-16", "AP-10")
def test_files_and_trees_go_from_one_rule_to_another(wide: Workspace, directory: Path, other: Path) -> None:
    plant(directory, "f = text", "t/deep/g = g", "t/link => deep/g", "t/empty/")
    (directory / "f").chmod(0o640)
    wide.copy("f", f"{other}/copied")
    wide.move("f", f"{other}/moved")
    wide.move("t", f"{other}/t")
    assert snapshot(directory) == {}
    assert snapshot(other) == {
        "copied": b"text",
        "moved": b"text",
        "t": None,
        "t/deep": None,
        "t/deep/g": b"g",
        "t/link": "deep/g",
        "t/empty": None,
    }
    assert stat.S_IMODE((other / "moved").stat().st_mode) == 0o640
    wide.move(f"{other}/t", "back")
    assert wide.read("back/link") == b"g"


def test_a_whole_allowed_path_is_copied_into_the_workspace(
    wide: Workspace, directory: Path, other: Path
) -> None:
    plant(other, "f", "sub/g")
    wide.copy(str(other), "copy", recursive=True)
    assert snapshot(directory) == {"copy": None, "copy/f": b"in", "copy/sub": None, "copy/sub/g": b"in"}
    wide.copy(".", f"{other}/all", recursive=True)
    assert snapshot(other / "all") == {"copy": None, "copy/f": b"in", "copy/sub": None, "copy/sub/g": b"in"}


def test_a_whole_rule_is_not_moved_and_nothing_is_copied_before_that_is_said(
    wide: Workspace, directory: Path, other: Path
) -> None:
    plant(directory, "f")
    plant(other, "g")
    for source, target in ((".", f"{other}/all"), (str(other), "all"), ("/workspace", f"{other}/all")):
        with pytest.raises(PathError, match="does not end in a name"):
            wide.move(source, target)
    assert (snapshot(directory), snapshot(other)) == ({"f": b"in"}, {"g": b"in"})


def test_what_is_there_in_another_rule_is_not_replaced_unless_asked(
    wide: Workspace, directory: Path, other: Path
) -> None:
    plant(directory, "f = new", "t/f = new")
    plant(other, "f = old", "t/f = old")
    for transfer in TRANSFERS.values():
        with pytest.raises(FileExistsError):
            transfer(wide, "f", f"{other}/f", False)
    with pytest.raises(FileExistsError):
        wide.move("t", f"{other}/t")
    assert snapshot(other) == {"f": b"old", "t": None, "t/f": b"old"}
    assert snapshot(directory) == {"f": b"new", "t": None, "t/f": b"new"}
    wide.move("f", f"{other}/f", overwrite=True)
    assert (other / "f").read_text() == "new"


def test_a_directory_with_content_is_not_replaced_by_a_move_even_when_asked(
    wide: Workspace, directory: Path, other: Path
) -> None:
    plant(directory, "s/f = new", "t/kept", "empty/")
    plant(other, "t/kept", "empty/")
    for target in ("t", f"{other}/t"):
        with pytest.raises(OSError, match="is not empty"):
            wide.move("s", target, overwrite=True)
    assert (snapshot(directory / "t"), snapshot(other / "t")) == ({"kept": b"in"}, {"kept": b"in"})
    wide.move("s", "empty", overwrite=True)
    wide.move("empty", f"{other}/empty", overwrite=True)
    assert snapshot(other / "empty") == {"f": b"new"}
    assert sorted(os.listdir(directory)) == ["t"]


@requirement("AP-16", "AP-11", "AP-13")
def test_a_read_only_rule_can_be_copied_from_but_not_moved_from_or_written(
    wide: Workspace, directory: Path, outside: Path
) -> None:
    plant(directory, "f")
    wide.copy(f"{outside}/secret", "copied")
    assert (directory / "copied").read_bytes() == b"secret data"
    attempts: tuple[Callable[[], None], ...] = (
        lambda: wide.move(f"{outside}/secret", "moved"),
        lambda: wide.move("f", f"{outside}/f"),
        lambda: wide.copy("f", f"{outside}/f"),
        lambda: wide.copy("f", f"{outside}/f", recursive=True),
    )
    for attempt in attempts:
        with pytest.raises(PermissionError, match=r"sandbox: write access denied for .*: read-only path"):
            attempt()
    assert snapshot(outside) == {"secret": b"secret data"}
    assert sorted(os.listdir(directory)) == ["copied", "f"]


def test_a_link_that_would_lead_out_of_the_other_rule_does_not_go_there(
    wide: Workspace, directory: Path, other: Path
) -> None:
    plant(directory, "d/link => ../f", "f", "up => d/../f")
    wide.copy("d", "deeper/d", recursive=True)
    with pytest.raises(ValueError, match="escapes session workspace"):
        wide.move("d/link", f"{other}/link")
    assert os.path.lexists(directory / "d" / "link")
    assert snapshot(other) == {}


def test_a_copy_that_is_refused_removes_nothing(wide: Workspace, directory: Path, other: Path) -> None:
    plant(directory, "s/link => /etc", "t/link = precious")
    plant(other, "link = precious")
    for source, target in (("s", "t"), ("s/link", f"{other}/link")):
        with pytest.raises(ValueError, match="escapes session workspace"):
            wide.copy(source, target, recursive=True, overwrite=True)
    assert (directory / "t" / "link").read_text() == (other / "link").read_text() == "precious"


def test_what_cannot_be_read_is_not_left_out_of_a_copy_and_not_lost_by_a_move(unprivileged: Path) -> None:
    plant(unprivileged, "ws/t/shut/f = precious", "ws/t/g", "other/")
    (unprivileged / "ws" / "t" / "shut").chmod(0)
    rules = [PathRule(f"{unprivileged}/other", AccessMode.READ_WRITE)]
    policy = SandboxPolicy.for_workspace(unprivileged / "ws", allow=rules)
    with Workspace.open(unprivileged / "ws", policy=policy) as workspace:
        for target in ("copy", f"{unprivileged}/other/copy"):
            with pytest.raises(PermissionError, match="permission denied"):
                workspace.copy("t", target, recursive=True)
        with pytest.raises(PermissionError, match="permission denied"):
            workspace.move("t", f"{unprivileged}/other/moved")
    (unprivileged / "ws" / "t" / "shut").chmod(0o700)
    assert snapshot(unprivileged) == {
        "ws": None,
        "ws/t": None,
        "ws/t/g": b"in",
        "ws/t/shut": None,
        "ws/t/shut/f": b"precious",
        "other": None,
    }


def test_a_copy_that_fails_midway_leaves_nothing(workspace: Workspace, directory: Path) -> None:
    plant(directory, "s/a", "s/deep/b")
    os.mkfifo(directory / "s" / "deep" / "z")
    before = sorted(str(path) for path in directory.rglob("*"))
    with pytest.raises(OSError, match="is not a regular file"):
        workspace.copy("s", "x/y/t", recursive=True)
    assert sorted(str(path) for path in directory.rglob("*")) == before
    assert list(workspace.changes()) == []


# Limits


@pytest.mark.parametrize("recursive", [True, False])
def test_a_copy_is_held_to_the_size_of_a_file(
    directory: Path, outside: Path, tmp_path: Path, recursive: bool
) -> None:
    plant(directory, "f = 0123456789")
    plant(tmp_path, "more/sub/g = 0123456789")
    policy = SandboxPolicy.for_workspace(
        directory, allow=[PathRule(str(tmp_path / "more"), AccessMode.READ_WRITE)]
    )
    with Workspace.open(directory, policy=policy, limits=Limits(file_bytes=9)) as workspace:
        for source in ("f", f"{tmp_path}/more/sub/g"):
            with pytest.raises(LimitError, match="the limit is 9") as caught:
                workspace.copy(source, "copy", recursive=recursive)
            assert (caught.value.code, caught.value.limit, caught.value.asked) == ("limit.file_bytes", 9, 10)
        with pytest.raises(LimitError):
            workspace.copy(f"{tmp_path}/more/sub", "tree", recursive=True)
        with pytest.raises(LimitError):
            workspace.move(f"{tmp_path}/more/sub", "tree")
        assert (tmp_path / "more" / "sub" / "g").exists()
    assert [path for path in snapshot(directory) if path.endswith(("copy", "g"))] == []


def test_a_copied_tree_is_held_to_the_depth_of_a_path(directory: Path) -> None:
    plant(directory, "s/a/b/f")
    with Workspace.open(directory, limits=Limits(depth=5)) as workspace:
        workspace.copy("s", "1/s", recursive=True)
        before = snapshot(directory)
        with pytest.raises(LimitError, match="too deep: 6 levels, the limit is 5") as caught:
            workspace.copy("s", "1/2/3", recursive=True)
    assert (caught.value.code, caught.value.limit, caught.value.asked) == ("limit.depth", 5, 6)
    assert snapshot(directory) == before


def test_a_copied_tree_is_held_to_the_number_of_entries(directory: Path) -> None:
    plant(directory, "s/1", "s/2", "s/3")
    before = snapshot(directory)
    with Workspace.open(directory, limits=Limits(walk_entries=2)) as workspace, pytest.raises(LimitError):
        workspace.copy("s", "t", recursive=True)
    assert snapshot(directory) == before


@pytest.mark.parametrize("within", [False, True], ids=["whole", "view"])
def test_a_moved_tree_is_held_to_the_depth_of_a_path(directory: Path, within: bool) -> None:
    plant(directory, "top/s/a/b/f", "top/1/2/3/")
    with Workspace.open(directory, limits=Limits(depth=6)) as opened:
        workspace = opened.narrowed(within=["top"]) if within else opened
        before = snapshot(directory)
        with pytest.raises(LimitError, match="would be too deep") as caught:
            workspace.move("top/s", "top/1/2/s")
        assert caught.value.code == "limit.depth"
        assert caught.value.asked == caught.value.limit + 1
        assert snapshot(directory) == before
        workspace.move("top/s", "top/1/s")
        workspace.move("top/1/s/a/b/f", "top/1/2/3/f")
        assert [info.path for info in workspace.walk("top/1/s")] == ["top/1/s/a", "top/1/s/a/b"]


def test_the_shell_and_the_guest_move_no_tree_too_deep(directory: Path) -> None:
    plant(directory, "s/a/b/f", "1/2/")
    with Workspace.open(directory, limits=Limits(depth=5)) as workspace:
        before = snapshot(directory)
        assert b"too deep" in BareShell(workspace).run("mv s 1/2/s").stderr
        answer = FileServer(workspace, mount_path="/workspace").answer(
            {"operation": "rename", "path": "/workspace/s", "target": "/workspace/1/2/s"}, b""
        )
        assert "error" in answer[0]
        assert snapshot(directory) == before
        assert b"".join(workspace.archive("."))


@pytest.mark.parametrize("make", ["mkdir", "copy", "move", "extract"])
def test_what_may_be_made_at_the_limit_of_depth_can_be_walked_and_archived(
    directory: Path, make: str
) -> None:
    plant(directory, "e/", "a/b/c/")
    with Workspace.open(directory, limits=Limits(depth=4)) as workspace:
        if make == "mkdir":
            workspace.mkdir("a/b/c/d")
        elif make == "copy":
            workspace.copy("e", "a/b/c/d", recursive=True)
        elif make == "move":
            workspace.move("e", "a/b/c/d")
        else:
            workspace.extract(b"".join(workspace.archive("e")), "a/b/c/d")
        assert [info.path for info in workspace.walk("a")] == ["a/b", "a/b/c", "a/b/c/d"]
        assert b"".join(workspace.archive("."))
