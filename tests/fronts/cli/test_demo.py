"""`carrel demo` tells the whole story and leaves nothing behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fronts.cli.conftest import Carrel


@pytest.fixture(autouse=True)
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    made = tmp_path / "temporary"
    made.mkdir()
    return made


def test_the_demo_shows_every_part(carrel: Carrel, temporary: Path) -> None:
    answer = carrel("demo", env={"TMPDIR": str(temporary)})
    assert (answer.status, answer.err) == (0, "")
    text = answer.out.decode()
    for part in (
        "read_lines",
        "+checked: yes",
        "report.txt:4:1: total: 812",
        "path.escape: path '../../secret.txt' escapes session workspace",
        "access.outside: sandbox: read access denied for '/etc/passwd': outside workspace",
        "path.escape: path 'innocent.txt' escapes session workspace",
        "access.denied: sandbox: write access denied",
        "denied: read-only path (rule 1, ro)",
        "refused: path.escape",
        "     3\tunit: cm",
        "File not found: notes.txt. Use file_list to see what is there.",
        "There is no tool 'file_write'.",
        "write access denied for 'report.txt': read-only",
        "mean   74.6   51.0",
        "exit code 0; files written: rain.png",
        "FileNotFoundError No such file or directory",
        "carrel: the write of '/app/flood.bin' was lost: EDQUOT",
        "quota.bytes: Workspace quota exceeded: ",
        "refused: quota.bytes",
        "files, record and journal are gone; sessions that are left: 0",
    ):
        assert part in text
    assert "kept inside by" in text


def test_the_demo_leaves_nothing_and_shows_no_host_path_and_no_colour(
    carrel: Carrel, temporary: Path
) -> None:
    answer = carrel("demo", env={"TMPDIR": str(temporary)})
    assert str(temporary) not in answer.out.decode()
    assert b"\x1b" not in answer.out
    assert os.listdir(temporary) == []
    assert os.listdir(carrel.here) == []
    assert not carrel.sessions.exists()


def test_the_demo_cleans_up_when_its_reader_goes_away(carrel: Carrel, temporary: Path) -> None:
    os.environ["TMPDIR"], before = str(temporary), os.environ.get("TMPDIR")
    try:
        child = carrel.start("demo")
    finally:
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.close()
    child.stdout.close()
    assert child.wait(timeout=60) == 141
    assert child.stderr.read() == b""
    child.stderr.close()
    assert os.listdir(temporary) == []
