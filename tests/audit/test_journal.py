"""The record of a workspace, in memory and in a file."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.audit.event import Event, is_cut
from carrel.audit.journal import FILE_BYTES, FileJournal, Journal, MemoryJournal
from carrel.audit.journal_files import KEPT_FILES
from carrel.errors import ClosedError, RotatedError
from tests.depth import rounds
from tests.faults.inject import failing, first


def event(path: str) -> Event:
    return Event(time_ns=1, session_id="s", actor="host", operation="write", path=path)


def on_disk(directory: Path, *, file_bytes: int = FILE_BYTES) -> FileJournal:
    return FileJournal(os.open(directory, os.O_RDONLY | os.O_DIRECTORY), file_bytes=file_bytes)


@pytest.fixture(params=["memory", "file"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """One of each kind."""
    made: Journal = MemoryJournal() if request.param == "memory" else on_disk(tmp_path)
    yield made
    made.close()


# Any journal


def test_an_empty_journal_has_no_events(journal: Journal) -> None:
    assert list(journal.events()) == []
    assert list(journal.events(10**9)) == []


def test_events_come_back_in_order_with_growing_numbers(journal: Journal) -> None:
    for number in range(10):
        journal.record(event(str(number)))
    found = list(journal.events())
    assert [one.path for one in found] == [str(number) for number in range(10)]
    sequences = [one.sequence for one in found]
    assert sequences == sorted(set(sequences))
    assert sequences[0] > 0


def test_reading_goes_on_after_any_event(journal: Journal) -> None:
    for number in range(5):
        journal.record(event(str(number)))
    found = list(journal.events())
    for number, one in enumerate(found):
        assert list(journal.events(one.sequence)) == found[number + 1 :]


def test_an_event_recorded_later_is_seen_from_where_one_left_off(journal: Journal) -> None:
    journal.record(event("first"))
    (first,) = journal.events()
    assert list(journal.events(first.sequence)) == []
    journal.record(event("new\nline"))
    assert [one.path for one in journal.events(first.sequence)] == ["new\nline"]


def test_a_number_before_the_first_event_means_all(journal: Journal) -> None:
    journal.record(event("first"))
    assert [one.path for one in journal.events(-5)] == ["first"]


def test_many_threads_lose_nothing(journal: Journal) -> None:
    start = threading.Barrier(4)

    def work(name: int) -> None:
        start.wait()
        for number in range(100):
            journal.record(event(f"{name}/{number}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [one.path for one in journal.events()]
    assert sorted(found) == sorted(f"{name}/{number}" for name in range(4) for number in range(100))
    for name in range(4):
        own = [path for path in found if path.startswith(f"{name}/")]
        assert own == [f"{name}/{number}" for number in range(100)]


def test_closing_twice_is_fine(journal: Journal) -> None:
    journal.record(event("f"))
    journal.close()
    journal.close()


# In memory


def test_only_the_latest_events_are_kept_in_memory() -> None:
    journal = MemoryJournal(keep=3)
    for number in range(5):
        journal.record(event(str(number)))
    assert [(one.path, one.sequence) for one in journal.events()] == [("2", 3), ("3", 4), ("4", 5)]
    assert [one.path for one in journal.events(4)] == ["4"]


def files_of(directory: Path) -> list[Path]:
    """All files but those of refusals and the one that tells the latest records."""
    return [path for path in directory.iterdir() if path.name not in ("head", "refusals.0")]


# In a file


def test_events_outlive_the_journal(tmp_path: Path) -> None:
    first = on_disk(tmp_path)
    first.record(event("a"))
    (seen,) = first.events()
    first.close()
    second = on_disk(tmp_path)
    second.record(event("b"))
    assert [one.path for one in second.events()] == ["a", "b"]
    assert [one.path for one in second.events(seen.sequence)] == ["b"]
    second.close()


def test_the_file_is_made_with_the_first_event_and_for_its_owner_alone(tmp_path: Path) -> None:
    journal = on_disk(tmp_path)
    assert list(journal.events()) == []
    assert files_of(tmp_path) == []
    journal.record(event("a"))
    assert (tmp_path / "journal.0").stat().st_mode & 0o777 == 0o600
    journal.close()


def test_a_journal_is_never_written_or_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"kept")
    (tmp_path / "journal.0").symlink_to("elsewhere")
    journal = on_disk(tmp_path)
    with pytest.raises(OSError, match=r"journal\.0"):
        journal.record(event("a"))
    with pytest.raises(OSError, match=r"journal\.0"):
        list(journal.events())
    assert (tmp_path / "elsewhere").read_bytes() == b"kept"
    journal.close()


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    journal = on_disk(tmp_path)
    journal.record(event("a"))
    journal.close()
    attempts: tuple[Callable[[], object], ...] = (
        lambda: journal.record(event("b")),
        lambda: list(journal.events()),
    )
    for attempt in attempts:
        with pytest.raises(ClosedError):
            attempt()


def test_every_way_to_tear_the_last_event_loses_that_one_alone(tmp_path: Path) -> None:
    journal = on_disk(tmp_path)
    journal.record(event("a"))
    whole = (tmp_path / "journal.0").read_bytes()
    journal.record(event("torn"))
    both = (tmp_path / "journal.0").read_bytes()
    journal.close()
    for length in range(len(whole), len(both) - 1):
        (tmp_path / "journal.0").write_bytes(both[:length])
        again = on_disk(tmp_path)
        assert [one.path for one in again.events()] == ["a"]
        again.record(event("c"))
        assert [one.path for one in again.events()] == ["a", "c"]
        again.close()


def test_a_record_that_is_written_in_parts_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, write = on_disk(tmp_path), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
        journal.record(event("a"))
    journal.record(event("b"))
    assert [one.path for one in journal.events()] == ["a", "b"]
    journal.close()


def test_a_record_of_which_only_a_part_fits_is_told_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, write = on_disk(tmp_path), os.write
    journal.record(event("a"))
    full = failing(os.write, errno.ENOSPC, when=lambda _, data: not data.startswith(b"\n"))
    with monkeypatch.context() as patch:
        patch.setattr(
            os, "write", lambda fd, data: full(fd, data) if data[:1] != b"\n" else write(fd, data[:7])
        )
        with pytest.raises(OSError, match="No space"):
            journal.record(event("lost"))
    journal.record(event("b"))
    assert [one.path for one in journal.events()] == ["a", "b"]
    journal.close()


def test_lines_that_are_not_ours_are_passed_over(tmp_path: Path) -> None:
    journal = on_disk(tmp_path)
    journal.record(event("a"))
    with (tmp_path / "journal.0").open("ab") as file:
        file.write(b'\nrubbish\n{"json": true}\n\n\xff\xfe\n')
    journal.record(event("b"))
    found = list(journal.events())
    assert [one.path for one in found] == ["a", "b"]
    assert [one.path for one in journal.events(found[0].sequence)] == ["b"]
    journal.close()


def test_a_number_in_the_middle_of_a_line_goes_on_with_the_next(tmp_path: Path) -> None:
    journal = on_disk(tmp_path)
    for name in ("a", "b", "c"):
        journal.record(event(name))
    first, second, _ = journal.events()
    for since in range(first.sequence + 2, second.sequence):
        assert [one.path for one in journal.events(since)] == ["c"]
    journal.close()


def test_two_processes_do_not_mix_their_events(tmp_path: Path) -> None:
    code = """
