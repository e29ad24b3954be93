"""Write, append, by pieces and only over a version; all at once or not at all."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.errors import ChangedError, ExistsError, HostDeniedError, LimitError
from carrel.values import FileKind
from tests.requirements import requirement
from tests.workspace.planting import plant, snapshot


class MineError(Exception):
    """An error of the caller's own."""


# One write


@requirement("W-11", "W-17")
def test_a_write_tells_size_and_path_and_reads_back(workspace: Workspace, directory: Path) -> None:
    info = workspace.write("sub/test.txt", "Hello, WASI Sandbox!")
    assert (info.size_bytes, info.path, info.kind) == (20, "sub/test.txt", FileKind.FILE)
    assert str(directory) not in repr(info)
    assert workspace.read_text("sub/test.txt") == "Hello, WASI Sandbox!"
    assert workspace.stat("sub/test.txt") == info


@requirement("W-27")
def test_a_large_text_is_written(workspace: Workspace) -> None:
    text = "All work and no play.\n" * 10_000
    workspace.write("large.txt", text)
    assert workspace.read_text("large.txt") == text


@pytest.mark.parametrize("data", [b"bytes", bytearray(b"bytes"), memoryview(b"bytes")])
def test_anything_that_is_bytes_is_written(workspace: Workspace, data: bytes) -> None:
    workspace.write("f", data)
    workspace.append("f", data)
    assert workspace.read("f") == b"bytesbytes"


@pytest.mark.parametrize("data", [None, 5, ["a"], {"a": 1}])
def test_anything_else_is_a_type_error_and_changes_nothing(workspace: Workspace, data: object) -> None:
    workspace.write("f", b"old")
    with pytest.raises(TypeError, match="data must be bytes or str"):
        workspace.write("f", data)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(TypeError, match="data must be bytes or str"):
        workspace.append("f", data)  # type: ignore[arg-type]  # that is the point
    assert workspace.read("f") == b"old"


@requirement("W-13")
def test_missing_parents_are_an_error_when_they_are_not_to_be_made(
    workspace: Workspace, directory: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="'deep/nested/f'"):
        workspace.write("deep/nested/f", b"", parents=False)
    with pytest.raises(FileNotFoundError, match="'deep/nested/f'"):
        workspace.write_chunks("deep/nested/f", [b""], parents=False)
    assert snapshot(directory) == {}
    workspace.write("deep/nested/f", b"")
    workspace.write("deep/nested/g", b"", parents=False)


@requirement("W-05", "W-07")
@pytest.mark.parametrize("taken", ["file", "empty", "sub", "link", "dangling", "out", "gone"])
def test_without_overwrite_anything_that_is_there_is_refused(
    workspace: Workspace, directory: Path, taken: str
) -> None:
    plant(
        directory,
        "file",
        "empty = ",
        "sub/",
        "link => file",
        "dangling => nothing",
        "out => /etc",
        "gone => /no",
    )
    before = snapshot(directory)
    with pytest.raises(FileExistsError, match=f"'{taken}' already exists"):
        workspace.write(taken, b"new", overwrite=False)
    with pytest.raises(FileExistsError, match=f"'{taken}' already exists"):
        workspace.write_chunks(taken, [b"new"], overwrite=False)
    assert snapshot(directory) == before


@pytest.mark.parametrize("path", ["sub", "sub/", "new/", "new/.", ".", "./", "sub/.."])
def test_a_path_that_can_only_be_a_directory_is_not_written(
    workspace: Workspace, directory: Path, path: str
) -> None:
    plant(directory, "sub/kept")
    with pytest.raises((IsADirectoryError, ValueError)):
        workspace.write(path, b"new")
    assert snapshot(directory) == {"sub": None, "sub/kept": b"in"}


