"""What a directory can do is asked without leaving anything there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.fs.host import platform
from carrel.fs.host.platform import file_system, has_rename_flags, has_unnamed_files

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:20 / /proc rw - proc proc rw
30 22 0:40 / /mnt/my\\040disk rw shared:9 - nfs4 server:/export rw
31 22 0:41 / /mnt rw - tmpfs tmpfs rw
32 31 0:42 / /mnt rw - xfs /dev/sdb rw
"""


def test_nothing_is_left_behind_or_changed(tmp_path: Path) -> None:
    before = tmp_path.stat().st_mtime_ns
    assert has_rename_flags(tmp_path) is True
    assert has_unnamed_files(tmp_path) in (True, False)
    assert os.listdir(tmp_path) == []
    assert tmp_path.stat().st_mtime_ns == before


def test_what_is_not_there_cannot_be_tried(tmp_path: Path) -> None:
    assert has_rename_flags(tmp_path / "missing") is None
    assert has_unnamed_files(tmp_path / "missing") is False


def test_a_c_library_without_the_call_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrel.fs.syscalls._renameat2", None)
    assert has_rename_flags(tmp_path) is False


def test_the_file_system_of_proc_is_known() -> None:
    assert file_system(Path("/proc/self")) == "proc"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "ext4"),
        ("/srv/a", "ext4"),
        ("/mnt", "xfs"),
        ("/mntx", "ext4"),
        ("/mnt/a", "xfs"),
        ("/mnt/my disk/sessions", "nfs4"),
    ],
)
def test_the_nearest_mount_tells_the_file_system(
    path: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(platform, "_MOUNTS", str(tmp_path / "mounts"))
    assert file_system(Path(path)) == expected


def test_without_proc_nothing_tells_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "_MOUNTS", str(tmp_path / "missing"))
    assert file_system(tmp_path) is None