import os, sys
from carrel.audit.event import Event
from carrel.audit.journal import FileJournal
journal = FileJournal(os.open(sys.argv[1], os.O_RDONLY))
sys.stdin.readline()
for number in range(300):
    path = f"{sys.argv[2]}/{number}/" + "x" * (number % 50)
    journal.record(Event(time_ns=1, session_id="s", actor="host", operation="write", path=path))
"""
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], stdin=subprocess.PIPE)
        for name in ("one", "two")
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait() for child in children] == [0, 0]
    journal = on_disk(tmp_path)
    found = [one.path for one in journal.events()]
    journal.close()
    for name in ("one", "two"):
        own = [path.split("/")[1] for path in found if path.startswith(f"{name}/")]
        assert own == [str(number) for number in range(300)]
    assert len(found) == 600


# Changes and refusals


def refusal(path: str) -> Event:
    return Event(time_ns=1, session_id="s", actor="guest", operation="read", path=path, error="path.escape")


def test_changes_and_refusals_are_read_in_the_order_in_which_they_were_recorded(journal: Journal) -> None:
    made = [refusal(str(number)) if number % 3 else event(str(number)) for number in range(30)]
    for one in made:
        journal.record(one)
    found = list(journal.events())
    assert [(one.path, one.error) for one in found] == [(one.path, one.error) for one in made]
    for place, one in enumerate(found):
        assert list(journal.events(one.sequence)) == found[place + 1 :]
        assert list(journal.events(one.sequence, refusals=False)) == [
            each for each in found[place + 1 :] if not each.is_refusal
        ]
    assert journal.position() == found[-1].sequence


def test_no_number_of_refusals_takes_the_place_of_a_change(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    journal = FileJournal(directory, refusal_file_bytes=2000)
    journal.record(event("first"))
    (first,) = journal.events()
    for number in range(200):
        journal.record(refusal(f"{number}" + "\U0001f600" * 4000))
    journal.record(event("last"))
    changes = [one.path for one in journal.events(refusals=False)]
    assert changes == ["first", "last"]
    assert [one.path for one in journal.events() if not one.is_refusal] == changes
    assert [one.path for one in journal.events(first.sequence, refusals=False)] == ["last"]
    with pytest.raises(RotatedError):
        journal.events(first.sequence)
    sizes = [path.stat().st_size for path in files_of(tmp_path) if path.name.startswith("refusals.")]
    assert len(sizes) == KEPT_FILES
    assert max(sizes) < 3000
    journal.close()


def test_refusals_do_not_take_the_place_of_changes_in_memory() -> None:
    journal = MemoryJournal(keep=3)
    journal.record(event("first"))
    for number in range(10):
        journal.record(refusal(str(number)))
    assert [one.path for one in journal.events()] == ["first", "7", "8", "9"]
    assert [one.path for one in journal.events(1, refusals=False)] == []
    with pytest.raises(RotatedError):
        journal.events(1)


@pytest.mark.parametrize("letter", ["x", "\U0001f600", "\x01", "\udcff", '"'])
@pytest.mark.parametrize(("made", "most"), [(event, 1024), (refusal, 256)])
def test_a_long_path_is_cut_in_the_record(
    tmp_path: Path, letter: str, made: Callable[[str], Event], most: int
) -> None:
    journal = on_disk(tmp_path)
    journal.record(made(letter * 4000))
    journal.record(made(letter * 4001))
    journal.record(made("short"))
    one, other, short = [each.path for each in journal.events()]
    assert short == "short"
    assert one != other
    assert one.startswith(letter)
    assert "...[4000 characters, " in one
    assert is_cut(one)
    assert not is_cut(short)
    assert max(len(json.dumps(each)) for each in (one, other)) <= most + 2
    journal.close()


def test_a_journal_of_the_version_before_goes_on(tmp_path: Path) -> None:
    old = [f'[1,{number},"s","host","write","{number}",null,null,3,null]' for number in range(3)]
    (tmp_path / "journal.4").write_text("".join(f"\n{line}" for line in old))
    journal = on_disk(tmp_path)
    before = list(journal.events())
    assert [one.path for one in before] == ["0", "1", "2"]
    assert before[-1].sequence == 4 << 32 | (tmp_path / "journal.4").stat().st_size == journal.position()
    journal.record(refusal("3"))
    journal.record(event("4"))
    for place, one in enumerate(before):
        assert [each.path for each in journal.events(one.sequence)] == ["0", "1", "2", "3", "4"][place + 1 :]
    with pytest.raises(RotatedError):
        journal.events(3 << 32)
    journal.close()


def test_what_a_signal_handler_records_in_the_middle_of_a_record_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = on_disk(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Event, "render", first(Event.render, lambda: journal.record(refusal("handler"))))
        journal.record(event("a"))
    journal.record(event("b"))
    assert [one.path for one in journal.events()] == ["a", "handler", "b"]
    journal.close()


# Many files, one after the other

SMALL_BYTES = 1000
"""Of one file: some ten records."""
RECORD_BYTES = 1 + len(event("000").render(100, 99, "x" * 32))


def small(directory: Path) -> FileJournal:
    return on_disk(directory, file_bytes=SMALL_BYTES)


def fill(journal: Journal, numbers: range) -> None:
    for number in numbers:
        journal.record(event(f"{number:03}"))


def paths(journal: Journal, since: int = 0) -> list[int]:
    return [int(one.path) for one in journal.events(since)]


def test_a_file_that_goes_between_two_that_are_read_is_told(tmp_path: Path) -> None:
    journal = small(tmp_path)
    fill(journal, range(15))
    assert sorted(path.name for path in files_of(tmp_path)) == ["journal.0", "journal.1"]
    found = journal.events()
    assert next(found).path == "000"
    (tmp_path / "journal.1").unlink()
    with pytest.raises(RotatedError):
        list(found)
    journal.close()


def test_a_journal_keeps_the_newest_records_in_bounded_space(tmp_path: Path) -> None:
    journal = small(tmp_path)
    for number in range(300):
        fill(journal, range(number, number + 1))
        sizes = [path.stat().st_size for path in files_of(tmp_path)]
        assert len(sizes) <= KEPT_FILES
        assert max(sizes) < SMALL_BYTES + RECORD_BYTES
        found = paths(journal)
        assert found == list(range(found[0], number + 1))
        assert len(found) >= min(number + 1, SMALL_BYTES // RECORD_BYTES)
    assert {path.name for path in files_of(tmp_path)} != {"journal.0", "journal.1"}
    journal.close()


def test_numbers_grow_from_file_to_file(tmp_path: Path) -> None:
    journal = small(tmp_path)
    seen: list[int] = []
    for number in range(100):
        fill(journal, range(number, number + 1))
        newest = list(journal.events())[-1]
        assert newest.path == f"{number:03}"
        assert newest.sequence == journal.position() or len(files_of(tmp_path)) > 1
        seen.append(newest.sequence)
    assert seen == sorted(set(seen))
    journal.close()


def test_reading_goes_on_in_the_next_file(tmp_path: Path) -> None:
    journal = small(tmp_path)
    since = 0
    found: list[int] = []
    for number in range(0, 100, 4):
        fill(journal, range(number, number + 4))
        fresh = list(journal.events(since))
        since = fresh[-1].sequence
        found += [int(one.path) for one in fresh]
    assert found == list(range(100))
    assert paths(journal, since) == []
    journal.close()


def test_reading_goes_on_from_every_record_that_is_kept(tmp_path: Path) -> None:
    journal = small(tmp_path)
    fill(journal, range(100))
    kept = list(journal.events())
    assert len(files_of(tmp_path)) == KEPT_FILES
    for place, one in enumerate(kept):
        assert list(journal.events(one.sequence)) == kept[place + 1 :]
    journal.close()


def test_who_comes_too_late_is_told_so_and_begins_again(tmp_path: Path) -> None:
    journal = small(tmp_path)
    fill(journal, range(1))
    (first,) = journal.events()
    fill(journal, range(1, 100))
    with pytest.raises(RotatedError, match="begin again from 0"):
        journal.events(first.sequence)
    assert paths(journal)[-1] == 99
    journal.close()


def test_who_begins_to_read_too_late_is_told_so(tmp_path: Path) -> None:
    """The records are there when they are asked for, and gone when they are read."""
    journal = small(tmp_path)
    fill(journal, range(20))
    first = next(journal.events())
    late = journal.events(first.sequence)
    fill(journal, range(20, 50))
    with pytest.raises(RotatedError):
        list(late)
    journal.close()


def test_a_memory_journal_tells_who_comes_too_late() -> None:
    journal = MemoryJournal(keep=3)
    fill(journal, range(5))
    with pytest.raises(RotatedError):
        journal.events(1)
    assert paths(journal, 2) == [2, 3, 4]
    assert paths(journal) == [2, 3, 4]


def test_a_journal_goes_on_where_another_one_left_off(tmp_path: Path) -> None:
    for number in range(0, 100, 5):
        journal = small(tmp_path)
        fill(journal, range(number, number + 5))
        journal.close()
    journal = small(tmp_path)
    assert paths(journal)[-1] == 99
    assert len(files_of(tmp_path)) == KEPT_FILES
    journal.close()


@pytest.mark.parametrize("records", [15, 40, 100])
def test_the_position_is_never_before_what_others_have_recorded(tmp_path: Path, records: int) -> None:
    """Also for one that has not written since the others began another file, or several."""
    idle, busy = small(tmp_path), small(tmp_path)
    fill(idle, range(1))
    fill(busy, range(1, records))
    since = idle.position()
    assert paths(idle, since) == []
    fill(idle, range(records, records + 1))
    assert paths(busy, since) == [records]
    assert paths(busy)[-2:] == [records - 1, records]
    for journal in (idle, busy):
        journal.close()


def test_every_way_to_tear_the_last_record_of_the_newest_file_loses_that_one_alone(tmp_path: Path) -> None:
    journal = small(tmp_path)
    fill(journal, range(25))
    before = paths(journal)
    newest = max(files_of(tmp_path), key=lambda path: int(path.suffix[1:]))
    journal.close()
    whole = newest.read_bytes()
    start = whole.rindex(b"\n")
    for length in range(start, len(whole) - 1):
        newest.write_bytes(whole[:length])
        again = small(tmp_path)
        assert paths(again) == before[:-1]
        again.record(event("998"))
        assert paths(again) == [*before[:-1], 998]
        again.close()


def test_a_record_that_is_being_written_is_for_the_next_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes after it is not given before it."""
    journal = small(tmp_path)
    fill(journal, range(2))
    file = tmp_path / "journal.0"
    whole = file.read_bytes()
    seen = whole.rindex(b"\n") + 20
    file.write_bytes(whole[:seen])

    def write_on() -> None:
        with file.open("ab") as ending:
            ending.write(whole[seen:])
        fill(journal, range(2, 3))

    def is_half(line: bytes) -> bool:
        return not line.endswith(b"]")

    with monkeypatch.context() as patch:
        patch.setattr(json, "loads", first(json.loads, write_on, when=is_half))
        found = list(journal.events())
    assert [one.path for one in found] == ["000"]
    assert paths(journal, found[-1].sequence) == [1, 2]
    journal.close()


