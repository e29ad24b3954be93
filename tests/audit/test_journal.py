"""The record of a workspace, in memory and in a file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.audit.event import Event
from carrel.audit.journal import FileJournal, Journal, MemoryJournal
from carrel.errors import ClosedError


def event(path: str) -> Event:
    return Event(time_ns=1, session_id="s", actor="host", operation="write", path=path)


def on_disk(directory: Path, name: str = "log") -> FileJournal:
    return FileJournal(os.open(directory, os.O_RDONLY | os.O_DIRECTORY), name)


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
    assert os.listdir(tmp_path) == []
    journal.record(event("a"))
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    journal.close()


def test_a_journal_is_never_written_or_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"kept")
    (tmp_path / "log").symlink_to("elsewhere")
    journal = on_disk(tmp_path)
    with pytest.raises(OSError, match="log"):
        journal.record(event("a"))
    with pytest.raises(OSError, match="log"):
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
    whole = (tmp_path / "log").read_bytes()
    journal.record(event("torn"))
    both = (tmp_path / "log").read_bytes()
    journal.close()
    for length in range(len(whole), len(both) - 1):
        (tmp_path / "log").write_bytes(both[:length])
        again = on_disk(tmp_path)
        assert [one.path for one in again.events()] == ["a"]
        again.record(event("c"))
        assert [one.path for one in again.events()] == ["a", "c"]
        again.close()


def test_lines_that_are_not_ours_are_passed_over(tmp_path: Path) -> None:
    journal = on_disk(tmp_path)
    journal.record(event("a"))
    with (tmp_path / "log").open("ab") as file:
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
journal = FileJournal(os.open(sys.argv[1], os.O_RDONLY), "log")
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
