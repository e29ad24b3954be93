"""The guards of the operations on files and trees, one small test each; see `tests/mutants.py`."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import (
    BusyError,
    ChangedError,
    DiskError,
    EscapeError,
    ExistsError,
    HostDeniedError,
    IsDirectoryError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotRegularError,
    PathError,
)
from carrel.fs.local import draft as draft_module
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.attack.special import bind_file, unbind
from tests.faults.inject import first, is_unnamed, open_descriptors
from tests.requirements import requirement
from tests.workspace.traces import drafts_in, state_of

SECONDS = 10
"""An operation that blocks is ended after this."""


# Reading


@pytest.mark.timeout(SECONDS)
def test_a_file_swapped_for_a_link_is_not_read_with_its_tree(confined: Workspace, directory: Path) -> None:
    top = directory / "tree"
    top.mkdir()
    (top / "f").write_text("mine")
    (top / "g").write_text("other")

    def swap(name: str) -> bool:
        if name == "f":
            (top / "f").unlink()
            (top / "f").symlink_to("g")
        return name == "f"

    assert list(confined.read_tree("tree", wants=swap)) == []


@pytest.mark.root
def test_what_is_mounted_on_a_file_is_not_read_with_its_tree(
    confined: Workspace, directory: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    top = directory / "tree"
    top.mkdir()
    (top / "f").write_text("mine")
    bind_file(outside, top / "f")
    try:
        (found,) = confined.read_tree("tree")
        with pytest.raises(EscapeError):
            list(found.chunks)
    finally:
        unbind(top / "f")


@requirement("P-23")
@pytest.mark.timeout(SECONDS)
def test_only_regular_files_are_read(confined: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(directory, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/sock")  # a whole path may be too long for a socket
        os.close(here)
    for path in ("fifo", "sock"):
        for act in (confined.read, confined.read_lines, confined.read_chunks, confined.list):
            with pytest.raises((NotRegularError, NotDirectoryError)):
                act(path)
        with pytest.raises(NotRegularError):
            confined.write(path, b"x")
        with pytest.raises(NotRegularError):
            confined.append(path, b"x")
    with pytest.raises(IsDirectoryError):
        confined.read("d")
    assert stat.S_ISFIFO((directory / "fifo").lstat().st_mode)


@requirement("P-23")
def test_a_device_is_not_read(quiet: SandboxLogger) -> None:
    policy = SandboxPolicy.for_workspace("/dev", AccessMode.READ_ONLY)
    workspace = Workspace.open("/dev", policy=policy, logger=quiet)
    for act in (workspace.read, workspace.read_chunks, workspace.read_lines):
        with pytest.raises(NotRegularError):
            act("zero")


@pytest.mark.timeout(SECONDS)
def test_appending_to_a_fifo_with_a_reader_is_refused(confined: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    reader = os.open(directory / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(NotRegularError):
        confined.append("fifo", b"x")
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_slash_after_a_file_is_refused_by_every_operation(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to("d")
    for path in ("f/", "f/."):
        for act in (
            confined.read,
            confined.read_chunks,
            confined.stat,
            confined.list,
            lambda path: confined.append(path, b"x"),
            lambda path: confined.write(path, b"x"),
        ):
            with pytest.raises((NotDirectoryError, IsDirectoryError, PathError)):
                act(path)
    for path in ("f/", "l/"):
        with pytest.raises(NotDirectoryError):
            confined.remove(path)
        with pytest.raises(NotDirectoryError):
            confined.remove(path, recursive=True)
        with pytest.raises(NotDirectoryError):
            confined.move(path, "g")
        with pytest.raises(NotDirectoryError):
            confined.move("d/f", path)
    with pytest.raises(NotDirectoryError):
        confined.move("f", "g/")
    assert sorted(os.listdir(directory)) == ["d", "f", "l"]
    assert (directory / "f").read_bytes() == b"in"


@requirement("D-08")
def test_the_workspace_itself_is_neither_removed_nor_moved(confined: Workspace, directory: Path) -> None:
    for path in (".", "./", "d/..", "d/."):
        with pytest.raises(PathError):
            confined.remove(path, recursive=True)
        with pytest.raises(PathError):
            confined.move(path, "g")
        with pytest.raises(PathError):
            confined.move("f", path)
    for path in ("..", "../", "d/../.."):
        with pytest.raises(EscapeError):
            confined.remove(path, recursive=True)
    assert sorted(os.listdir(directory)) == ["d", "f"]


@pytest.mark.parametrize(
    ("limits", "act", "code"),
    [
        (Limits(read_bytes=1), lambda workspace: workspace.read("f"), "read_bytes"),
        (Limits(read_bytes=1), lambda workspace: workspace.read_lines("f"), "read_bytes"),
        (Limits(list_entries=1), lambda workspace: workspace.list(), "list_entries"),
        (Limits(walk_entries=2), lambda workspace: list(workspace.walk()), "walk_entries"),
        (Limits(depth=1), lambda workspace: list(workspace.walk()), "depth"),
        (Limits(file_bytes=3), lambda workspace: workspace.write("g", b"1234"), "file_bytes"),
        (Limits(file_bytes=3), lambda workspace: workspace.write_chunks("g", [b"12", b"34"]), "file_bytes"),
        (Limits(file_bytes=3), lambda workspace: workspace.append("f", b"34"), "file_bytes"),
        (Limits(file_bytes=3), lambda workspace: workspace.append("g", b"1234"), "file_bytes"),
        (Limits(file_bytes=1), lambda workspace: workspace.copy("f", "g"), "file_bytes"),
        (Limits(file_bytes=3), lambda workspace: workspace.edit("f", "in", "outer"), "file_bytes"),
        (Limits(depth=2), lambda workspace: workspace.write("a/b/c", b""), "depth"),
        (Limits(depth=2), lambda workspace: workspace.mkdir("a/b/c"), "depth"),
        (Limits(depth=2), lambda workspace: workspace.move("f", "d/e/c"), "depth"),
        (Limits(depth=2), lambda workspace: workspace.copy("f", "d/e/c"), "depth"),
    ],
)
def test_a_limit_is_held(
    directory: Path,
    quiet: SandboxLogger,
    limits: Limits,
    act: Callable[[Workspace], object],
    code: str,
) -> None:
    (directory / "d/e").mkdir(parents=True)
    (directory / "f").write_bytes(b"in")
    with pytest.raises(LimitError) as caught:
        act(Workspace.open(directory, logger=quiet, limits=limits))
    assert caught.value.code == f"limit.{code}"
    assert sorted(os.listdir(directory)) == ["d", "f"]
    assert (directory / "f").read_bytes() == b"in"


def test_a_copy_of_a_tree_is_held_to_the_size_of_files(directory: Path, quiet: SandboxLogger) -> None:
    (directory / "d").mkdir()
    (directory / "d/f").write_bytes(b"1234")
    (directory.parent / "other").mkdir()
    policy = SandboxPolicy.for_workspace(
        directory, allow=[PathRule(str(directory.parent / "other"), AccessMode.READ_WRITE)]
    )
    workspace = Workspace.open(directory, policy=policy, logger=quiet, limits=Limits(file_bytes=3))
    for target in ("e", f"{directory.parent}/other/e"):
        with pytest.raises(LimitError):
            workspace.copy("d", target, recursive=True)


# Writing


@requirement("P-24")
def test_an_append_does_not_change_another_name_of_the_file(confined: Workspace, directory: Path) -> None:
    os.link(directory.parent / "secret", directory / "h")
    with pytest.raises(HostDeniedError):
        confined.append("h", b"changed")
    assert (directory.parent / "secret").read_bytes() == b"secret"


@requirement("P-24")
def test_a_write_replaces_a_name_and_not_the_file_behind_it(confined: Workspace, directory: Path) -> None:
    os.link(directory.parent / "secret", directory / "h")
    confined.write("h", b"mine")
    confined.edit("h", "mine", "ours")
    confined.copy("f", "h", overwrite=True)
    assert (directory.parent / "secret").read_bytes() == b"secret"


@requirement("W-10")
def test_a_file_that_nobody_may_write_is_not_written(confined: Workspace, directory: Path) -> None:
    """Root could; but its owner said no."""
    (directory / "f").chmod(0o444)
    for act in (
        lambda: confined.write("f", b"x"),
        lambda: confined.append("f", b"x"),
        lambda: confined.edit("f", "in", "out"),
        lambda: confined.copy("d/f", "f", overwrite=True),
    ):
        with pytest.raises(HostDeniedError):
            act()
    assert (directory / "f").read_bytes() == b"in"


@requirement("P-14")
def test_a_write_goes_through_links_inside_and_through_no_others(
    confined: Workspace, directory: Path
) -> None:
    (directory / "inside").symlink_to("d/made")
    confined.write("inside", b"new")
    assert (directory / "d/made").read_bytes() == b"new"
    for name, text in (
        ("absolute", str(directory / "d/other")),
        ("out", "../made"),
        ("d/out", f"{directory.parent}/made"),
    ):
        (directory / name).symlink_to(text)
        with pytest.raises(EscapeError):
            confined.write(name, b"x")
        with pytest.raises(EscapeError):
            confined.append(name, b"x")
    assert not (directory / "d/other").exists()
    assert sorted(os.listdir(directory.parent)) == ["secret", "ws"]


@requirement("W-05")
def test_a_file_is_made_only_where_nothing_is(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to("nowhere")
    for path in ("f", "d", "l"):
        with pytest.raises(ExistsError):
            confined.write(path, b"x", overwrite=False)
    assert sorted(os.listdir(directory)) == ["d", "f", "l"]
    assert (directory / "f").read_bytes() == b"in"


@pytest.mark.parametrize("kind", ["bare", "session"])
def test_a_file_that_appears_meanwhile_is_not_clobbered(request: pytest.FixtureRequest, kind: str) -> None:
    workspace: Workspace = request.getfixturevalue(kind)
    place = workspace.host_path(".")

    def chunks() -> Iterator[bytes]:
        yield b"mine"
        (place / "f").write_bytes(b"theirs")

    with pytest.raises(ExistsError):
        workspace.write_chunks("f", chunks(), overwrite=False)
    assert (place / "f").read_bytes() == b"theirs"
    assert os.listdir(place) == ["f"]


@pytest.mark.parametrize("kind", ["bare", "session"])
def test_what_appears_after_the_last_look_is_not_clobbered(
    request: pytest.FixtureRequest, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace: Workspace = request.getfixturevalue(kind)
    place = workspace.host_path(".")
    (place / "source").write_bytes(b"mine")
    (place / "f").write_bytes(b"theirs")
    monkeypatch.setattr("carrel.fs.local.root.entry", lambda parent, name: None)
    monkeypatch.setattr("carrel.fs.local.lookup.entry", lambda parent, name: None)
    with pytest.raises(ExistsError):
        workspace.move("source", "f")
    with pytest.raises(ExistsError):
        workspace.write("f", b"mine", overwrite=False)
    with pytest.raises(ExistsError):
        workspace.copy("source", "f")
    assert (place / "f").read_bytes() == b"theirs"
    assert sorted(os.listdir(place)) == ["f", "source"]


@pytest.mark.parametrize("kind", ["bare", "session"])
def test_a_version_that_is_gone_is_not_replaced(request: pytest.FixtureRequest, kind: str) -> None:
    workspace: Workspace = request.getfixturevalue(kind)
    version = workspace.write("f", b"one").version
    workspace.write("f", b"two")
    with pytest.raises(ChangedError):
        workspace.write("f", b"three", if_version=version)
    with pytest.raises(ChangedError):
        workspace.edit("f", "two", "three", if_version=version)
    assert workspace.read("f") == b"two"


def test_a_version_that_goes_while_another_is_written_is_not_replaced(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = confined.stat("f").version
    change = partial((directory / "f").write_bytes, b"theirs")
    monkeypatch.setattr(os, "open", first(os.open, change, when=is_unnamed))
    with pytest.raises(ChangedError):
        confined.write("f", b"mine", if_version=version)
    assert (directory / "f").read_bytes() == b"theirs"


CONDITIONAL: dict[str, Callable[[Workspace, str], object]] = {
    "write": lambda workspace, version: workspace.write("f", b"mine", if_version=version),
    "append": lambda workspace, version: workspace.append("f", b"mine", if_version=version),
    "remove": lambda workspace, version: workspace.remove("f", if_version=version),
    "remove_tree": lambda workspace, version: workspace.remove("f", recursive=True, if_version=version),
    "move": lambda workspace, version: workspace.move("f", "moved", if_version=version),
}
every_conditional = pytest.mark.parametrize("act", CONDITIONAL.values(), ids=CONDITIONAL)


def is_of(path: Path) -> Callable[..., bool]:
    """Whether a descriptor is that of the file that is at *path* now."""
    inode = path.stat().st_ino
    return lambda fd, *rest: os.fstat(fd).st_ino == inode


@every_conditional
def test_a_version_that_somebody_else_is_replacing_is_left_to_them(
    confined: Workspace,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Workspace, str], object],
) -> None:
    version = confined.stat("f").version
    monkeypatch.setattr(draft_module, "LOCK_TRIES", 3)
    with (directory / "f").open() as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with pytest.raises(BusyError):
            act(confined, version)
    act(confined, version)


@every_conditional
def test_a_version_that_goes_before_it_is_locked_is_left(
    confined: Workspace,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Workspace, str], object],
) -> None:
    version = confined.stat("f").version
    change = partial((directory / "f").write_bytes, b"theirs")
    monkeypatch.setattr(fcntl, "flock", first(fcntl.flock, change, when=is_of(directory / "f")))
    with pytest.raises(ChangedError) as caught:
        act(confined, version)
    assert (directory / "f").read_bytes() == b"theirs"
    assert caught.value.version == confined.stat("f").version


@every_conditional
def test_a_version_that_loses_its_name_before_it_is_locked_is_left(
    confined: Workspace,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[Workspace, str], object],
) -> None:
    before = (directory / "f").read_bytes()
    version = confined.stat("f").version
    change = partial(os.rename, directory / "f", directory / "g")
    monkeypatch.setattr(fcntl, "flock", first(fcntl.flock, change, when=is_of(directory / "f")))
    with pytest.raises(ChangedError) as caught:
        act(confined, version)
    assert caught.value.version is None
    assert (directory / "g").read_bytes() == before
    assert not (directory / "f").exists()


def test_what_is_no_file_is_not_opened_to_lock_it(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(directory / "fifo")
    version = confined.stat("fifo").version
    opened: list[object] = []
    note = first(os.open, lambda: opened.append("fifo"), when=lambda path, *rest, **more: path == b"fifo")
    monkeypatch.setattr(os, "open", note)
    confined.remove("fifo", if_version=version)
    assert opened == []
    assert not (directory / "fifo").exists()


def test_a_write_that_fails_leaves_no_draft_and_no_directory(
    session: Workspace, sessions: WorkspaceManager
) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("no more")

    session.write("f", b"old")
    held = open_descriptors()
    for path in ("f", "a/b/new"):
        with pytest.raises(RuntimeError, match="no more"):
            session.write_chunks(path, broken())
    assert drafts_in(sessions.root) == []
    assert os.listdir(sessions.root / "one") == ["f"]
    assert session.read("f") == b"old"
    assert open_descriptors() == held


def test_a_write_that_cannot_be_put_in_place_leaves_no_directory(
    session: Workspace, sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", broken)
        with pytest.raises(DiskError):
            session.write("a/b/new", b"in")
    assert drafts_in(sessions.root) == []
    assert os.listdir(sessions.root / "one") == []
    assert session.usage() == session.recount()


def test_a_draft_is_locked_as_long_as_it_is_written(session: Workspace, sessions: WorkspaceManager) -> None:
    """A sweeper that comes meanwhile finds it old enough, and leaves it alone."""

    def swept() -> Iterator[bytes]:
        yield b"one "
        (draft,) = drafts_in(sessions.root)
        os.utime(draft, (0, 0))
        sessions.sweep()
        assert drafts_in(sessions.root) == [draft]
        yield b"two"

    session.write_chunks("f", swept())
    assert session.read("f") == b"one two"


@pytest.mark.usefixtures("session")
def test_a_young_draft_is_left_alone_and_an_old_one_is_not(sessions: WorkspaceManager) -> None:
    drafts = state_of(sessions.root, "one")
    for name in ("young", "old"):
        (drafts / f".carrel-draft-{name}").write_bytes(b"")
    os.utime(drafts / ".carrel-draft-old", (0, 0))
    (drafts / "something-else").write_bytes(b"")
    os.utime(drafts / "something-else", (0, 0))
    sessions.sweep()
    assert drafts_in(sessions.root) == [drafts / ".carrel-draft-young"]
    assert (drafts / "something-else").exists()


@requirement("P-15")
def test_directories_are_made_only_below_what_is_there(confined: Workspace, directory: Path) -> None:
    (directory / "up").symlink_to("..")
    (directory / "nowhere").symlink_to("../made")
    for path in ("a/../../made", "a/../made", "up/made/x", "nowhere/x"):
        with pytest.raises((EscapeError, MissingError, ExistsError, LoopError, NotDirectoryError)):
            confined.mkdir(path)
        with pytest.raises((EscapeError, MissingError, ExistsError, LoopError, NotDirectoryError)):
            confined.write(path + "/f", b"x")
    assert sorted(os.listdir(directory)) == ["d", "f", "nowhere", "up"]
    assert sorted(os.listdir(directory.parent)) == ["secret", "ws"]
    assert {event.error for event in confined.changes()} <= {"path.escape"}, "nothing was begun"


def test_a_directory_that_is_swapped_while_directories_are_made_is_not_followed(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "elsewhere").mkdir()
    really = os.mkdir

    def swapped(name: bytes, *args: Any, **more: Any) -> None:  # Any: a system call
        really(name, *args, **more)
        if name == b"a":
            os.rmdir(directory / "a")
            (directory / "a").symlink_to("elsewhere")

    monkeypatch.setattr(os, "mkdir", swapped)
    with pytest.raises((LoopError, NotDirectoryError)):
        confined.mkdir("a/b/c")
    assert os.listdir(directory / "elsewhere") == []


def test_no_link_that_leads_out_is_made_by_copying(confined: Workspace, directory: Path) -> None:
    (directory / "t").mkdir()
    for name, text in (("absolute", "/etc"), ("out", "../../secret"), ("far", "../../../secret")):
        (directory / "t" / name).symlink_to(text)
        with pytest.raises(EscapeError):
            confined.copy("t", "copied", recursive=True, overwrite=True)
        (directory / "t" / name).unlink()
    (directory / "t/fine").symlink_to("../f")
    confined.copy("t", "copied", recursive=True, overwrite=True)
    assert os.readlink(directory / "copied/fine") == "../f"


def test_a_directory_goes_neither_into_itself_nor_over_another(confined: Workspace, directory: Path) -> None:
    (directory / "e").mkdir()
    for act in (confined.move, lambda source, target: confined.copy(source, target, recursive=True)):
        with pytest.raises((PathError, ExistsError)):
            act("d", "d/inside")
        with pytest.raises(ExistsError):
            act("d", "e")
    with pytest.raises(ExistsError):
        confined.move("f", "d/f")
    assert sorted(os.listdir(directory)) == ["d", "e", "f"]


@requirement("P-12", "P-13")
def test_a_removed_link_leaves_its_target(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to("../secret")
    (directory / "e").symlink_to("d")
    (directory / "t").mkdir()
    (directory / "t/e").symlink_to("../d")
    confined.remove("l")
    confined.remove("e", recursive=True)
    confined.remove("t", recursive=True)
    assert (directory.parent / "secret").exists()
    assert (directory / "d/f").exists()


# Trees


def swap_after_listing(patch: pytest.MonkeyPatch, swap: Callable[[], object]) -> None:
    """Let *swap* come once a directory has been listed, before anything listed is opened."""
    really = os.scandir
    swapped = False

    class Listed:
        def __init__(self, fd: int) -> None:
            self._entries = really(fd)

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return self._entries.__enter__()

        def __exit__(self, *exception: Any) -> None:  # Any: as every context manager
            nonlocal swapped
            self._entries.__exit__(*exception)
            if not swapped:
                swapped = True
                swap()

    patch.setattr(os, "scandir", Listed)


@requirement("P-21")
@pytest.mark.parametrize("target", ["../elsewhere", "../../outside"])
def test_a_removal_does_not_follow_a_link_that_was_a_directory(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    for place in (directory / "elsewhere", directory.parent / "outside", directory / "t/x"):
        place.mkdir(parents=True)
        (place / "keep").write_bytes(b"keep")

    def swap() -> None:
        os.rename(directory / "t/x", directory / "moved")
        (directory / "t/x").symlink_to(target)

    with monkeypatch.context() as patch:
        swap_after_listing(patch, swap)
        confined.remove("t", recursive=True)
    assert not (directory / "t").exists()
    assert os.listdir(directory / "elsewhere") == os.listdir(directory.parent / "outside") == ["keep"]


@requirement("P-21")
@pytest.mark.parametrize("target", ["y", "../elsewhere", "../../outside"])
def test_a_walk_does_not_follow_a_link_that_was_a_directory(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (directory / "t/y").mkdir(parents=True)
    (directory / "t/y/f").write_bytes(b"in")
    for place in (directory / "elsewhere", directory.parent / "outside", directory / "t/x"):
        place.mkdir(parents=True)
        (place / "keep").write_bytes(b"keep")

    def swap() -> None:
        os.rename(directory / "t/x", directory / "moved")
        (directory / "t/x").symlink_to(target)

    with monkeypatch.context() as patch:
        swap_after_listing(patch, swap)
        assert [info.path for info in confined.walk("t")] == ["t/x", "t/y", "t/y/f"]


@requirement("P-11")
def test_a_listing_tells_nothing_about_the_target_of_a_link(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to("../secret")
    (link,) = (info for info in confined.list() if info.name == "l")
    assert (link.kind, link.size_bytes, link.inode) == (
        "link",
        len("../secret"),
        (directory / "l").lstat().st_ino,
    )


def test_a_walk_holds_no_more_directories_than_levels_and_goes_through_no_link(
    confined: Workspace, directory: Path
) -> None:
    (directory / "self").symlink_to(".")
    (directory / "up").symlink_to("..")
    assert [info.path for info in confined.walk()] == ["d", "d/f", "f", "self", "up"]
    assert confined.glob("**/f") == ["d/f", "f"]


def test_a_file_that_vanishes_while_it_is_listed_is_left_out(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.scandir

    class Vanishing:
        def __init__(self, fd: int) -> None:
            self._entries = really(fd)

        def __enter__(self) -> list[os.DirEntry[str]]:
            with self._entries as entries:
                found = list(entries)
            (directory / "f").unlink()
            return found

        def __exit__(self, *exception: object) -> None:
            return

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", Vanishing)
        assert [info.name for info in confined.list()] == ["d"]
