"""Listing, walking and removing trees by descriptors."""

from __future__ import annotations

import itertools
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from carrel.errors import LimitError
from carrel.fs.api import Confinement, OnUnreadable
from carrel.fs.cancellable import WalkCancelledError, cancelled_when
from carrel.fs.handle import Handle
from carrel.fs.local.removal import LEVELS, Removal
from carrel.fs.local.resolve import Open, Resolver
from carrel.fs.local.walk import TreeWalk, measure, scan
from carrel.fs.rules import info_of
from carrel.testing import tree
from carrel.values import FileInfo, FileKind
from tests.contract.places import at_once, show


def opened(directory: Path) -> Handle:
    return Handle(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def scanned(directory: Path, prefix: str, limit: int | None) -> list[FileInfo]:
    handle = opened(directory)
    return scan(handle.fd, prefix, limit)


@pytest.fixture(params=[Confinement.KERNEL, Confinement.WALK])
def open_child(request: pytest.FixtureRequest) -> Open:
    """Each way to open a child."""
    return Resolver(request.param).open


# What is known about an entry


def test_every_kind_of_entry_is_told(tmp_path: Path) -> None:
    tree(tmp_path, "file = text", "directory/", "link => nothing")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        handle = opened(tmp_path)
        listening.bind(f"/proc/self/fd/{handle.fd}/socket")
        found = {info.path: info.kind for info in scanned(tmp_path, "", None)}
    assert found == {
        "file": FileKind.FILE,
        "directory": FileKind.DIRECTORY,
        "link": FileKind.LINK,
        "fifo": FileKind.OTHER,
        "socket": FileKind.OTHER,
    }


def test_only_permission_bits_are_told(tmp_path: Path) -> None:
    path = tree(tmp_path, "f") / "f"
    path.chmod(0o4751)
    assert stat.S_IMODE(path.stat().st_mode) == 0o4751
    assert info_of("f", path.stat()).mode == 0o751


def test_a_directory_has_no_size(tmp_path: Path) -> None:
    found = tree(tmp_path, "f").stat()
    assert found.st_size > 0
    assert info_of("d", found).size_bytes == 0


# Listing


def test_a_scan_is_sorted_by_name_and_prefixed(tmp_path: Path) -> None:
    tree(tmp_path, "b", "a/", "Z", "é", "a.txt", ".h", "10", "9")
    paths = [info.path for info in scanned(tmp_path, "top/", None)]
    assert paths == [f"top/{name}" for name in (".h", "10", "9", "Z", "a", "a.txt", "b", "é")]


def test_a_scan_shows_names_that_are_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\xfe")).touch()
    assert [info.path for info in scanned(tmp_path, "", None)] == ["\udcff\udcfe"]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_scan_past_its_limit_says_which_directory(tmp_path: Path, limit: int) -> None:
    tree(tmp_path, "a", "b", "c")
    with pytest.raises(LimitError) as caught:
        scanned(tmp_path, "top/sub/", limit)
    assert (caught.value.code, caught.value.limit, caught.value.path) == (
        "limit.list_entries",
        limit,
        "top/sub",
    )
    assert len(scanned(tmp_path, "", 3)) == 3


def test_an_entry_that_vanishes_during_a_scan_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "a", "b", "c")
    handle = opened(tmp_path)
    real = os.scandir

    class Vanishing:
        """A listing during which somebody else removes `b` as soon as its name was read."""

        def __init__(self, fd: int) -> None:
            self._entries = real(fd)

        def __enter__(self) -> Iterator[os.DirEntry[str]]:
            return self._each()

        def __exit__(self, *exception: object) -> None:
            self._entries.close()

        def _each(self) -> Iterator[os.DirEntry[str]]:
            for entry in self._entries:
                if entry.name == "b":
                    os.unlink("b", dir_fd=handle.fd)
                yield entry

    monkeypatch.setattr(os, "scandir", Vanishing)
    assert [info.path for info in scan(handle.fd, "", 2)] == ["a", "c"]


# Walking


def visit(open_child: Open, top: Path, prefix: str = "", **limits: int) -> Iterator[str]:
    walk = TreeWalk(
        open_child,
        depth=limits.get("depth"),
        entries=limits.get("entries"),
        listing=limits.get("listing"),
        unreadable=OnUnreadable.SKIP,
    )
    return (info.path for info in walk.run(opened(top), prefix))


