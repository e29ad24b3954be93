"""`openat2` is missing, filtered, unsure or interrupted (E50, E51)."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carrel.errors import BusyError, CarrelError, EscapeError, HostDeniedError
from carrel.fs import syscalls
from carrel.fs.local import resolve as resolve_module
from carrel.workspace.workspace import Workspace
from tests.faults.inject import failing, open_descriptors, raw_failing

FS_IOC_SETFLAGS = 0x40086602
FS_IMMUTABLE_FL = 0x10


@pytest.fixture
def workspace(directory: Path) -> Workspace:
    """One file, and a link that leads out."""
    (directory / "d").mkdir()
    (directory / "d/f").write_bytes(b"in")
    (directory / "out").symlink_to("..")
    (directory.parent / "secret").write_bytes(b"secret")
    return Workspace.open(directory)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_without_openat2_the_walk_is_taken_and_confines_as_well(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(syscalls, "openat2_unchecked", failing(syscalls.openat2_unchecked, number))
    assert workspace.confinement == "kernel"
    assert workspace.read("d/f") == b"in"
    assert workspace.confinement == "walk"
    for path in ("out/secret", "../secret", "d/../../secret"):
        with pytest.raises(EscapeError):
            workspace.read(path)
    workspace.write("d/new", b"new")
    assert [info.path for info in workspace.walk()] == ["d", "d/f", "d/new", "out"]
    workspace.remove("d", recursive=True)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_demanded_kernel_is_never_replaced_by_the_walk(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (directory / "f").write_bytes(b"in")
    workspace = Workspace.open(directory, confinement="kernel")
    monkeypatch.setattr(syscalls, "openat2_unchecked", failing(syscalls.openat2_unchecked, number))
    with pytest.raises(CarrelError):
        workspace.read("f")
    with pytest.raises(CarrelError):
        workspace.list()
    assert workspace.confinement == "kernel"


def test_one_file_that_is_really_forbidden_stays_forbidden_and_the_kernel_in_force(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = failing(
        syscalls.openat2_unchecked, errno.EPERM, when=lambda base, path, flags, resolve: path == b"d/f"
    )
    monkeypatch.setattr(syscalls, "openat2_unchecked", refuse)
    with pytest.raises(HostDeniedError):
        workspace.read("d/f")
    assert workspace.confinement == "kernel"
    assert [info.name for info in workspace.list("d")] == ["f"]


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_a_file_that_the_host_made_immutable_stays_forbidden_and_the_kernel_in_force(
    workspace: Workspace, directory: Path
) -> None:
    with (directory / "d/f").open("rb") as file:
        try:
            fcntl.ioctl(file, FS_IOC_SETFLAGS, struct.pack("l", FS_IMMUTABLE_FL))
        except OSError:
            pytest.skip("the file system has no immutable files")
        try:
            with pytest.raises(HostDeniedError):
                workspace.append("d/f", b"x")
        finally:
            fcntl.ioctl(file, FS_IOC_SETFLAGS, struct.pack("l", 0))
    assert workspace.confinement == "kernel"
    assert workspace.read("d/f") == b"in"


@pytest.mark.parametrize("times", [1, 5, resolve_module.RETRIES - 1])
def test_an_unsure_kernel_is_asked_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(
        syscalls, "openat2_unchecked", failing(syscalls.openat2_unchecked, errno.EAGAIN, times=times)
    )
    assert workspace.read("d/f") == b"in"
    assert workspace.confinement == "kernel"


def test_a_kernel_that_stays_unsure_means_busy_and_not_forever(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def unsure(*args: object) -> int:
        nonlocal asked
        asked += 1
        assert asked <= 10 * resolve_module.RETRIES, "this goes on for ever"
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(syscalls, "openat2_unchecked", unsure)
    with pytest.raises(BusyError) as caught:
        workspace.read("d/f")
    assert asked == resolve_module.RETRIES
    assert caught.value.path == "d/f"
    assert workspace.confinement == "kernel"


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupted_open_or_rename_goes_on(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    monkeypatch.setattr(syscalls, "_openat2", raw_failing(syscalls._openat2, errno.EINTR, times))
    assert workspace.read("d/f") == b"in"
    assert syscalls._renameat2 is not None
    monkeypatch.setattr(syscalls, "_renameat2", raw_failing(syscalls._renameat2, errno.EINTR, times))
    workspace.move("d/f", "d/g")
    assert workspace.read("d/g") == b"in"


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_the_walk_out_of_descriptors_does_not_cry_escape(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    workspace = Workspace.open(directory, confinement="walk")
    workspace.write("a/b/f", b"in")
    monkeypatch.setattr(syscalls, "_statx", None)
    refuse = failing(
        os.open, number, when=lambda path, *rest, **more: str(path).startswith("/proc/self/fdinfo/")
    )
    held = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(CarrelError) as caught:
            workspace.read("a/b/f")
    assert not isinstance(caught.value, EscapeError)
    assert open_descriptors() == held
    assert workspace.read("a/b/f") == b"in"


def test_the_walk_works_without_proc_and_still_sees_other_devices(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = failing(os.open, errno.ENOENT, when=lambda path, *rest, **more: str(path).startswith("/proc/"))
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(syscalls, "_statx", None)
    workspace = Workspace.open(directory, confinement="walk")
    workspace.write("a/b/f", b"in")
    assert workspace.read("a/b/f") == b"in"
    host = Workspace.open("/", confinement="walk")
    with pytest.raises(EscapeError):
        host.read("proc/version")


def answers_nothing(*words: object) -> int:
    """`statx` of a kernel that does not know mount ids: it succeeds and leaves them out."""
    return 0


STATX = {
    "works": syscalls._statx,
    "missing": None,
    "filtered": raw_failing(answers_nothing, errno.EPERM, times=2**30),
    "too old": answers_nothing,
}


@contextmanager
def bind(source: Path, target: Path) -> Iterator[None]:
    """Show *source* at *target* too."""
    done = subprocess.run(
        ["mount", "--bind", str(source), str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        if os.environ.get("CI") == "true":
            pytest.fail(f"cannot mount: {done.stderr}")
        pytest.skip(f"needs root, to mount: {done.stderr.strip()}")
    yield
    subprocess.run(["umount", "--lazy", str(target)], check=True)


@pytest.fixture
def bound(directory: Path, tmp_path: Path) -> Iterator[Path]:
    """A directory outside with a secret in it, which the workspace shows as `bound`."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"secret")
    (directory / "bound").mkdir()
    with bind(tmp_path / "outside", directory / "bound"):
        yield directory / "bound"


