"""The sessions directory is away for a while: unmounted, replaced, removed, read-only, or failing (E40)."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import (
    BusyError,
    CarrelError,
    DiskError,
    UnavailableError,
)
from carrel.fs import syscalls
from carrel.fs.errors import translate
from carrel.paths.parsed_path import parse
from carrel.sessions.functions import (
    _validate_session_path,
    delete_session_path,
    delete_session_workspace,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.sessions.manager import WorkspaceManager
from carrel.sessions.manager_cache import manager_cache
from carrel.workspace.workspace import Workspace
from tests.depth import pairs
from tests.faults.inject import failing, open_descriptors
from tests.workspace.planting import plant, snapshot
from tests.workspace.traces import records_in, require_whole, sweep_all

Outage = AbstractContextManager[None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture(params=["used", "fresh"])
def manager(request: pytest.FixtureRequest, root: Path, quiet: SandboxLogger) -> Iterator[WorkspaceManager]:
    """One that has been used before the outage, or one that was only made; with the sessions one and old."""
    with WorkspaceManager(root, logger=quiet) as first:
        with first.create("one") as workspace:
            workspace.write("d/f", b"kept")
        first.create("two").close()
        if request.param == "used":
            yield first
            return
    with WorkspaceManager(root, logger=quiet) as made:
        yield made


CALLS: dict[str, Callable[[WorkspaceManager], object]] = {
    "create": lambda manager: manager.create("new"),
    "create without an id": lambda manager: manager.create(),
    "open": lambda manager: manager.open("one"),
    "get_workspace": lambda manager: manager.get_workspace("one"),
    "get_workspace of a new one": lambda manager: manager.get_workspace("new"),
    "list_workspaces": lambda manager: manager.list_workspaces(),
    "list_records": lambda manager: manager.list_records(),
    "get_workspace_size": lambda manager: manager.get_workspace_size("one"),
    "status": lambda manager: manager.status("one"),
    "extend": lambda manager: manager.extend("one", 5),
    "delete_workspace": lambda manager: manager.delete_workspace("one"),
    "delete_workspace of an unknown one": lambda manager: manager.delete_workspace("new"),
    "sweep": lambda manager: manager.sweep(idle_seconds=0),
    "dry sweep": lambda manager: manager.sweep(dry_run=True, idle_seconds=0),
}
FUNCTIONS: dict[str, Callable[[Path], object]] = {
    "list_session_files": lambda root: list_session_files("one", root),
    "list_session_files of an unknown one": lambda root: list_session_files("new", root),
    "read_session_file": lambda root: read_session_file("one", "d/f", root),
    "write_session_file": lambda root: write_session_file("one", "d/f", b"new", root),
    "write_session_file to a new one": lambda root: write_session_file("new", "f", b"new", root),
    "delete_session_path": lambda root: delete_session_path("one", "d", root, recursive=True),
    "delete_session_workspace": lambda root: delete_session_workspace("one", root),
    "validate": lambda root: _validate_session_path("one", "d/f", root),
}
CHANGES: dict[str, Callable[[Workspace], object]] = {
    "write": lambda workspace: workspace.write("d/f", b"new"),
    "write_chunks": lambda workspace: workspace.write_chunks("d/f", [b"new"]),
    "append": lambda workspace: workspace.append("d/f", b"new"),
    "mkdir": lambda workspace: workspace.mkdir("new"),
    "move": lambda workspace: workspace.move("d/f", "g"),
    "copy": lambda workspace: workspace.copy("d/f", "g"),
    "remove": lambda workspace: workspace.remove("d/f"),
    "remove a tree": lambda workspace: workspace.remove("d", recursive=True),
    "recount": lambda workspace: workspace.recount(),
}
LOOKS: dict[str, Callable[[Workspace], object]] = {
    "read": lambda workspace: workspace.read("d/f"),
    "list": lambda workspace: workspace.list(),
    "stat": lambda workspace: workspace.stat("d/f"),
    "glob": lambda workspace: workspace.glob("**"),
    "usage": lambda workspace: workspace.usage(),
    "changes": lambda workspace: list(workspace.changes()),
}


def every_call(manager: WorkspaceManager) -> dict[str, Callable[[], object]]:
    """The calls of the manager, and the file functions in its directory."""
    return {
        **{name: partial(call, manager) for name, call in CALLS.items()},
        **{name: partial(call, manager.root) for name, call in FUNCTIONS.items()},
    }


def require_well(manager: WorkspaceManager) -> None:
    """Everything is as it was before, and can be used."""
    assert manager.list_workspaces() == ["one", "two"]
    assert [record.session_id for record in manager.list_records()] == ["one", "two"]
    with manager.open("one") as workspace:
        assert workspace.read("d/f") == b"kept"
        assert workspace.usage().entries == 2
        workspace.write("g", b"back")
        workspace.remove("g")
    manager.create("three").close()
    assert manager.delete_workspace("three") is True
    sweep_all(manager)
    require_whole(manager.root, "one", "two")


def require_clear(error: CarrelError, tmp_path: Path, *kinds: type[Exception]) -> None:
    """It is one of *kinds*, and the text says nothing about the host."""
    assert isinstance(error, kinds or CarrelError), error
    assert str(tmp_path) not in str(error)
    assert "/" not in str(error).replace("'d/f'", "").replace("Input/output", "")


# Away


@contextmanager
def removed(root: Path) -> Iterator[None]:
    away = root.parent / "away"
    root.rename(away)
    yield
    assert not root.exists()
    away.rename(root)


@contextmanager
def replaced(root: Path) -> Iterator[None]:
    """As the mount point of a disk looks without the disk."""
    away = root.parent / "away"
    root.rename(away)
    root.mkdir(0o700)
    yield
    assert os.listdir(root) == []
    root.rmdir()
    away.rename(root)


@contextmanager
def replaced_by_another(root: Path) -> Iterator[None]:
    """Another sessions directory, which has a session of that id too."""
    away = root.parent / "away"
    root.rename(away)
    with WorkspaceManager(root) as other, other.create("one") as workspace:
        workspace.write("d/f", b"of another")
    before = snapshot(root)
    yield
    assert snapshot(root) == before
    assert records_in(root) == ["one"]
    shutil.rmtree(root)
    away.rename(root)


@contextmanager
def replaced_by_a_link(root: Path) -> Iterator[None]:
    away = root.parent / "away"
    root.rename(away)
    root.symlink_to("away")
    yield
    root.unlink()
    away.rename(root)


@contextmanager
def replaced_by_a_file(root: Path) -> Iterator[None]:
    away = root.parent / "away"
    root.rename(away)
    root.write_bytes(b"")
    yield
    root.unlink()
    away.rename(root)


AWAY: dict[str, Callable[[Path], Outage]] = {
    outage.__name__: outage
    for outage in (removed, replaced, replaced_by_another, replaced_by_a_link, replaced_by_a_file)
}


@pytest.mark.parametrize("outage", AWAY)
def test_every_call_says_that_the_directory_is_away_and_works_when_it_is_back(
    manager: WorkspaceManager, root: Path, tmp_path: Path, outage: str
) -> None:
    before = snapshot(root)
    for call in CALLS.values():
        with AWAY[outage](root):
            for _ in range(2):
                with pytest.raises(UnavailableError, match="'sessions' cannot be used") as caught:
                    call(manager)
                require_clear(caught.value, tmp_path)
        assert snapshot(root) == before
    require_well(manager)


@pytest.mark.parametrize("outage", ["removed", "replaced_by_another"])
@pytest.mark.parametrize("operation", CHANGES | LOOKS)
@pytest.mark.parametrize("manager", ["used"], indirect=True)
def test_a_workspace_that_was_open_fails_with_errors_of_ours_or_goes_on(
    manager: WorkspaceManager, root: Path, tmp_path: Path, outage: str, operation: str
) -> None:
    """It holds its directory open, so renaming that one may not even be noticed."""
    with manager.open("one") as workspace, AWAY[outage](root):
        try:
            (CHANGES | LOOKS)[operation](workspace)
        except CarrelError as error:
            require_clear(error, tmp_path)
    with manager.open("one") as workspace:
        assert workspace.usage() == workspace.recount()
        workspace.write("f", b"again")
    require_whole(root, "one", "two")


@pytest.mark.parametrize("manager", ["used"], indirect=True)
def test_a_copy_that_was_restored_in_its_place_is_the_same_store(
    manager: WorkspaceManager, root: Path, tmp_path: Path
) -> None:
    manager.close()
    shutil.copytree(root, tmp_path / "backup", symlinks=True)
    with WorkspaceManager(root) as again:
        again.status("one")
        shutil.rmtree(root)
        with pytest.raises(UnavailableError, match="is its disk mounted"):
            again.status("one")
        (tmp_path / "backup").rename(root)
        require_well(again)


@pytest.mark.parametrize(
    "call", ["list_session_files", "read_session_file", "delete_session_path", "validate"]
)
def test_the_file_functions_make_no_sessions_directory_to_look_into(root: Path, call: str) -> None:
    with suppress(FileNotFoundError):
        FUNCTIONS[call](root)
    assert not root.exists()


# Mounted and unmounted


def mount(*arguments: str | Path) -> None:
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        if os.environ.get("CI") == "true":
            pytest.fail(f"cannot mount: {done.stderr}")
        pytest.skip(f"needs root, to mount: {done.stderr.strip()}")


def unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def mounted(small_disk: Path, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """The sessions directory is on a disk of its own; the function mounts that again."""
    disk, place = small_disk / "data", tmp_path / "sessions"
    disk.mkdir(0o700)
    place.mkdir(0o700)
    bind = partial(mount, "--bind", disk, place)
    bind()
    yield bind
    unmount(place)


@pytest.mark.root
@pytest.mark.parametrize("state", ["used", "fresh"])
def test_every_call_says_that_the_disk_is_not_mounted_and_works_when_it_is(
    mounted: Callable[[], None], root: Path, tmp_path: Path, quiet: SandboxLogger, state: str
) -> None:
    manager = WorkspaceManager(root, logger=quiet)
    with manager.create("one") as workspace:
        workspace.write("d/f", b"kept")
    manager.create("two").close()
    if state == "fresh":
        manager.close()
        manager = WorkspaceManager(root, logger=quiet)
    before = snapshot(root)
    unmount(root)
    for call in CALLS.values():
        with pytest.raises(UnavailableError, match="is its disk mounted") as caught:
            call(manager)
        require_clear(caught.value, tmp_path)
        assert os.listdir(root) == [], "nothing was made in the empty mount point"
    mounted()
    assert snapshot(root) == before
    require_well(manager)
    manager.close()


@pytest.mark.root
@pytest.mark.usefixtures("mounted")
def test_a_read_only_disk_is_unavailable_or_looked_at_and_unchanged(
    root: Path, tmp_path: Path, quiet: SandboxLogger
) -> None:
    with WorkspaceManager(root, logger=quiet) as manager:
        with manager.create("one") as workspace:
            workspace.write("d/f", b"kept")
        manager.create("two").close()
    before = snapshot(root)
    manager = WorkspaceManager(root, logger=quiet)
    mount("-o", "remount,bind,ro", root)
    for name, call in every_call(manager).items():
        try:
            call()
        except UnavailableError as error:
            require_clear(error, tmp_path)
        else:
            assert name in ("list_workspaces", "list_session_files of an unknown one")
        assert snapshot(root) == before
    mount("-o", "remount,bind,rw", root)
    require_well(manager)
    manager.close()


# Failing


def is_beneath(root: Path) -> Callable[..., bool]:
    """Whether a system call is about something beneath *root*: by its path, or by a descriptor."""

    def is_there(path: object = ".", *rest: object, **more: object) -> bool:
        fd = next((value for name, value in more.items() if name.endswith("dir_fd")), path)
        try:
            place = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
            if not place.startswith("/") and isinstance(fd, int) and fd >= 0:
                place = really_readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return False
        return place.startswith(str(root))

    return is_there


really_readlink = os.readlink
WRITING = ["mkdir", "pwrite", "rename", "rmdir", "symlink", "unlink", "utime", "write"]
READING = ["lstat", "open", "pread", "read", "readlink", "scandir", "stat"]
NAMES = [*WRITING, *READING, "flock", "openat2"]


def break_all(patch: pytest.MonkeyPatch, root: Path, number: int, names: list[str]) -> None:
    """Let system calls about the directory fail."""
    for name in names:
        if name == "flock":
            patch.setattr(fcntl, "flock", failing(fcntl.flock, number, when=is_beneath(root)))
        elif name == "openat2":
            call = failing(syscalls.openat2_unchecked, number, when=is_beneath(root))
            patch.setattr(syscalls, "openat2_unchecked", call)
        else:
            patch.setattr(os, name, failing(getattr(os, name), number, when=is_beneath(root)))


@pytest.mark.parametrize("operation", CHANGES | LOOKS)
@pytest.mark.parametrize("manager", ["used"], indirect=True)
def test_an_open_workspace_on_a_disk_that_became_read_only_is_unchanged(
    manager: WorkspaceManager, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    with manager.open("one") as workspace:
        with monkeypatch.context() as patch:
            break_all(patch, root, errno.EROFS, WRITING)
            try:
                (CHANGES | LOOKS)[operation](workspace)
            except CarrelError as error:
                require_clear(error, tmp_path, UnavailableError, PermissionError)
            else:
                assert operation in (*LOOKS, "recount")
        assert workspace.read("d/f") == b"kept"
        assert workspace.usage() == workspace.recount()
    require_well(manager)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE], ids=errno.errorcode.get)
def test_every_call_says_that_the_disk_fails_and_works_when_it_does_no_longer(
    manager: WorkspaceManager,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    before = snapshot(root)
    for call in every_call(manager).values():
        with monkeypatch.context() as patch:
            break_all(patch, root, number, NAMES)
            with pytest.raises(UnavailableError) as caught:
                call()
        require_clear(caught.value, tmp_path)
        assert snapshot(root) == before
    require_well(manager)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("manager", ["used"], indirect=True)
def test_whichever_system_call_fails_the_error_is_ours_and_nothing_is_lost(
    manager: WorkspaceManager, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A call that does not need it simply works; what was to be deleted may be gone, and nothing else."""
    for key, call in every_call(manager).items():
        if key.startswith(("delete", "sweep", "write", "extend")):
            continue
        with monkeypatch.context() as patch:
            break_all(patch, root, errno.EIO, [name])
            try:
                call()
            except CarrelError as error:
                require_clear(error, tmp_path, UnavailableError, DiskError)
        for made in set(manager.list_workspaces()) - {"one", "two"}:
            assert key.startswith(("create", "get_workspace")), key
            manager.delete_workspace(made)
    require_well(manager)


