"""What is known about a session: checked once, fixed, and read back from whatever a store holds."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import FrozenInstanceError, asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import SessionIdError
from carrel.storage.session_record import LABEL_BYTES, LABELS, TTL_SECONDS, CorruptRecordError, SessionRecord
from carrel.values import Limits
from tests.storage.registries import NOW, SECOND, record

RECORD = record("abc")
FULL = SessionRecord(
    session_id="full",
    created_ns=NOW,
    used_ns=NOW + 1,
    ttl_seconds=0.25,
    role="developer",
    limits=Limits(file_bytes=None, depth=3),
    labels={"project": "carrel", "färbung": "blau"},
    owner="key-1",
    epoch=7,
)

texts = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
times = st.integers(0, 2**62 - 1)
records = st.builds(
    SessionRecord,
    session_id=st.from_regex(r"[a-z0-9_]{4,20}", fullmatch=True),
    created_ns=times,
    used_ns=times,
    ttl_seconds=st.none() | st.floats(1e-9, TTL_SECONDS) | st.integers(1, TTL_SECONDS),
    role=st.none() | texts,
    limits=st.none() | st.builds(Limits, depth=st.none() | st.integers(0, 2**70)),
    labels=st.dictionaries(texts, texts, max_size=5),
    owner=st.none() | texts,
    epoch=st.integers(1, 2**63 - 1),
)


@given(records)
def test_a_record_is_read_back_as_it_was_kept(kept: SessionRecord) -> None:
    assert SessionRecord.parse(kept.render()) == kept


@given(records, times)
def test_a_session_expires_after_its_idle_time_and_not_before(kept: SessionRecord, now_ns: int) -> None:
    if kept.ttl_seconds is None:
        assert kept.expires_ns is None
        assert not kept.is_expired(now_ns)
        return
    assert kept.expires_ns is not None
    assert kept.is_expired(kept.expires_ns)
    assert not kept.is_expired(kept.expires_ns - 1)
    assert kept.is_expired(now_ns) is (now_ns - kept.used_ns >= int(kept.ttl_seconds * 1e9))


def test_a_session_without_an_idle_time_never_expires() -> None:
    assert not RECORD.is_expired(2**62 - 1)


def test_a_last_use_in_the_future_is_not_expired() -> None:
    assert not replace(RECORD, used_ns=NOW + 3600 * SECOND, ttl_seconds=1).is_expired(NOW)


def test_a_record_cannot_change_and_neither_can_its_labels() -> None:
    given_labels = {"a": "b"}
    fixed = replace(RECORD, labels=given_labels)
    given_labels["a"] = "c"
    assert fixed.labels == {"a": "b"}
    with pytest.raises(FrozenInstanceError):
        fixed.epoch = 2  # type: ignore[misc]  # that is the test
    with pytest.raises(TypeError):
        fixed.labels["a"] = "c"  # type: ignore[index]  # that is the test


def test_a_record_can_be_copied_pickled_hashed_and_shown() -> None:
    assert pickle.loads(pickle.dumps(FULL)) == FULL
    assert copy.deepcopy(FULL) == FULL
    assert len({FULL, copy.copy(FULL), RECORD}) == 2
    assert asdict(FULL)["labels"] == FULL.labels
    assert "'project': 'carrel'" in repr(FULL)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"created_ns": -1}, "created_ns"),
    ({"created_ns": 2**62}, "created_ns"),
    ({"used_ns": 1.5}, "used_ns"),
    ({"used_ns": True}, "used_ns"),
    ({"used_ns": None}, "used_ns"),
    ({"ttl_seconds": 0}, "ttl_seconds"),
    ({"ttl_seconds": -1.0}, "ttl_seconds"),
    ({"ttl_seconds": math.nan}, "ttl_seconds"),
    ({"ttl_seconds": math.inf}, "ttl_seconds"),
    ({"ttl_seconds": TTL_SECONDS + 1}, "ttl_seconds"),
    ({"ttl_seconds": "60"}, "ttl_seconds"),
    ({"ttl_seconds": True}, "ttl_seconds"),
    ({"role": ""}, "role"),
    ({"role": "a\nb"}, "role"),
    ({"role": "x" * 257}, "role"),
    ({"role": 7}, "role"),
    ({"owner": "\udc80"}, "owner"),
    ({"limits": {"depth": 3}}, "limits"),
    ({"epoch": 0}, "epoch"),
    ({"epoch": 2**63}, "epoch"),
    ({"epoch": True}, "epoch"),
    ({"labels": ["a"]}, "labels"),
    ({"labels": {f"name{number}": "" for number in range(LABELS + 1)}}, "64 labels"),
    ({"labels": {"": "text"}}, "label ''"),
    ({"labels": {"bad\x1b": "text"}}, r"label 'bad\\x1b'"),
    ({"labels": {"colour": "red\n"}}, "label 'colour'"),
    ({"labels": {"colour": "\udc80"}}, "label 'colour'"),
    ({"labels": {"colour": 7}}, "label 'colour'"),
    ({"labels": {7: "text"}}, "label 7"),
    ({"labels": {"colour": "x" * (LABEL_BYTES - 5)}}, "label 'colour' is too long"),
    ({"labels": {"x" * 2000: ""}}, r"label 'x+\.\.\. is too long"),
    ({"labels": {"colour": "ü" * (LABEL_BYTES // 2)}}, "label 'colour' is too long"),
]


@pytest.mark.parametrize(("values", "named"), BAD, ids=lambda value: str(value)[:40])
def test_a_value_that_cannot_be_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        replace(RECORD, **values)


def test_an_id_that_breaks_the_rule_makes_no_record() -> None:
    with pytest.raises(SessionIdError):
        replace(RECORD, session_id="../up")


def test_the_most_and_longest_labels_are_taken() -> None:
    text = "x" * (LABEL_BYTES - 2)
    labels = {f"{number:02}": text for number in range(LABELS)}
    assert replace(RECORD, labels=labels).labels == labels


Spoil = Callable[[dict[str, object]], Mapping[str, object]]


def put(name: str, value: object) -> Spoil:
    return lambda row: {**row, name: value}


TIMESTAMP = [
    put("created_ns", -5),
    put("created_ns", "2026-01-01T00:00:00"),
    put("created_ns", None),
    put("used_ns", 2**63),
    put("used_ns", 1.0),
    put("used_ns", b"now"),
    put("ttl_seconds", -1.0),
    put("ttl_seconds", math.inf),
    put("ttl_seconds", "soon"),
]
METADATA = [
    put("session_id", "../up"),
    put("session_id", b"abc"),
    put("role", 5),
    put("role", "a\x00b"),
    put("owner", "\udcff"),
    put("epoch", 0),
    put("epoch", "1"),
    put("labels", None),
    put("labels", "{ invalid json }"),
    put("labels", "[]"),
    put("labels", '{"a": 1}'),
    put("labels", '{"a": "\\u001b"}'),
    put("labels", "[" * 100_000),
    put("labels", '{"a": ' + "9" * 5000 + "}"),
    put("labels", "\udcff"),
    put("limits", "[]"),
    put("limits", b"{}"),
    put("limits", '{"depth": -1}'),
    put("limits", '{"depth": NaN}'),
    put("limits", '{"a_ceiling_of_the_future": 1}'),
]


@pytest.mark.parametrize("spoil", TIMESTAMP)
def test_a_row_with_a_wrong_time_is_a_corrupted_timestamp(spoil: Spoil) -> None:
    with pytest.raises(CorruptRecordError, match=r"^corrupted_timestamp$"):
        SessionRecord.parse(spoil(dict(FULL.render())))


@pytest.mark.parametrize("spoil", METADATA)
def test_a_row_with_anything_else_wrong_is_corrupted_metadata(spoil: Spoil) -> None:
    with pytest.raises(CorruptRecordError, match=r"^corrupted_metadata$"):
        SessionRecord.parse(spoil(dict(FULL.render())))


@given(
    st.dictionaries(
        st.sampled_from(sorted(FULL.render())),
        st.none() | st.integers() | st.floats() | st.text() | st.binary(),
    )
)
def test_no_row_whatever_raises_anything_else(spoiled: dict[str, object]) -> None:
    row = {**FULL.render(), **spoiled}
    with suppress(CorruptRecordError):
        SessionRecord.parse(row)
    RECORD.with_valid_columns(row)


def test_limits_that_were_kept_before_a_ceiling_was_added_have_its_default() -> None:
    row = {**FULL.render(), "limits": '{"depth": 5}'}
    assert SessionRecord.parse(row).limits == Limits(depth=5)


def test_mending_keeps_all_that_can_still_be_read() -> None:
    row = {**FULL.render(), "session_id": "abc", "used_ns": "yesterday", "labels": "{"}
    assert RECORD.with_valid_columns(row) == replace(FULL, session_id="abc", used_ns=NOW, labels={})
