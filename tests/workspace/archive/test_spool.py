"""Where an archive is held while it comes in, and how much of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.errors import ArchiveError, DiskLowError, LimitError, QuotaError
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.quota import SPARE_BYTES
from carrel.values import MIB
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import ExtractLimits
from tests.workspace.planting import snapshot
from tests.workspace.traces import drafts_in

PIECE = bytes(MIB)
SPARE = SPARE_BYTES // MIB


class Sent:
    """An upload of many pieces, which notes how many were taken."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(self.count):
            self.taken += 1
            yield PIECE


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sessions directory on a host that has no other place for files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    return tmp_path / "sessions"


def test_an_archive_that_cannot_fit_is_not_taken_in(root: Path) -> None:
    sent = Sent(499)
    with WorkspaceManager(root, limits=Limits(disk_bytes=1000)).create("s1") as workspace:
        with pytest.raises(QuotaError) as caught:
            workspace.extract(sent)
        assert caught.value.code == "quota.bytes"
        assert sent.taken == SPARE + 1
        with pytest.raises(QuotaError):
            workspace.extract(PIECE * (SPARE + 1))
    assert snapshot(root / "s1") == {}
    assert drafts_in(root) == []


@pytest.mark.parametrize(
    ("limits", "size", "code"),
    [
        (ExtractLimits(), SPARE_BYTES + 1001, "quota.bytes"),
        (ExtractLimits(archive_bytes=500), 501, "limit.archive_bytes"),
    ],
)
def test_what_is_announced_as_too_large_is_not_read(
    root: Path, limits: ExtractLimits, size: int, code: str
) -> None:
    sent = Sent(1)
    with WorkspaceManager(root, limits=Limits(disk_bytes=1000)).create("s1") as workspace:
        with pytest.raises((QuotaError, LimitError)) as caught:
            workspace.extract(Announced(sent, size), limits=limits)
        assert (caught.value.code, sent.taken) == (code, 0)
        with pytest.raises(ArchiveError):
            workspace.extract(Announced([b"x"], size - 1), limits=limits, format="tar")


def test_all_uploads_of_a_session_share_its_room(root: Path) -> None:
    manager = WorkspaceManager(root, limits=Limits(disk_bytes=1000))
    with manager.create("s1") as workspace, manager.get_workspace("s1") as other:

        def slow() -> Iterator[bytes]:
            yield PIECE * (SPARE - 1)
            assert len(drafts_in(root)) == 1
            with pytest.raises(QuotaError):
                other.extract(Sent(SPARE))
            yield PIECE

        with pytest.raises(ArchiveError):
            workspace.extract(slow(), format="tar")
    assert drafts_in(root) == []


def test_nothing_is_taken_in_while_the_disk_is_low(root: Path) -> None:
    sent = Sent(1)
    manager = WorkspaceManager(root, min_free_bytes=2**60)
    with manager.create("s1") as workspace, pytest.raises(DiskLowError):
        workspace.extract(sent)
    assert sent.taken == 0


def test_what_fills_the_quota_exactly_may_be_packed_and_replaced(root: Path) -> None:
    limits = Limits(disk_bytes=20 * MIB)
    with WorkspaceManager(root, limits=limits).create("s1") as workspace:
        workspace.write("f", bytes(20 * MIB))
        packed = b"".join(workspace.archive("."))
        workspace.extract(packed, overwrite=True)
        workspace.remove("f")
        workspace.extract(packed)
        assert workspace.usage().disk_bytes == 20 * MIB


def test_a_bare_directory_has_its_own_quota(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    sent = Sent(499)
    limits = Limits(disk_bytes=1000)
    with Workspace.open(tmp_path / "ws", limits=limits) as workspace, pytest.raises(QuotaError):
        workspace.extract(sent)
    assert sent.taken == SPARE + 1