@requirement("P-23")
def test_a_fifo_is_not_written(workspace: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    for attempt in (
        lambda: workspace.write("fifo", b"new"),
        lambda: workspace.append("fifo", b"new"),
        lambda: workspace.write_chunks("fifo", [b"new"]),
        lambda: workspace.edit("fifo", "a", "b"),
        lambda: workspace.copy("fifo", "copy"),
    ):
        with pytest.raises(OSError, match="'fifo' is not a regular file"):
            attempt()
    assert stat.S_ISFIFO((directory / "fifo").stat().st_mode)


@requirement("P-14", "P-09")
def test_a_link_is_written_through_only_where_it_stays_inside(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    plant(
        directory, "in => sub/f", "sub/f", "new => made", "out => ../outside/secret", "gone => ../outside/new"
    )
    workspace.write("in", b"changed")
    assert (directory / "sub" / "f").read_bytes() == b"changed"
    workspace.write("new", b"made through")
    assert (directory / "made").read_bytes() == b"made through"
    for path in ("out", "gone"):
        with pytest.raises(ValueError, match="escapes session workspace"):
            workspace.write(path, b"changed")
        with pytest.raises(ValueError, match="escapes session workspace"):
            workspace.append(path, b"changed")
    assert snapshot(outside) == {"secret": b"secret data"}
    assert (directory / "in").is_symlink()


@requirement("P-15", "P-16", "W-14")
@pytest.mark.parametrize(
    "path", ["a/../../evil", "../evil", "a/b/../../../evil", "sub/../../evil", "sub/../../new/f"]
)
def test_climbing_out_makes_no_directory_on_the_way(
    workspace: Workspace, directory: Path, tmp_path: Path, path: str
) -> None:
    plant(directory, "sub/")
    before = snapshot(tmp_path)
    for attempt in (
        lambda: workspace.write(path, b"data"),
        lambda: workspace.append(path, b"data"),
        lambda: workspace.mkdir(path),
        lambda: workspace.write_chunks(path, [b"data"]),
        lambda: workspace.copy("sub", path, recursive=True),
        lambda: workspace.move("sub", path),
    ):
        with pytest.raises((ValueError, FileNotFoundError)):
            attempt()
        assert snapshot(tmp_path) == before


@requirement("P-17")
def test_an_absolute_path_through_the_workspace_and_out_makes_nothing(
    workspace: Workspace, directory: Path, tmp_path: Path
) -> None:
    for path in (f"{directory}/../evil.txt", "/workspace/../evil.txt", f"{tmp_path}/evil.txt"):
        with pytest.raises(ValueError, match="workspace"):
            workspace.write(path, b"data")
    assert snapshot(tmp_path) == {"ws": None}


# The mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_of_a_file_survives_its_replacement(
    workspace: Workspace, directory: Path, mode: int
) -> None:
    plant(directory, "f = old text")
    (directory / "f").chmod(mode)
    workspace.write("f", b"new text")
    workspace.write_chunks("f", [b"newer text"])
    workspace.append("f", b"!")
    workspace.edit("f", "newer", "newest")
    assert stat.S_IMODE((directory / "f").stat().st_mode) == mode
    assert (directory / "f").read_bytes() == b"newest text!"


def test_a_new_file_obeys_the_mask_of_the_process(workspace: Workspace, directory: Path) -> None:
    mask = os.umask(0o027)
    try:
        workspace.write("sub/f", b"")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((directory / "sub" / "f").stat().st_mode) == 0o640
    assert stat.S_IMODE((directory / "sub").stat().st_mode) == 0o750


def test_bits_beyond_permissions_do_not_survive(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f")
    (directory / "f").chmod(0o4755)
    workspace.write("f", b"new")
    assert stat.S_IMODE((directory / "f").stat().st_mode) == 0o755


@requirement("W-10")
def test_a_read_only_file_is_neither_replaced_nor_changed(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f = old")
    (directory / "f").chmod(0o444)
    for attempt in (
        lambda: workspace.write("f", b"new"),
        lambda: workspace.append("f", b"new"),
        lambda: workspace.edit("f", "old", "new"),
        lambda: workspace.write_chunks("f", [b"new"]),
    ):
        with pytest.raises(HostDeniedError, match="permission denied: 'f'") as caught:
            attempt()
        assert caught.value.code == "path.permission"
    assert (directory / "f").read_bytes() == b"old"


@requirement("W-10")
def test_a_file_of_somebody_else_is_not_replaced(unprivileged: Path) -> None:
    plant(unprivileged, "own = old", "shut/f")
    (unprivileged / "shut").chmod(0o500)
    with Workspace.open(unprivileged) as workspace:
        with pytest.raises(PermissionError, match="permission denied: 'shut/g'"):
            workspace.write("shut/g", b"new")
        with pytest.raises(PermissionError, match="permission denied: 'shut/f'"):
            workspace.remove("shut/f")
        workspace.write("own", b"new")
    assert snapshot(unprivileged) == {"own": b"new", "shut": None, "shut/f": b"in"}


# Versions


def test_only_the_version_that_was_seen_is_replaced(workspace: Workspace) -> None:
    seen = workspace.write("f", b"one").version
    again = workspace.write("f", b"two", if_version=seen).version
    assert again != seen
    with pytest.raises(ChangedError, match="'f' was changed in the meantime") as caught:
        workspace.write("f", b"three", if_version=seen)
    assert caught.value.code == "path.changed"
    assert isinstance(caught.value, OSError)
    assert workspace.read("f") == b"two"


def test_a_file_that_is_gone_has_no_version_to_replace(workspace: Workspace) -> None:
    seen = workspace.write("f", b"one").version
    workspace.remove("f")
    with pytest.raises((ChangedError, FileNotFoundError)):
        workspace.write("f", b"two", if_version=seen)
    assert not workspace.exists("f")


def test_a_change_by_the_host_is_noticed(workspace: Workspace, directory: Path) -> None:
    seen = workspace.write("f", b"one").version
    (directory / "f").write_bytes(b"host")
    with pytest.raises(ChangedError):
        workspace.write("f", b"two", if_version=seen)
    assert (directory / "f").read_bytes() == b"host"


# Pieces


def test_pieces_of_any_size_make_up_the_file(workspace: Workspace) -> None:
    pieces = [b"", b"a", b"b" * 2**20, b"", os.urandom(2**21 + 3)]
    info = workspace.write_chunks("sub/f", iter(pieces))
    assert info.size_bytes == len(b"".join(pieces))
    assert workspace.read("sub/f") == b"".join(pieces)


def test_no_pieces_make_an_empty_file(workspace: Workspace) -> None:
    assert workspace.write_chunks("f", []).size_bytes == 0
    assert workspace.read("f") == b""


@pytest.mark.parametrize(
    "error", [MineError("mine"), OSError(28, "theirs"), KeyError("x"), StopAsyncIteration()]
)
@pytest.mark.parametrize("path", ["f", "new", "made/on/the/way"])
def test_a_source_that_fails_changes_nothing_and_its_own_error_comes_out(
    workspace: Workspace, directory: Path, error: Exception, path: str
) -> None:
    workspace.write("f", b"old")
    recorded = len(list(workspace.changes()))

    def failing() -> Iterator[bytes]:
        yield b"half of it"
        raise error

    with pytest.raises(type(error)) as caught:
        workspace.write_chunks(path, failing())
    assert caught.value is error
    assert snapshot(directory) == {"f": b"old"}
    assert len(list(workspace.changes())) == recorded


def test_a_source_that_is_interrupted_changes_nothing(workspace: Workspace, directory: Path) -> None:
    def interrupted() -> Iterator[bytes]:
        yield b"half of it"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.write_chunks("f", interrupted())
    assert snapshot(directory) == {}


def test_a_source_of_something_else_than_bytes_changes_nothing(workspace: Workspace, directory: Path) -> None:
    with pytest.raises(TypeError):
        workspace.write_chunks("f", ["text"])  # type: ignore[list-item]  # that is the point
    assert snapshot(directory) == {}


def test_a_source_is_stopped_as_soon_as_the_file_would_be_too_large(directory: Path) -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"x" * 10

    with (
        Workspace.open(directory, limits=Limits(file_bytes=35)) as workspace,
        pytest.raises(LimitError, match="the limit is 35"),
    ):
        workspace.write_chunks("made/f", endless())
    assert taken == 4
    assert snapshot(directory) == {}


def test_a_file_can_be_written_from_its_own_chunks(workspace: Workspace) -> None:
    workspace.write("f", b"0123456789")
    workspace.write_chunks("f", (chunk.upper() + b"-" for chunk in workspace.read_chunks("f", chunk_bytes=4)))
    assert workspace.read("f") == b"0123-4567-89-"


# Appending


@requirement("W-12")
def test_append_adds_to_the_end_and_makes_the_file_if_needed(workspace: Workspace) -> None:
    first = workspace.append("logs/today.log", "Line 1\n")
    second = workspace.append("logs/today.log", b"Line 2\n")
    assert workspace.read("logs/today.log") == b"Line 1\nLine 2\n"
    assert (first.size_bytes, second.size_bytes) == (7, 14)
    assert first.inode == second.inode


def test_nothing_appended_changes_nothing(workspace: Workspace) -> None:
    workspace.write("f", b"old")
    workspace.append("f", b"")
    assert workspace.read("f") == b"old"


def test_append_follows_a_link_inside_and_is_a_directory_error_on_one(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "f = old", "link => f", "sub/")
    workspace.append("link", b"!")
    assert (directory / "f").read_bytes() == b"old!"
    with pytest.raises(IsADirectoryError):
        workspace.append("sub", b"!")


# A writer that dies


@requirement("W-18")
@pytest.mark.parametrize("size", [1, 2**20])
def test_a_writer_that_is_killed_leaves_the_old_content_and_nothing_else(directory: Path, size: int) -> None:
    plant(directory, "f = old")
    code = f"""
import os, sys
from carrel import Workspace
def source():
    yield b"x" * {size}
    print("ready", flush=True)
    sys.stdin.read()
    yield b"y"
Workspace.open({str(directory)!r}).write_chunks("f", source())
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert snapshot(directory) == {"f": b"old"}


@requirement("W-18")
def test_a_reader_sees_old_or_new_content_while_a_file_is_replaced(
    workspace: Workspace, directory: Path
) -> None:
    workspace.write("f", b"old" * 1000)
    seen: list[bytes] = []

    def watching() -> Iterator[bytes]:
        for _ in range(5):
            yield b"new" * 200
            seen.append((directory / "f").read_bytes())

    workspace.write_chunks("f", watching())
    assert set(seen) == {b"old" * 1000}
    assert workspace.read("f") == b"new" * 1000


def test_a_file_made_meanwhile_is_not_lost_without_overwrite(workspace: Workspace, directory: Path) -> None:
    def racing() -> Iterator[bytes]:
        yield b"ours"
        (directory / "f").write_bytes(b"theirs")

    with pytest.raises(ExistsError):
        workspace.write_chunks("f", racing(), overwrite=False)
    assert snapshot(directory) == {"f": b"theirs"}
