"""The directory of a worker process: where it is made, and what is swept."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from carrel.errors import SandboxExecutionError
from carrel.runtimes.wasm.worker_process import WorkerDirectory

CLOSED = "/sys"
"""A directory in which nobody can make one, not even root."""
LONG_AGO = 1_000_000_000


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place for temporary files, of this test alone."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def test_it_is_made_beside_the_guest(tmp_path: Path, temporary: Path) -> None:
    directory = WorkerDirectory(str(tmp_path))
    assert Path(directory.path).parent == tmp_path
    directory.remove()
    assert os.listdir(tmp_path) == [temporary.name]


def test_it_is_made_among_the_temporary_files_if_the_guest_is_on_a_disk_that_is_read_only(
    temporary: Path,
) -> None:
    directory = WorkerDirectory(CLOSED)
    made = Path(directory.path)
    assert made.parent == temporary
    assert made.stat().st_mode & 0o777 == 0o700
    directory.remove()
    assert not os.listdir(temporary)


def test_what_killed_ones_left_there_is_swept_and_what_others_keep_there_is_not(temporary: Path) -> None:
    used = WorkerDirectory(CLOSED)
    for name in ("carrel-worker-1-left", "worker-of-somebody-else"):
        (temporary / name).mkdir()
        os.utime(temporary / name, (LONG_AGO, LONG_AGO))
    os.utime(used.path, (LONG_AGO, LONG_AGO))
    directory = WorkerDirectory(CLOSED)
    assert set(os.listdir(temporary)) == {
        "worker-of-somebody-else",
        os.path.basename(used.path),
        os.path.basename(directory.path),
    }
    directory.remove()
    used.remove()


def test_that_there_is_no_place_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", CLOSED)
    with pytest.raises(SandboxExecutionError, match="no directory for a worker process could be created"):
        WorkerDirectory(CLOSED)