@pytest.fixture(params=STATX)
def statx(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way in which `statx` may answer."""
    monkeypatch.setattr(syscalls, "_statx", STATX[request.param])
    return str(request.param)


def test_a_mount_has_one_id_however_it_is_learnt(statx: str) -> None:
    for path in ("/", "/proc", "/proc/self", "/dev", "/etc/passwd"):
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        try:
            info = Path(f"/proc/self/fdinfo/{fd}").read_text()
            assert syscalls.mount_id_unchecked(fd) == (1, int(info.partition("mnt_id:")[2].split()[0]))
        finally:
            os.close(fd)


@pytest.mark.root
@pytest.mark.parametrize("confinement", ["kernel", "walk"])
def test_a_directory_of_the_same_disk_that_is_mounted_inside_is_refused(
    directory: Path, confinement: str, statx: str, bound: Path
) -> None:
    """Its device is that of the workspace, so that only the mount shows it."""
    assert bound.stat().st_dev == directory.stat().st_dev
    workspace = Workspace.open(directory, confinement=confinement)
    for path in ("bound/secret", "bound", "bound/../bound/secret"):
        with pytest.raises(EscapeError):
            workspace.stat(path)


@pytest.mark.root
def test_a_directory_that_was_open_before_something_was_mounted_on_it_keeps_its_id(
    directory: Path, statx: str
) -> None:
    covered = directory / "covered"
    covered.mkdir()
    fd = os.open(covered, os.O_PATH | os.O_DIRECTORY)
    before = syscalls.mount_id_unchecked(fd)
    with bind(directory.parent, covered):
        assert syscalls.mount_id_unchecked(fd) == before
        above = os.open(covered, os.O_PATH | os.O_DIRECTORY)
        assert syscalls.mount_id_unchecked(above) != before
        os.close(above)
    os.close(fd)