def test_other_files_are_neither_read_nor_removed(tmp_path: Path) -> None:
    others = [
        "ledger",
        "lease",
        "journal",
        "journal.",
        "journal.x",
        "journal.1.bak",
        "journal.-1",
        "my.journal.7",
    ]
    others += ["journal.12345678901", ".carrel-draft-1", "journal.log"]
    for name in others:
        (tmp_path / name).write_bytes(b"\n" + event("777").render())
    (tmp_path / "directory").mkdir()
    journal = small(tmp_path)
    assert paths(journal) == []
    fill(journal, range(100))
    assert 777 not in paths(journal)
    left = {path.name for path in files_of(tmp_path) if path.is_file()}
    assert set(others) <= left
    assert len(left) == len(others) + KEPT_FILES
    journal.close()


WRITER = """
import fcntl, os, sys
from carrel.audit.event import Event
from carrel.audit.journal import FileJournal
journal = FileJournal(os.open(sys.argv[1], os.O_RDONLY), file_bytes=int(sys.argv[3]))
lock = open(sys.argv[4], "w")
sys.stdin.readline()
for number in range(int(sys.argv[5])):
    fcntl.flock(lock, fcntl.LOCK_EX)
    event = Event(time_ns=1, session_id="s", actor=sys.argv[2], operation="write", path=str(number))
    journal.record(event)
    fcntl.flock(lock, fcntl.LOCK_UN)
"""


