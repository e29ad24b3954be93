"""What a check of a journal notices."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel.audit.chain import Head, JournalCheck
from carrel.audit.event import digest_of
from carrel.audit.journal_files import KEPT_FILES
from tests.audit.test_journal import event, on_disk, refusal, small

Lines = list[bytes]


def check(directory: Path) -> JournalCheck:
    journal = on_disk(directory)
    try:
        return journal.verify()
    finally:
        journal.close()


def lines_of(path: Path) -> Lines:
    return path.read_bytes().split(b"\n")[1:]


def keep(path: Path, lines: Lines) -> None:
    path.write_bytes(b"".join(b"\n" + line for line in lines))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A journal of six changes, numbered 1, 3, 5 and so on, and as many refusals between them."""
    journal = on_disk(tmp_path)
    for number in range(6):
        journal.record(event(f"f{number}"))
        journal.record(refusal(f"r{number}"))
    journal.close()
    return tmp_path


def test_a_journal_that_nobody_touched_is_whole(directory: Path) -> None:
    found = check(directory)
    assert (found.is_whole, found.records, found.unchained, found.broken) == (True, 12, 0, None)
    assert found.changes == Head(sequence=11, digest=digest_of(lines_of(directory / "journal.0")[-1]))
    assert found.refusals == Head(sequence=12, digest=digest_of(lines_of(directory / "refusals.0")[-1]))


def test_a_journal_without_records_is_whole(tmp_path: Path) -> None:
    assert check(tmp_path) == JournalCheck(records=0, unchained=0, changes=Head(), refusals=Head())
    assert os.listdir(tmp_path) == []


TAMPERING: dict[str, tuple[Callable[[Lines], Lines], int, str]] = {
    "edited": (lambda all: [*all[:2], all[2].replace(b"f2", b"xx"), *all[3:]], 5, "it was edited"),
    "edited at the end": (lambda all: [*all[:-1], all[-1].replace(b"f5", b"xx")], 11, "it was edited"),
    "edited until it is none": (lambda all: [*all[:2], b"[", *all[3:]], 5, "removed, or is not in"),
    "removed": (lambda all: [*all[:2], *all[3:]], 5, "removed, or is not in its place"),
    "removed at the start": (lambda all: all[1:], 1, "removed, or is not in its place"),
    "removed at the end": (lambda all: all[:-1], 11, "removed from the end"),
    "more removed at the end": (lambda all: all[:2], 11, "removed from the end"),
    "cut at the end": (lambda all: [*all[:-1], all[-1][:20]], 11, "removed from the end"),
    "all removed": (lambda all: [], 11, "removed from the end"),
    "swapped": (lambda all: [all[0], all[2], all[1], *all[3:]], 3, "removed, or is not in its place"),
    "repeated": (lambda all: [*all[:3], all[1], *all[3:]], 3, "not in its place"),
    "renumbered": (lambda all: [all[0], all[1].replace(b"[2,3,", b"[2,4,"), *all[2:]], 5, "not in its place"),
    "older form": (
        lambda all: [*all[:2], b'[1,1,"s","a","write","f",null,null,null,null]'],
        2**0,
        "no chain",
    ),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_a_record_that_is_not_as_it_was_written_is_named(directory: Path, name: str) -> None:
    tamper, broken, problem = TAMPERING[name]
    path = directory / "journal.0"
    keep(path, tamper(lines_of(path)))
    found = check(directory)
    assert not found.is_whole
    assert found.problem is not None
    assert problem in found.problem
    if name != "older form":
        assert found.broken == broken


@pytest.mark.parametrize("name", ["journal.0", "refusals.0", "head"])
def test_a_file_that_is_gone_is_noticed(directory: Path, name: str) -> None:
    (directory / name).unlink()
    assert not check(directory).is_whole


def test_refusals_are_checked_as_changes_are(directory: Path) -> None:
    path = directory / "refusals.0"
    keep(path, lines_of(path)[:-1])
    assert (check(directory).broken, check(directory).problem) == (12, "it was removed from the end")


def test_the_first_broken_record_of_both_kinds_is_named(directory: Path) -> None:
    for name in ("journal.0", "refusals.0"):
        path = directory / name
        keep(path, lines_of(path)[1:])
    assert check(directory).broken == 1


def test_a_record_whose_head_was_not_written_any_more_is_no_tampering(directory: Path) -> None:
    before = (directory / "head").read_bytes()
    journal = on_disk(directory)
    journal.record(event("late"))
    (directory / "head").write_bytes(before)
    assert check(directory).is_whole
    journal.record(event("later"))
    assert check(directory).is_whole
    (directory / "head").write_bytes(before)
    assert check(directory).broken == 14
    journal.close()


def test_a_torn_record_is_no_tampering(directory: Path) -> None:
    with (directory / "journal.0").open("ab") as file:
        file.write(b'\n[2,13,11,"abc')
    assert check(directory).is_whole
    journal = on_disk(directory)
    journal.record(event("next"))
    journal.close()
    assert check(directory).is_whole


def test_files_that_made_room_are_no_tampering_but_one_that_went_too_early_is(tmp_path: Path) -> None:
    journal = small(tmp_path)
    for number in range(100):
        journal.record(event(f"{number:03}"))
        assert journal.verify().is_whole
    journal.close()
    numbers = sorted(int(path.suffix[1:]) for path in tmp_path.glob("journal.*"))
    assert len(numbers) == KEPT_FILES
    assert numbers[0] > 0
    first = check(tmp_path).records
    (tmp_path / f"journal.{numbers[0]}").unlink()
    found = check(tmp_path)
    assert found.problem == "it was removed, or is not in its place"
    assert found.records < first


def test_records_from_before_there_was_a_chain_are_told_apart(tmp_path: Path) -> None:
    old = b'[1,1,"s","host","write","old%d",null,null,1,null]'
    keep(tmp_path / "journal.0", [old % number for number in range(3)])
    assert check(tmp_path) == JournalCheck(
        records=0,
        unchained=3,
        changes=check(tmp_path).changes,
        refusals=Head(),
    )
    journal = on_disk(tmp_path)
    journal.record(event("new"))
    journal.record(event("newer"))
    journal.close()
    found = check(tmp_path)
    assert (found.is_whole, found.records, found.unchained) == (True, 2, 3)
    lines = lines_of(tmp_path / "journal.0")
    keep(tmp_path / "journal.0", [*lines[:3], *lines[4:]])
    assert not check(tmp_path).is_whole


def test_a_head_that_is_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "away").write_bytes(b"mine")
    (tmp_path / "head").symlink_to("away")
    journal = on_disk(tmp_path)
    with pytest.raises(OSError, match="symbolic link"):
        journal.record(event("f"))
    journal.close()
    assert (tmp_path / "away").read_bytes() == b"mine"
