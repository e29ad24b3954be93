"""What every registry of sessions promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.errors import (
    ClosedError,
    LimitError,
    SessionExistsError,
    SessionIdError,
    SessionMissingError,
)
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.storage.api import Registry
from carrel.storage.local.registry import SqliteRegistry
from carrel.storage.memory.registry import MemoryRegistry
from carrel.storage.session_record import SessionRecord
from carrel.values import Limits
from tests.requirements import requirement
from tests.storage.registries import CALLS, NOW, SECOND, record

MAKERS: dict[str, Callable[[Path], Registry]] = {
    "memory": lambda place: MemoryRegistry(),
    "sqlite by handle": lambda place: SqliteRegistry(open_trusted_dir(place)),
    "sqlite by path": SqliteRegistry,
}


@pytest.fixture(params=MAKERS)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    """Each registry in turn, empty."""
    place = tmp_path / ".carrel"
    place.mkdir(0o700)
    with closing(MAKERS[request.param](place)) as made:
        yield made


def ids(records: list[SessionRecord]) -> list[str]:
    return [found.session_id for found in records]


# Adding


@requirement("M-02")
def test_a_record_is_found_as_it_was_added(registry: Registry) -> None:
    added = record(
        "abc",
        used_ns=NOW + 5,
        ttl_seconds=1.5,
        role="developer",
        limits=Limits(depth=3, file_bytes=None),
        labels={"project": "größe 'x' \"y\""},
        owner="key-1",
        epoch=3,
    )
    registry.add(added)
    assert registry.get("abc") == added
    assert registry.count() == 1


def test_an_id_is_added_once(registry: Registry) -> None:
    registry.add(record("abc", role="first"))
    with pytest.raises(SessionExistsError, match="'abc' already exists"):
        registry.add(record("abc", role="second"))
    assert registry.get("abc") == record("abc", role="first")


def test_an_id_that_differs_only_in_case_is_refused_and_not_found(registry: Registry) -> None:
    registry.add(record("abc"))
    with pytest.raises(SessionExistsError, match="'ABC' already exists, spelled in another case"):
        registry.add(record("ABC"))
    assert registry.get("ABC") is None
    assert not registry.remove("ABC")
    registry.touch("ABC", NOW + 1)
    assert registry.list() == [record("abc")]


def test_no_more_than_the_maximum_are_added(registry: Registry) -> None:
    for number in range(3):
        registry.add(record(f"s{number}"), max_sessions=3)
    with pytest.raises(LimitError, match="maximum of 3") as caught:
        registry.add(record("s3"), max_sessions=3)
    assert (caught.value.code, caught.value.limit, caught.value.asked) == ("limit.sessions", 3, 4)
    with pytest.raises(LimitError):
        registry.add(record("s3"), max_sessions=0)
    with pytest.raises(LimitError):
        registry.add(record("s3"), max_sessions=1)
    assert registry.count() == 3
    registry.remove("s1")
    registry.add(record("s3"), max_sessions=3)
    registry.add(record("s4"), max_sessions=None)
    registry.add(record("s5"), max_sessions=2**63 - 1)
    assert ids(registry.list()) == ["s0", "s2", "s3", "s4", "s5"]


def test_a_taken_id_is_said_to_be_taken_also_at_the_maximum(registry: Registry) -> None:
    registry.add(record("abc"), max_sessions=1)
    with pytest.raises(SessionExistsError):
        registry.add(record("abc"), max_sessions=1)


def test_many_threads_cannot_pass_the_maximum(registry: Registry) -> None:
    def add(number: int) -> bool:
        with suppress(LimitError):
            registry.add(record(f"s{number}"), max_sessions=5)
            return True
        return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(add, range(40))) == 5
    assert registry.count() == 5


def test_of_many_threads_that_add_one_id_one_succeeds(registry: Registry) -> None:
    def add(number: int) -> bool:
        with suppress(SessionExistsError):
            registry.add(record("abc" if number % 2 else "Abc", role=f"r{number}"))
            return True
        return False

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(add, range(40))) == 1
    assert registry.count() == 1


# Adopting


def test_a_session_without_a_record_is_adopted(registry: Registry) -> None:
    adopted = registry.adopt("abc", NOW, ttl_seconds=60)
    assert adopted == record("abc", ttl_seconds=60)
    assert registry.get("abc") == adopted


def test_adopting_changes_nothing_about_a_session_with_a_record(registry: Registry) -> None:
    registry.add(record("abc", owner="key-1"))
    assert registry.adopt("abc", NOW + 5, ttl_seconds=60) == record("abc", owner="key-1")
    assert registry.get("abc") == record("abc", owner="key-1")


def test_adopting_an_id_that_differs_only_in_case_is_refused(registry: Registry) -> None:
    registry.add(record("abc"))
    with pytest.raises(SessionExistsError):
        registry.adopt("aBc", NOW)
    assert registry.count() == 1


# Use and changes


def test_a_touch_goes_forward_only(registry: Registry) -> None:
    registry.add(record("abc"))
    for now_ns, expected in ((NOW + 5, NOW + 5), (NOW + 3, NOW + 5), (NOW + 5, NOW + 5), (NOW + 9, NOW + 9)):
        registry.touch("abc", now_ns)
        assert registry.get("abc") == record("abc", used_ns=expected)


@requirement("M-03")
def test_a_touch_of_an_unknown_session_does_nothing(registry: Registry) -> None:
    registry.touch("abc", NOW)
    assert registry.count() == 0


def test_extending_changes_the_idle_time_alone(registry: Registry) -> None:
    registry.add(record("abc", role="reader", ttl_seconds=1))
    assert registry.extend("abc", 60) == record("abc", role="reader", ttl_seconds=60)
    assert registry.get("abc") == record("abc", role="reader", ttl_seconds=60)
    assert registry.extend("abc", None) == record("abc", role="reader")
    assert registry.get("abc") == record("abc", role="reader")


def test_an_update_changes_what_is_given_and_keeps_the_rest(registry: Registry) -> None:
    full = record("abc", role="reader", limits=Limits(depth=2), labels={"a": "b"}, owner="key-1", epoch=4)
    registry.add(full)
    assert registry.update("abc") == full
    assert registry.update("abc", role="developer") == replace(full, role="developer")
    assert registry.update("abc", limits=None, labels={}) == replace(
        full, role="developer", limits=None, labels={}
    )
    assert registry.update("abc", role=None).role is None
    assert registry.get("abc") == record("abc", owner="key-1", epoch=4)


def test_a_wrong_update_changes_nothing(registry: Registry) -> None:
    registry.add(record("abc"))
    with pytest.raises(ValueError, match="label 'a'"):
        registry.update("abc", role="developer", labels={"a": "\n"})
    with pytest.raises(ValueError, match="ttl_seconds"):
        registry.extend("abc", -1)
    assert registry.get("abc") == record("abc")


@pytest.mark.parametrize(
    "change",
    [lambda registry: registry.extend("abc", 5), lambda registry: registry.update("abc", role="reader")],
)
def test_changing_an_unknown_session_says_that_it_is_missing(
    registry: Registry, change: Callable[[Registry], object]
) -> None:
    with pytest.raises(SessionMissingError, match="'abc'"):
        change(registry)
    assert registry.count() == 0


def test_uses_in_the_future_are_set_to_now(registry: Registry) -> None:
    registry.add(record("past", used_ns=NOW - 5))
    registry.add(record("now"))
    registry.add(record("future", used_ns=NOW + 5, ttl_seconds=1))
    registry.add(record("far", used_ns=2**62 - 1, ttl_seconds=1))
    assert registry.expired(NOW + 2 * SECOND) == [record("future", used_ns=NOW + 5, ttl_seconds=1)]
    assert registry.rewind(NOW) == 2
    assert registry.rewind(NOW) == 0
    assert registry.get("past") == record("past", used_ns=NOW - 5)
    assert ids(registry.expired(NOW + SECOND)) == ["far", "future"]


# Removing


def test_a_removed_record_is_gone_and_its_id_is_free(registry: Registry) -> None:
    registry.add(record("abc"))
    assert registry.remove("abc")
    assert not registry.remove("abc")
    assert registry.get("abc") is None
    registry.add(record("ABC"))


def test_a_session_that_was_used_meanwhile_is_not_removed(registry: Registry) -> None:
    registry.add(record("abc"))
    registry.touch("abc", NOW + 1)
    assert not registry.remove("abc", if_unused_since=NOW)
    assert registry.remove("abc", if_unused_since=NOW + 1)


def test_a_session_that_is_not_expired_is_not_removed_as_expired(registry: Registry) -> None:
    registry.add(record("abc", ttl_seconds=1))
    registry.add(record("ever"))
    assert not registry.remove("abc", if_expired_at=NOW + SECOND - 1)
    registry.extend("abc", 2)
    assert not registry.remove("abc", if_expired_at=NOW + SECOND)
    assert not registry.remove("abc", if_expired_at=NOW + 2 * SECOND, if_unused_since=NOW - 1)
    assert registry.remove("abc", if_expired_at=NOW + 2 * SECOND, if_unused_since=NOW)
    assert not registry.remove("ever", if_expired_at=2**62 - 1)


# Listing


def test_a_thousand_records_are_listed_page_by_page_in_order(registry: Registry) -> None:
    names = [f"{prefix}{number}" for number in range(250) for prefix in ("a", "B", "_", "9.")]
    for name in names:
        registry.add(record(name))
    pages: list[list[SessionRecord]] = [registry.list()]
    while pages[-1]:
        assert len(pages[-1]) == 100
        pages.append(registry.list(after=pages[-1][-1].session_id))
    assert [name for page in pages for name in ids(page)] == sorted(names)
    assert registry.count() == 1000


def test_a_page_begins_after_an_id_that_is_gone(registry: Registry) -> None:
    for name in ("a", "b", "c", "d"):
        registry.add(record(name))
    registry.remove("b")
    assert ids(registry.list(after="b", count=1)) == ["c"]
    assert ids(registry.list(after="a.5")) == ["c", "d"]
    assert registry.list(after="d") == []


def test_adding_and_removing_between_pages_repeats_and_loses_nothing_else(registry: Registry) -> None:
    for name in ("b", "d", "f"):
        registry.add(record(name))
    first = registry.list(count=2)
    registry.add(record("a"))
    registry.remove("b")
    registry.add(record("e"))
    assert ids(first) + ids(registry.list(after="d", count=2)) == ["b", "d", "e", "f"]


def test_expired_sessions_come_in_the_order_of_their_end(registry: Registry) -> None:
    registry.add(record("ever"))
    registry.add(record("later", ttl_seconds=3))
    registry.add(record("b", ttl_seconds=2))
    registry.add(record("a", ttl_seconds=1, used_ns=NOW + SECOND))
    registry.add(record("first", ttl_seconds=1))
    assert registry.expired(NOW + SECOND - 1) == []
    assert ids(registry.expired(NOW + SECOND)) == ["first"]
    assert ids(registry.expired(NOW + 3 * SECOND)) == ["first", "a", "b", "later"]
    assert ids(registry.expired(NOW + 3 * SECOND, 2)) == ["first", "a"]
    second = registry.get("a")
    assert ids(registry.expired(NOW + 3 * SECOND, 2, after=second)) == ["b", "later"]
    assert {"first", "a", "b", "later"} <= registry.ids()
    registry.touch("first", NOW + 3 * SECOND)
    assert ids(registry.expired(NOW + 3 * SECOND, count=2)) == ["a", "b"]


@pytest.mark.parametrize("ttl_seconds", [1e-9, 0.1, 0.3, 1 / 3, 1.1, 12345.678901234, 50 * 366 * 86_400])
def test_expired_tells_the_same_as_the_record_to_the_nanosecond(
    registry: Registry, ttl_seconds: float
) -> None:
    added = record("abc", ttl_seconds=ttl_seconds)
    registry.add(added)
    assert added.expires_ns is not None
    assert registry.expired(added.expires_ns - 1) == []
    assert registry.expired(added.expires_ns) == [added]


def test_nothing_is_corrupt(registry: Registry) -> None:
    registry.add(record("abc"))
    assert registry.corrupt() == []


# Arguments and the end

BAD_ID: list[Callable[[Registry], object]] = [
    lambda registry: registry.get("../up"),
    lambda registry: registry.get("\udc80"),
    lambda registry: registry.adopt("", NOW),
    lambda registry: registry.touch(".carrel", NOW),
    lambda registry: registry.extend("a/b", 5),
    lambda registry: registry.update("a b"),
    lambda registry: registry.remove("a\x00b"),
    lambda registry: registry.list(after="%"),
]
BAD_VALUE: list[Callable[[Registry], object]] = [
    lambda registry: registry.add(record("abc"), max_sessions=-1),
    lambda registry: registry.add(record("abc"), max_sessions=2**63),
    lambda registry: registry.adopt("abc", -1),
    lambda registry: registry.adopt("abc", NOW, ttl_seconds=0),
    lambda registry: registry.touch("abc", 2**70),
    lambda registry: registry.rewind(-1),
    lambda registry: registry.expired(-1),
    lambda registry: registry.expired(NOW, count=0),
    lambda registry: registry.list(count=0),
    lambda registry: registry.remove("abc", if_unused_since=-1),
    lambda registry: registry.remove("abc", if_expired_at=2**70),
]


@pytest.mark.parametrize("call", BAD_ID)
def test_an_id_that_breaks_the_rule_is_refused(
    registry: Registry, call: Callable[[Registry], object]
) -> None:
    with pytest.raises(SessionIdError):
        call(registry)


@pytest.mark.parametrize("call", BAD_VALUE)
def test_a_time_or_number_that_cannot_be_is_refused(
    registry: Registry, call: Callable[[Registry], object]
) -> None:
    with pytest.raises(ValueError, match="must be"):
        call(registry)
    assert registry.count() == 0


@pytest.mark.parametrize("call", CALLS)
def test_use_after_closing_says_closed(registry: Registry, call: Callable[[Registry], object]) -> None:
    registry.add(record("abc"))
    registry.close()
    registry.close()
    with pytest.raises(ClosedError, match="registry of sessions is closed"):
        call(registry)
