"""Drafts: content that nobody sees until it is complete, and what is left when its writer is killed."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from carrel.fs import syscalls
from carrel.fs.handle import Handle
from carrel.fs.local import draft as draft_module
from carrel.fs.local.draft import (
    ABANDONED_SECONDS,
    Draft,
    lock_soon,
    rename_without_replacing,
    replace_by_link,
    sweep_abandoned,
)
from carrel.fs.rules import DRAFT_PREFIX
from carrel.testing import tree
from tests.contract.places import at_once, show

NOW = 1_000_000.0
OLD = NOW - ABANDONED_SECONDS - 1


def opened(directory: Path) -> Handle:
    return Handle(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


@pytest.fixture(params=["named", "unnamed"])
def draft(request: pytest.FixtureRequest, tmp_path: Path) -> Draft:
    """A draft for a file in `target`, whose name, if it gets one, is in `names`."""
    names, target = (opened(tree(tmp_path / name)) for name in ("names", "target"))
    return Draft(names, unnamed_in=target if request.param == "unnamed" else None)


# One draft


def test_a_draft_is_not_seen_until_it_is_put_in_place(draft: Draft, tmp_path: Path) -> None:
    draft.write(b"new ")
    draft.write(b"text")
    assert show(tmp_path / "target") == []
    draft.create(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert show(tmp_path) == ["names/", "target/", "target/f = new text"]
    assert (tmp_path / "target/f").stat().st_nlink == 1


def test_a_draft_replaces_a_file(draft: Draft, tmp_path: Path) -> None:
    tree(tmp_path / "target", "f = old")
    draft.write(b"new")
    draft.replace(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert show(tmp_path) == ["names/", "target/", "target/f = new"]


def test_a_draft_replaces_a_link_not_its_target(draft: Draft, tmp_path: Path) -> None:
    tree(tmp_path, "other = kept", "target/f => ../other")
    draft.replace(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert show(tmp_path) == ["names/", "other = kept", "target/", "target/f = "]


def test_a_draft_does_not_write_through_a_hard_link(draft: Draft, tmp_path: Path) -> None:
    tree(tmp_path, "other = kept")
    os.link(tmp_path / "other", tmp_path / "target/f")
    draft.write(b"new")
    draft.replace(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert show(tmp_path) == ["names/", "other = kept", "target/", "target/f = new"]


@pytest.mark.parametrize("line", ["f = old", "f/", "f => nothing"])
def test_a_taken_name_is_left_alone(draft: Draft, tmp_path: Path, line: str) -> None:
    tree(tmp_path / "target", line)
    before = show(tmp_path / "target")
    with pytest.raises(FileExistsError):
        draft.create(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert show(tmp_path / "target") == before
    assert show(tmp_path / "names") == []


def test_a_directory_is_not_replaced_and_nothing_is_left(draft: Draft, tmp_path: Path) -> None:
    tree(tmp_path / "target", "f/")
    with pytest.raises(IsADirectoryError):
        draft.replace(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert show(tmp_path) == ["names/", "target/", "target/f/"]


def test_a_discarded_draft_leaves_nothing_and_can_be_discarded_again(draft: Draft, tmp_path: Path) -> None:
    draft.write(b"lost")
    fd = draft.fd
    draft.discard()
    draft.discard()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    assert show(tmp_path) == ["names/", "target/"]


def test_a_named_draft_is_locked_by_its_writer(tmp_path: Path) -> None:
    draft = Draft(opened(tmp_path))
    (name,) = os.listdir(tmp_path)
    assert name.encode().startswith(DRAFT_PREFIX)
    other = os.open(tmp_path / name, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    draft.discard()
    os.close(other)


def test_a_large_draft_is_written_whole(draft: Draft, tmp_path: Path) -> None:
    data = os.urandom(1000) * 3000
    draft.write(data)
    draft.create(opened(tmp_path / "target"), b"f")
    draft.discard()
    assert (tmp_path / "target/f").read_bytes() == data


# Links


@pytest.mark.parametrize("line", ["l = old", "l => old"])
def test_a_link_takes_the_place_of_a_file_or_a_link(tmp_path: Path, line: str) -> None:
    tree(tmp_path, line)
    replace_by_link(b"new", opened(tmp_path), opened(tmp_path), b"l")
    assert show(tmp_path) == ["l => new"]


def test_a_link_does_not_take_the_place_of_a_directory(tmp_path: Path) -> None:
    tree(tmp_path, "l/")
    with pytest.raises(IsADirectoryError):
        replace_by_link(b"new", opened(tmp_path), opened(tmp_path), b"l")
    assert show(tmp_path) == ["l/"]


# Renaming without replacing


@pytest.fixture(params=["with renameat2", "without renameat2"])
def directory(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory, on a host whose C library has the call or lacks it."""
    if request.param == "without renameat2":
        monkeypatch.setattr(syscalls, "_renameat2", None)
    return tmp_path


