"""The file system has no unnamed files, the host no /proc, the kernel no flags for renames (E52 to E54)."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.errors import (
    BusyError,
    CarrelError,
    ChangedError,
    DiskError,
    DiskFullError,
    ExistsError,
    UnavailableError,
)
from carrel.fs import syscalls
from carrel.workspace.workspace import Workspace
from tests.faults.inject import failing, first, is_unnamed, open_descriptors
from tests.workspace.traces import drafts_in


def names(directory: Path) -> list[str]:
    """Everything beneath a directory."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


def no_unnamed_files(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(os, "open", failing(os.open, number, when=is_unnamed))


def no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a host without /proc answers."""
    in_proc: Callable[..., bool] = lambda path, *rest, **more: str(path).startswith("/proc/")  # noqa: E731
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: not in_proc(path) and exists(path))
    for name in ("open", "link", "chmod", "readlink"):
        monkeypatch.setattr(os, name, failing(getattr(os, name), errno.ENOENT, when=in_proc))


def no_rename_flags(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(syscalls, "renameat2_unchecked", failing(syscalls.renameat2_unchecked, number))


LACKS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "unnamed files (overlay)": lambda patch: no_unnamed_files(patch, errno.EOPNOTSUPP),
    "unnamed files (old kernel)": lambda patch: no_unnamed_files(patch, errno.EISDIR),
    "unnamed files (other sandbox)": lambda patch: no_unnamed_files(patch, errno.EINVAL),
    "proc": no_proc,
    "rename flags (file system)": lambda patch: no_rename_flags(patch, errno.EINVAL),
    "rename flags (kernel)": lambda patch: no_rename_flags(patch, errno.ENOSYS),
}


@pytest.fixture(params=LACKS, ids=lambda name: f"no {name}")
def lack(request: pytest.FixtureRequest, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> str:
    """A host that lacks something, after the workspace was opened."""
    workspace.write("old", b"old")
    LACKS[request.param](monkeypatch)
    return str(request.param)


@pytest.fixture
def place(workspace: Workspace) -> Path:
    """Where the workspace is on the host."""
    return workspace.host_path(".")


def test_files_are_still_created_replaced_and_never_clobbered(
    place: Path, workspace: Workspace, lack: str
) -> None:
    held = open_descriptors()
    workspace.write("d/new", b"new")
    workspace.write("old", b"replaced")
    with pytest.raises(ExistsError):
        workspace.write("old", b"clobbered", overwrite=False)
    workspace.write("fresh", b"fresh", overwrite=False)
    workspace.copy("old", "copied")
    workspace.edit("fresh", "fresh", "edited")
    workspace.append("old", b"!")
    assert open_descriptors() == held
    contents = {name: (place / name).read_bytes() for name in names(place) if (place / name).is_file()}
    assert contents == {"copied": b"replaced", "d/new": b"new", "fresh": b"edited", "old": b"replaced!"}


def test_a_file_that_appears_while_another_is_written_is_not_clobbered(
    place: Path, workspace: Workspace, lack: str
) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"mine"
        (place / "taken").write_bytes(b"theirs")

    with pytest.raises(ExistsError):
        workspace.write_chunks("taken", chunks(), overwrite=False)
    assert {name: (place / name).read_bytes() for name in names(place)} == {"old": b"old", "taken": b"theirs"}


def test_moves_still_replace_nothing(place: Path, workspace: Workspace, lack: str) -> None:
    workspace.mkdir("d")
    workspace.write("d/f", b"d")
    workspace.mkdir("full")
    workspace.write("full/f", b"full")
    workspace.mkdir("empty")
    for source in ("old", "d"):
        for target in ("full", "full/f", "empty"):
            with pytest.raises(ExistsError):
                workspace.move(source, target)
    workspace.move("old", "moved")
    workspace.move("d", "moved-d")
    assert names(place) == ["empty", "full", "full/f", "moved", "moved-d", "moved-d/f"]
    assert (place / "full/f").read_bytes() == b"full"


def test_a_move_of_a_link_moves_the_link(place: Path, workspace: Workspace, lack: str) -> None:
    (place / "l").symlink_to("nowhere")
    workspace.move("l", "m")
    assert os.readlink(place / "m") == "nowhere"
    assert not (place / "l").is_symlink()


def test_a_failed_write_leaves_nothing(place: Path, workspace: Workspace, lack: str) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("no more")

    held = open_descriptors()
    with pytest.raises(RuntimeError, match="no more"):
        workspace.write_chunks("old", chunks())
    with pytest.raises(RuntimeError, match="no more"):
        workspace.write_chunks("a/b/c", chunks())
    assert names(place) == ["old"]
    assert (place / "old").read_bytes() == b"old"
    assert open_descriptors() == held


@pytest.mark.parametrize(
    "number", [errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP], ids=errno.errorcode.get
)
def test_a_file_is_copied_where_the_kernel_cannot(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    content = os.urandom(3 * 2**20)
    workspace.write("f", content)
    monkeypatch.setattr(os, "copy_file_range", failing(os.copy_file_range, number))
    workspace.copy("f", "g")
    assert workspace.read("g") == content


@pytest.mark.parametrize("name", ["write", "copy_file_range", "fchmod", "rename", "link"])
@pytest.mark.parametrize(("number", "problem"), [(errno.EIO, DiskError), (errno.EDQUOT, DiskFullError)])
def test_a_disk_that_fails_at_any_step_leaves_the_old_content_and_nothing_else(
    place: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    number: int,
    problem: type[DiskError],
) -> None:
    """Some steps are not taken by some workspaces; then the operation simply works."""
    workspace.write("old", b"old")
    workspace.write("source", b"source")
    (place / "source").chmod(0o755)
    held = open_descriptors()
    for operation in (
        lambda: workspace.write("old", b"new"),
        lambda: workspace.copy("source", "old", overwrite=True),
        lambda: workspace.copy("source", "a/b/copied"),
        lambda: workspace.edit("old", "old", "new"),
    ):
        failed = False
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing(getattr(os, name), number))
            try:
                operation()
            except problem:
                failed = True
        if not failed:
            (place / "old").write_bytes(b"old")
            (place / "old").chmod(0o644)
            workspace.remove("a", recursive=True, force=True)
        assert names(place) == ["old", "source"]
        assert (place / "old").read_bytes() == b"old"
    assert open_descriptors() == held


def test_a_failed_append_leaves_the_file_as_long_as_it_was(
    bare: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.write("f", b"old")
    really = os.write

    def half(fd: int, data: bytes) -> int:
        """Write half, and fail the next time."""
        monkeypatch.setattr(os, "write", failing(really, errno.EIO))
        return really(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(DiskError):
        bare.append("f", b"0123456789")
    assert bare.read("f") == b"old"


def test_short_writes_are_completed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: really(fd, bytes(data)[:1000]))
    content = os.urandom(10_500)
    workspace.write("f", content)
    workspace.append("f", content)
    assert workspace.read("f") == content * 2


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_file_system_without_locks_keeps_no_sessions_and_no_draft(
    session: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    session.write("f", b"old")
    held = open_descriptors()
    monkeypatch.setattr(fcntl, "flock", failing(fcntl.flock, number))
    with pytest.raises(UnavailableError, match="state of the session cannot be used"):
        session.write("f", b"new")
    assert session.read("f") == b"old"
    assert drafts_in(tmp_path / "sessions") == []
    assert open_descriptors() == held


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_bare_file_is_edited_on_a_file_system_without_locks(
    bare: Workspace, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    version = bare.write("f", b"old").version
    monkeypatch.setattr(fcntl, "flock", failing(fcntl.flock, number))
    bare.write("f", b"new", if_version=version)
    bare.edit("f", "new", "newer")
    assert bare.read("f") == b"newer"


def test_a_link_that_becomes_a_file_meanwhile_is_looked_at_again(
    bare: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "l").symlink_to("elsewhere")

    def swap() -> None:
        (directory / "l").unlink()
        (directory / "l").write_bytes(b"a file now")

    monkeypatch.setattr(os, "readlink", first(os.readlink, swap, when=lambda name, **more: name == b"l"))
    try:
        bare.write("l", b"new")
    except (BusyError, ChangedError):
        assert (directory / "l").read_bytes() == b"a file now"
    else:
        assert (directory / "l").read_bytes() == b"new"
    assert not (directory / "elsewhere").exists()


def test_a_file_that_appears_while_it_is_appended_to_is_appended_to(
    bare: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = syscalls.openat2_unchecked

    def too_early(base: int, path: bytes, flags: int, resolve: int) -> int:
        try:
            return really(base, path, flags, resolve)
        except FileNotFoundError:
            (directory / "log").write_bytes(b"theirs\n")
            raise

    monkeypatch.setattr(syscalls, "openat2_unchecked", too_early)
    bare.append("log", b"mine\n")
    assert (directory / "log").read_bytes() == b"theirs\nmine\n"


def test_a_tree_whose_link_becomes_a_directory_meanwhile_is_not_called_an_empty_path(
    bare: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "d").mkdir()
    (directory / "d/l").symlink_to("f")

    def swap() -> None:
        (directory / "d/l").unlink()
        (directory / "d/l").mkdir()

    swapped = first(
        syscalls.openat2_unchecked,
        swap,
        when=lambda base, path, flags, resolve: path == b"d/l" and flags & os.O_NOFOLLOW,
    )
    monkeypatch.setattr(syscalls, "openat2_unchecked", swapped)
    try:
        bare.copy("d", "e", recursive=True)
    except CarrelError as error:
        assert error.code != "path.invalid"  # noqa: PT017  # to succeed is as good