def test_a_visit_gives_parents_first_and_names_in_order(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "b/2", "b/1/x", "a", "c => b", "d/")
    assert list(visit(open_child, tmp_path)) == ["a", "b", "b/1", "b/1/x", "b/2", "c", "d"]
    assert list(visit(open_child, tmp_path, "p/", depth=3))[-1] == "p/d"


def collected(walk: Iterator[str]) -> tuple[list[str], LimitError]:
    seen: list[str] = []
    with pytest.raises(LimitError) as caught:
        seen.extend(_recorded(walk, seen))
    return seen, caught.value


def _recorded(walk: Iterator[str], seen: list[str]) -> list[str]:
    for path in walk:
        seen.append(path)
    return []


def test_a_visit_ends_at_its_limit_of_entries(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "a/b", "c")
    assert len(list(visit(open_child, tmp_path, entries=3))) == 3
    seen, error = collected(visit(open_child, tmp_path, "p/", entries=2))
    assert seen == ["p/a", "p/a/b"]
    assert (error.code, error.limit, error.path) == ("limit.walk_entries", 2, "p")


def test_a_visit_tells_at_its_end_what_was_too_deep(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "a/b/c", "x/y/z", "w")
    seen, error = collected(visit(open_child, tmp_path, depth=2))
    assert seen == ["a", "a/b", "w", "x", "x/y"]
    assert (error.code, error.limit, error.path) == ("limit.depth", 2, "a/b")


def test_a_visit_holds_each_directory_to_the_limit_of_a_listing(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "a/1", "a/2", "b")
    seen, error = collected(visit(open_child, tmp_path, listing=1))
    assert (seen, error.path) == ([], ".")
    seen, error = collected(visit(open_child, tree(tmp_path / "c", "d/1", "d/2"), listing=1))
    assert (seen, error.code, error.path) == (["d"], "limit.list_entries", "d")


def _remove(path: Path) -> None:
    (path / "f").unlink()
    path.rmdir()


def _swap_for_link(path: Path) -> None:
    _remove(path)
    path.symlink_to("../outside")


def _swap_for_file(path: Path) -> None:
    _remove(path)
    path.write_bytes(b"")


@pytest.mark.parametrize("change", [_remove, _swap_for_link, _swap_for_file])
def test_a_directory_that_was_changed_before_it_is_entered_is_passed_over(
    open_child: Open, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    top = tree(tmp_path / "top", "a", "b/f", "c")
    tree(tmp_path / "outside", "secret")
    walk = visit(open_child, top)
    assert [next(walk), next(walk)] == ["a", "b"]
    change(top / "b")
    assert list(walk) == ["c"]


@pytest.mark.parametrize("unreadable", OnUnreadable)
def test_a_directory_that_is_shut_to_us_is_passed_over_or_told(
    open_child: Open, unprivileged: Path, unreadable: OnUnreadable
) -> None:
    tree(unprivileged, "a/f", "b")
    (unprivileged / "a").chmod(0)
    walk = TreeWalk(open_child, depth=None, entries=None, listing=None, unreadable=unreadable)
    found = walk.run(opened(unprivileged), "")
    assert next(found).path == "a"
    if unreadable is OnUnreadable.SKIP:
        assert [info.path for info in found] == ["b"]
    else:
        with pytest.raises(PermissionError):
            next(found)
    (unprivileged / "a").chmod(0o700)


def test_a_visit_holds_one_descriptor_a_level(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "a/b/c/d/f", *(f"{name}/f" for name in "efghij"))
    before = len(os.listdir("/proc/self/fd"))
    most = max(len(os.listdir("/proc/self/fd")) for _ in visit(open_child, tmp_path))
    assert most <= before + 1 + 5
    assert len(os.listdir("/proc/self/fd")) == before


# Removing


def removed(open_child: Open, top: Path, name: bytes = b"t") -> None:
    handle = opened(top)
    Removal(open_child).remove(handle.fd, name)


def test_a_tree_is_removed_and_what_its_links_lead_to_is_not(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "t/a/b/f", "t/e/", "t/out => ../keep", "t/a/up => ../..", "t/l => l", "keep/f", "also")
    os.mkfifo(tmp_path / "t/fifo")
    removed(open_child, tmp_path)
    assert show(tmp_path) == ["also = in", "keep/", "keep/f = in"]


def test_a_tree_that_is_gone_is_done(open_child: Open, tmp_path: Path) -> None:
    removed(open_child, tmp_path)
    assert show(tmp_path) == []


def _deepen(top: Path, depth: int) -> None:
    here = opened(top)
    for count in range(depth):
        os.mkdir("d", dir_fd=here.fd)
        if count % 10 == 0:
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here.fd))
        here = Handle(os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here.fd))