@pytest.mark.parametrize("line", ["a = text", "a => b", "a/"])
def test_a_rename_to_a_free_name_works(directory: Path, line: str) -> None:
    handle = opened(tree(directory, line))
    rename_without_replacing(handle.fd, b"a", handle.fd, b"z")
    assert show(directory) == [line.replace("a", "z", 1)]


@pytest.mark.parametrize("source", ["a = text", "a/"])
@pytest.mark.parametrize("target", ["z = old", "z => nothing", "z/", "z/f = old"])
def test_a_rename_to_a_taken_name_is_refused(directory: Path, source: str, target: str) -> None:
    handle = opened(tree(directory, source, target))
    before = show(directory)
    with pytest.raises(FileExistsError):
        rename_without_replacing(handle.fd, b"a", handle.fd, b"z")
    assert show(directory) == before


def test_a_directory_is_not_renamed_into_itself(directory: Path) -> None:
    handle = opened(tree(directory, "a/b/"))
    inside = opened(directory / "a/b")
    with pytest.raises(OSError, match="Invalid argument") as caught:
        rename_without_replacing(handle.fd, b"a", inside.fd, b"z")
    assert caught.value.errno == errno.EINVAL
    assert show(directory) == ["a/", "a/b/"]


def test_a_missing_source_makes_nothing(directory: Path) -> None:
    handle = opened(directory)
    with pytest.raises(FileNotFoundError):
        rename_without_replacing(handle.fd, b"a", handle.fd, b"z")
    assert show(directory) == []


# Locking


def test_a_lock_that_somebody_keeps_is_told_as_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft_module, "LOCK_TRIES", 2)
    path = tree(tmp_path, "f") / "f"
    held, other = (os.open(path, os.O_RDONLY) for _ in range(2))
    lock_soon(held)
    with pytest.raises(BlockingIOError):
        lock_soon(other)
    os.close(held)
    lock_soon(other)
    os.close(other)


# Sweeping


def aged(path: Path, when: float) -> Path:
    """A file that was last written at *when*."""
    path.write_bytes(b"half")
    os.utime(path, (when, when))
    return path


def swept(directory: Path) -> int:
    handle = opened(directory)
    return sweep_abandoned(handle.fd, NOW)


def draft_name(count: int) -> str:
    return DRAFT_PREFIX.decode() + f"{count:016x}"


def test_a_sweep_removes_the_drafts_of_writers_that_are_gone(tmp_path: Path) -> None:
    for count in range(3):
        aged(tmp_path / draft_name(count), OLD)
    aged(tmp_path / "a file of the workspace", OLD)
    assert swept(tmp_path) == 3
    assert show(tmp_path) == ["a file of the workspace = half"]


def test_a_sweep_leaves_young_drafts(tmp_path: Path) -> None:
    aged(tmp_path / draft_name(1), NOW - ABANDONED_SECONDS + 1)
    aged(tmp_path / draft_name(2), NOW + 1000)
    assert swept(tmp_path) == 0
    assert len(show(tmp_path)) == 2


def test_a_sweep_leaves_a_draft_whose_writer_still_lives_however_old(tmp_path: Path) -> None:
    draft = Draft(opened(tmp_path))
    (name,) = os.listdir(tmp_path)
    os.utime(tmp_path / name, (OLD, OLD))
    assert swept(tmp_path) == 0
    assert os.listdir(tmp_path) == [name]
    draft.discard()


def test_a_sweep_leaves_what_only_looks_like_a_draft(tmp_path: Path) -> None:
    kept = aged(tmp_path / "kept", OLD)
    (tmp_path / draft_name(1)).mkdir()
    (tmp_path / draft_name(2)).symlink_to(kept)
    os.mkfifo(tmp_path / draft_name(3))
    for count in (1, 3):
        os.utime(tmp_path / draft_name(count), (OLD, OLD))
    swept(tmp_path)
    assert kept.read_bytes() == b"half"
    assert (tmp_path / draft_name(1)).is_dir()
    assert (tmp_path / draft_name(2)).is_symlink()


def test_two_sweeps_at_once_do_no_harm(tmp_path: Path) -> None:
    for count in range(50):
        aged(tmp_path / draft_name(count), OLD)
    removed = at_once([lambda: swept(tmp_path)] * 4)
    assert show(tmp_path) == []
    assert sum(removed) <= 50