@pytest.mark.deeper
@pytest.mark.parametrize(
    ("name", "key"), pairs(NAMES, ["delete_workspace", "sweep", "write_session_file", "extend"])
)
@pytest.mark.parametrize("manager", ["used"], indirect=True)
def test_a_change_during_which_a_system_call_fails_is_made_or_not_and_the_next_sweep_tidies_up(
    manager: WorkspaceManager,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    key: str,
) -> None:
    held = open_descriptors()
    with monkeypatch.context() as patch:
        break_all(patch, root, errno.EIO, [name])
        with suppress(CarrelError):
            every_call(manager)[key]()
    manager_cache().close()
    assert open_descriptors() <= held + 1, "the trash may have been opened for good"
    there = manager.list_workspaces()
    sweep_all(manager)
    require_whole(root, *there)
    for session_id in there:
        with manager.open(session_id) as workspace:
            assert workspace.usage() == workspace.recount()
            if session_id == "one":
                assert workspace.read("d/f") in (b"kept", b"new")
    assert key not in ("write_session_file", "extend") or there == ["one", "two"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE], ids=errno.errorcode.get)
@pytest.mark.parametrize("operation", CHANGES | LOOKS)
@pytest.mark.parametrize("manager", ["used"], indirect=True)
def test_a_workspace_on_a_disk_that_fails_gives_errors_of_ours(
    manager: WorkspaceManager,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    operation: str,
) -> None:
    with manager.open("one") as workspace:
        with monkeypatch.context() as patch:
            break_all(patch, root, number, NAMES)
            with pytest.raises(UnavailableError if number == errno.ESTALE else OSError) as caught:
                (CHANGES | LOOKS)[operation](workspace)
            assert isinstance(caught.value, UnavailableError | DiskError)
            require_clear(caught.value, tmp_path)
        del caught
        assert workspace.read("d/f") == b"kept"
        assert workspace.usage() == workspace.recount()
    require_well(manager)


