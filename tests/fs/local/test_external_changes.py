"""The state of a tree before and after programs change it without the gate, and the owner of its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.fs.local.root import Root
from carrel.values import FileKind

USER = 65532


@pytest.fixture
def root(directory: Path) -> Root:
    """All files beneath `directory`."""
    return Root.open(directory)


def test_a_state_has_every_entry(root: Root, directory: Path) -> None:
    (directory / "d").mkdir()
    (directory / "d" / "f").write_bytes(b"123")
    (directory / "l").symlink_to("/etc")
    os.mkfifo(directory / "p")
    found = root.unmediated_access().read_state(100)
    assert {path: (seen.kind, seen.size_bytes, seen.target) for path, seen in found.entries.items()} == {
        "d": (FileKind.DIRECTORY, 0, None),
        "d/f": (FileKind.FILE, 3, None),
        "l": (FileKind.LINK, 4, "/etc"),
        "p": (FileKind.OTHER, 0, None),
    }
    assert found.is_whole


def test_a_state_of_too_many_entries_is_not_whole(root: Root, directory: Path) -> None:
    for name in "abc":
        (directory / name).touch()
    assert root.unmediated_access().read_state(3).is_whole
    found = root.unmediated_access().read_state(2)
    assert (len(found.entries), found.is_whole) == (2, False)


def test_a_state_of_too_long_paths_is_not_whole(root: Root, directory: Path) -> None:
    here = os.open(directory, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("x" * 200, dir_fd=here)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    found = root.unmediated_access().read_state(1000)
    assert (len(found.entries), found.is_whole) == (20, False)


def test_a_marker_file_exists_only_in_its_block(root: Root, directory: Path) -> None:
    with root.unmediated_access().marker_file() as name:
        assert os.listdir(directory) == [name]
    assert os.listdir(directory) == []


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
class TestHandOver:
    """Root gives its files to another user."""

    def test_all_of_ours_is_given_and_the_top_is_opened(self, root: Root, directory: Path) -> None:
        (directory / "d").mkdir(0o700)
        (directory / "d" / "f").write_text("x")
        directory.chmod(0o700)
        assert root.unmediated_access().chown(USER, USER) == []
        for path in ("d", "d/f"):
            assert (directory / path).stat().st_uid == USER
        top = directory.stat()
        assert (top.st_uid, top.st_gid, top.st_mode & 0o777) == (0, USER, 0o770)

    def test_what_belongs_to_others_is_left(self, root: Root, directory: Path) -> None:
        (directory / "f").write_text("x")
        os.chown(directory / "f", 7, 7)
        root.unmediated_access().chown(USER, USER)
        assert (directory / "f").stat().st_uid == 7

    def test_links_and_what_they_lead_to_are_left(self, root: Root, directory: Path, outside: Path) -> None:
        (directory / "link").symlink_to(outside / "secret")
        (directory / "up").symlink_to(outside)
        root.unmediated_access().chown(USER, USER)
        assert (outside / "secret").stat().st_uid == 0
        assert outside.stat().st_uid == 0
        assert (directory / "link").lstat().st_uid == 0

    def test_a_file_with_another_name_is_left_and_told(
        self, root: Root, directory: Path, outside: Path
    ) -> None:
        os.link(outside / "secret", directory / "linked")
        assert root.unmediated_access().chown(USER, USER) == ["linked"]
        assert (outside / "secret").stat().st_uid == 0

    def test_nothing_is_given_to_ourselves(self, root: Root, directory: Path) -> None:
        before = directory.stat().st_ctime_ns
        assert root.unmediated_access().chown(0, 0) == []
        assert directory.stat().st_ctime_ns == before