def writers(
    directory: Path, locks: list[Path], *, file_bytes: int, records: int
) -> list[subprocess.Popen[bytes]]:
    """Processes that record into one journal, each with its lock; they begin at once."""
    found = []
    for number, lock in enumerate(locks):
        words = [str(directory), str(number), str(file_bytes), str(lock), str(records)]
        found.append(subprocess.Popen([sys.executable, "-c", WRITER, *words], stdin=subprocess.PIPE))
    for child in found:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    return found


def test_two_processes_begin_new_files_and_lose_nothing(tmp_path: Path) -> None:
    """With a lock in common, as the processes of a session have one."""
    directory = tmp_path / "journal"
    directory.mkdir()
    lock = tmp_path / "lock"
    children = writers(directory, [lock, lock], file_bytes=4000, records=1000)
    assert [child.wait() for child in children] == [0, 0]
    journal = on_disk(directory)
    found = list(journal.events())
    journal.close()
    assert len(files_of(directory)) == KEPT_FILES
    assert len(found) > 50
    for name in ("0", "1"):
        own = [int(one.path) for one in found if one.actor == name]
        assert own == list(range(own[0], own[0] + len(own))) if own else True
    assert max(int(one.path) for one in found[-2:]) == 999
    assert [one.sequence for one in found] == sorted({one.sequence for one in found})