@pytest.mark.parametrize("depth", [LEVELS - 2, LEVELS - 1, LEVELS, LEVELS + 1, 20 * LEVELS])
def test_a_tree_of_any_depth_is_removed(open_child: Open, tmp_path: Path, depth: int) -> None:
    _deepen(tree(tmp_path, "t/") / "t", depth)
    removed(open_child, tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_deep_tree_is_removed_with_few_descriptors(
    open_child: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _deepen(tree(tmp_path, "t/") / "t", 300)
    before = len(os.listdir("/proc/self/fd"))
    most = 0
    real = os.rmdir

    def counting(path: bytes, *, dir_fd: int | None = None) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))
        real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", counting)
    removed(open_child, tmp_path)
    assert most <= before + LEVELS + 5


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o400, 0o500])
def test_a_tree_that_was_shut_is_removed_by_its_owner(
    open_child: Open, unprivileged: Path, mode: int
) -> None:
    tree(unprivileged, "t/a/b/f", "t/c/")
    for path in ("t/a/b", "t/a", "t/c", "t"):
        (unprivileged / path).chmod(mode)
    removed(open_child, unprivileged)
    assert show(unprivileged) == []


def test_a_deep_tree_that_was_shut_is_removed_by_its_owner(open_child: Open, unprivileged: Path) -> None:
    depth = LEVELS + 5
    _deepen(tree(unprivileged, "t/") / "t", depth)
    for count in range(depth, -1, -1):
        (unprivileged / "/".join(["t"] + ["d"] * count)).chmod(0)
    removed(open_child, unprivileged)
    assert os.listdir(unprivileged) == []


def test_many_can_remove_one_tree_at_once(open_child: Open, tmp_path: Path) -> None:
    tree(tmp_path, "t/", *(f"t/{one}/{other}/f" for one in range(10) for other in range(10)))
    _deepen(tree(tmp_path, "t/deep/") / "t/deep", LEVELS * 2)
    at_once([partial(removed, open_child, tmp_path)] * 4)
    assert os.listdir(tmp_path) == []


def test_a_tree_that_is_filled_meanwhile_is_removed_all_the_same(
    open_child: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tree(tmp_path, "t/a/f") / "t"
    refills = iter(["late", "later", "a"])
    real = os.rmdir

    def refilling(path: bytes, *, dir_fd: int | None = None) -> None:
        if name := next(refills, None):
            (top / name).mkdir(exist_ok=True)
            (top / name / "f").touch()
        real(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", refilling)
    removed(open_child, tmp_path)
    assert os.listdir(tmp_path) == []


# Cancelled walks


def cancelled_after(directories: int) -> AbstractContextManager[None]:
    """Cancel at the directory after so many."""
    looks = iter(range(directories))
    return cancelled_when(lambda: next(looks, None) is None)


def test_a_count_that_is_cancelled_looks_no_further(
    tmp_path: Path, open_child: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, *(f"{number}/" for number in range(20)))
    reads, scandir = itertools.count(), os.scandir
    monkeypatch.setattr(os, "scandir", lambda fd: (next(reads), scandir(fd))[1])
    with cancelled_after(3), pytest.raises(WalkCancelledError):
        measure(open_child, opened(tmp_path))
    assert next(reads) < 10
    assert measure(open_child, opened(tmp_path)).entries == 20


def test_one_large_directory_can_be_cancelled_as_well(tmp_path: Path, open_child: Open) -> None:
    tree(tmp_path, *(f"{number}" for number in range(600)))
    with cancelled_after(1), pytest.raises(WalkCancelledError):
        measure(open_child, opened(tmp_path))


def test_directories_that_were_opened_for_a_walk_are_shut_when_it_is_cancelled(
    unprivileged: Path, open_child: Open
) -> None:
    here = unprivileged
    for name in "abcd":
        here = here / name
        here.mkdir()
    for shut in (here.parent, here.parent.parent):
        shut.chmod(0)
    with cancelled_after(4), pytest.raises(WalkCancelledError):
        measure(open_child, opened(unprivileged))
    assert stat.S_IMODE((unprivileged / "a" / "b").stat().st_mode) == 0
    (unprivileged / "a" / "b").chmod(0o700)
    assert stat.S_IMODE((unprivileged / "a" / "b" / "c").stat().st_mode) == 0
    (unprivileged / "a" / "b" / "c").chmod(0o700)