# The table


@pytest.mark.parametrize(
    "number", [errno.ESTALE, errno.ENOTCONN, errno.ENODEV, errno.ESHUTDOWN], ids=errno.errorcode.get
)
def test_a_disk_that_is_away_is_unavailable(
    bare: Workspace, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    error = translate(number, parse("a/f"))
    assert isinstance(error, UnavailableError)
    assert (error.code, error.path) == ("sessions.unavailable", "a/f")
    assert "'a/f'" in str(error)
    bare.write("f", b"in")
    monkeypatch.setattr(syscalls, "openat2_unchecked", failing(syscalls.openat2_unchecked, number))
    with pytest.raises(UnavailableError, match="'f'"):
        bare.read("f")


def test_a_disk_that_fails_is_not_away() -> None:
    error = translate(errno.EIO, parse("a/f"))
    assert isinstance(error, DiskError)
    assert isinstance(translate(errno.EAGAIN, parse("a/f")), BusyError)


def test_nothing_was_planted_by_mistake(root: Path) -> None:
    """`is_beneath` sees what it should: by path, by directory and by descriptor."""
    plant(root, "d/f")
    asks = is_beneath(root)
    fd = os.open(root / "d", os.O_RDONLY)
    try:
        assert asks(str(root / "d"))
        assert asks("f", dir_fd=fd)
        assert asks(fd)
        assert not asks("/etc/passwd", dir_fd=fd)
        assert not asks("/proc/self/fd")
        assert not asks(0)
    finally:
        os.close(fd)