def test_processes_without_a_lock_in_common_do_not_fail(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    locks = [tmp_path / str(number) for number in range(3)]
    children = writers(directory, locks, file_bytes=300, records=1000)
    assert [child.wait() for child in children] == [0, 0, 0]
    assert len(files_of(directory)) <= KEPT_FILES + 1
    journal = on_disk(directory)
    assert all(one.operation == "write" for one in journal.events())
    journal.close()


def test_readers_see_everything_once_while_it_is_written(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    lock = tmp_path / "lock"
    children = writers(directory, [lock, lock], file_bytes=FILE_BYTES, records=500)
    journal = on_disk(directory)
    found: list[Event] = []
    while len(found) < 1000:
        is_over = all(child.poll() is not None for child in children)
        fresh = list(journal.events(found[-1].sequence if found else 0))
        found += fresh
        if is_over and not fresh:
            break
    journal.close()
    assert [child.wait() for child in children] == [0, 0]
    for name in ("0", "1"):
        assert [int(one.path) for one in found if one.actor == name] == list(range(500))


@pytest.mark.deeper
def test_readers_miss_nothing_without_being_told_while_files_come_and_go(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    directory.mkdir()
    (child,) = writers(directory, [tmp_path / "lock"], file_bytes=2000, records=rounds(20_000))
    journal = on_disk(directory)
    last = since = told = 0
    is_over = False
    while not is_over:
        is_over = child.poll() is not None
        try:
            for one in journal.events(since):
                assert int(one.path) == last + 1 or since == 0
                last, since = int(one.path), one.sequence
        except RotatedError:
            told += 1
            since = 0
    journal.close()
    assert child.wait() == 0
    assert last == rounds(20_000) - 1
    print(f"told {told} times")
