"""What a run of guest code did, as a value and as JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.runtimes.result import SandboxResult, TrapReason
from tests.requirements import requirement

FIELDS: dict[str, object] = {
    "success": True,
    "stdout": "Hello\n",
    "stderr": "",
    "exit_code": 0,
    "fuel_consumed": 12,
    "memory_used_bytes": 41_943_040,
    "duration_ms": 1.25,
    "files_created": ["output.txt"],
    "files_modified": [],
    "files_deleted": ["a/b"],
    "workspace_path": "/srv/s",
    "metadata": {"session_id": "s", "stdout_truncated": False},
}


def result(**fields: object) -> SandboxResult:
    """A result, with some fields as given."""
    return SandboxResult(**{**FIELDS, **fields})  # type: ignore[arg-type]  # any of them


# The value


@pytest.mark.parametrize(
    ("exit_code", "reason", "status"),
    [
        (0, None, 0),
        (7, None, 7),
        (None, TrapReason.TIMEOUT, 124),
        (None, TrapReason.CANCELLED, 130),
        (None, TrapReason.ABORTED, 134),
        (None, TrapReason.ENGINE, 5),
        (None, TrapReason.MEMORY, 4),
        (1, TrapReason.MEMORY, 4),
        (None, TrapReason.FUEL, 4),
        (None, TrapReason.FILE_OPERATIONS, 4),
        (None, TrapReason.STACK, 4),
        (0, TrapReason.LOST_WRITE, 4),
    ],
)
def test_the_exit_status_is_the_code_s_own_or_that_of_what_ended_it(
    exit_code: int | None, reason: TrapReason | None, status: int
) -> None:
    assert result(exit_code=exit_code, metadata={"trap_reason": reason}).exit_status == status


def test_files_are_compared_with_lists() -> None:
    assert result().files_created == ["output.txt"]
    assert result(files_created=("x",)).files_created == ["x"]


def test_a_result_shares_nothing_with_what_it_was_made_from() -> None:
    files, metadata = ["x"], {"a": 1}
    made = result(files_created=files, metadata=metadata)
    files.append("y")
    metadata["a"] = 2
    assert (made.files_created, made.metadata) == (["x"], {"a": 1})


def test_a_result_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result().success = False  # type: ignore[misc]  # that it cannot is the test


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made)), dataclasses.replace],
)
def test_a_result_can_travel(again: Callable[[SandboxResult], SandboxResult]) -> None:
    assert again(result()) == result()
    assert again(result()) != result(stdout="")


@pytest.mark.parametrize("reason", TrapReason)
def test_a_result_tells_why_it_was_ended(reason: TrapReason) -> None:
    for given_reason in (reason, str(reason)):
        ended = result(metadata={"trap_reason": given_reason})
        assert ended.trap_reason is reason
        assert ended.timed_out == (reason is TrapReason.TIMEOUT)


@pytest.mark.parametrize("metadata", [{}, {"trap_reason": None}])
def test_a_result_that_ended_by_itself_has_no_reason(metadata: dict[str, object]) -> None:
    assert (result(metadata=metadata).trap_reason, result(metadata=metadata).timed_out) == (None, False)


@pytest.mark.parametrize("reason", ["bored", "", 5])
def test_a_reason_that_there_is_not_is_refused(reason: object) -> None:
    with pytest.raises(ValueError, match="TrapReason"):
        result(metadata={"trap_reason": reason})


def test_the_reasons_are_a_promise() -> None:
    assert list(TrapReason) == [
        "timeout",
        "cancelled",
        "memory_limit",
        "out_of_fuel",
        "file_operations",
        "stack_overflow",
        "quota_exceeded",
        "lost_write",
        "engine_crash",
        "aborted",
    ]


# JSON

FLOATS = st.floats(min_value=0, allow_infinity=False)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), FLOATS, st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=6,
)
TEXTS = st.text(st.characters())
"""Lone surrogates too: a byte that is not UTF-8 is one."""
NUMBERS = st.one_of(st.none(), st.integers())
FILES = st.lists(TEXTS, max_size=3)
RESULTS = st.builds(
    SandboxResult,
    success=st.booleans(),
    stdout=TEXTS,
    stderr=TEXTS,
    exit_code=NUMBERS,
    fuel_consumed=NUMBERS,
    memory_used_bytes=NUMBERS,
    duration_ms=FLOATS,
    files_created=FILES,
    files_modified=FILES,
    files_deleted=FILES,
    workspace_path=TEXTS,
    metadata=st.dictionaries(TEXTS.filter(lambda name: name != "trap_reason"), VALUES, max_size=3),
)


@requirement("E-41")
@given(RESULTS)
def test_a_result_goes_through_json_and_back(made: SandboxResult) -> None:
    text = made.to_json()
    assert text.isascii()
    assert "\n" not in text
    assert SandboxResult.from_json(text) == made


@requirement("E-41")
def test_json_has_all_fields_by_their_names() -> None:
    names = [field.name for field in dataclasses.fields(SandboxResult)]
    assert names == list(FIELDS)
    assert json.loads(result().to_json()) == FIELDS
    assert list(json.loads(result().to_json())) == names


def test_a_reason_goes_through_json() -> None:
    again = SandboxResult.from_json(result(metadata={"trap_reason": TrapReason.FUEL}).to_json())
    assert again.trap_reason is TrapReason.FUEL


def test_a_number_that_json_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        result(duration_ms=float("nan")).to_json()


@pytest.mark.parametrize("name", FIELDS)
def test_a_missing_field_is_refused_by_name(name: str) -> None:
    document = {each: value for each, value in FIELDS.items() if each != name}
    with pytest.raises(ValueError, match=f"'{name}' is missing"):
        SandboxResult.from_json(json.dumps(document))


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'colour' is not a field"):
        SandboxResult.from_json(json.dumps({**FIELDS, "colour": "red"}))


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [[5], "text", {"a": 1}, 5, True, None, 0.5])
def test_a_field_of_another_type_is_refused_by_name(name: str, value: object) -> None:
    fits = {"metadata": dict, "success": bool, "stdout": str, "stderr": str, "workspace_path": str}
    numbers = (int, type(None)) if name != "duration_ms" else (int, float)
    kinds = fits.get(name, list if name.startswith("files_") else numbers)
    text = json.dumps({**FIELDS, name: value})
    if isinstance(value, kinds) and value != [5] and (value is not True or name == "success"):
        assert getattr(SandboxResult.from_json(text), name) == value
        return
    with pytest.raises(ValueError, match=f"'{name}' of a result cannot be of that type"):
        SandboxResult.from_json(text)


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "{", "not json"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"JSON object|Expecting"):
        SandboxResult.from_json(text)
