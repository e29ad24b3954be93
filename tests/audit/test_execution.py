"""The log of a run of guest code: what it may take, and what it did."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from carrel import SandboxLogger
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.result import SandboxResult, TrapReason
from tests.requirements import requirement


def result(**fields: object) -> SandboxResult:
    """A result, with some fields as given."""
    known: dict[str, object] = {
        "success": True,
        "stdout": "Hello\n",
        "stderr": "",
        "exit_code": 0,
        "fuel_consumed": 12,
        "memory_used_bytes": 41_943_040,
        "duration_ms": 1.25,
        "files_created": ["output.txt"],
        "files_modified": [],
        "files_deleted": ["a/b", "c"],
        "workspace_path": "/srv/s",
        "metadata": {},
    }
    return SandboxResult(**{**known, **fields})  # type: ignore[arg-type]  # any of them


def start(policy: ExecutionPolicy, **extra: object) -> Mapping[str, object]:
    """What is logged when guest code begins."""
    with structlog.testing.capture_logs() as captured:
        SandboxLogger(structlog.get_logger()).log_execution_start("python", policy, "s", **extra)
    (event,) = captured
    return event


def complete(done: SandboxResult, **extra: object) -> Mapping[str, object]:
    """What is logged when guest code has ended."""
    with structlog.testing.capture_logs() as captured:
        SandboxLogger(structlog.get_logger()).log_execution_complete(done, "python", "s", **extra)
    (event,) = captured
    return event


# The beginning


@requirement("LOG-8")
def test_the_beginning_tells_the_policy() -> None:
    policy = ExecutionPolicy(fuel_budget=5, mount_data_dir="datasets", timeout_seconds=2)
    assert start(policy, turn=7) == {
        "event": "execution.start",
        "log_level": "info",
        "runtime": "python",
        "session_id": "s",
        "fuel_budget": 5,
        "memory_bytes": 128_000_000,
        "timeout_seconds": 2.0,
        "stdout_max_bytes": 2_000_000,
        "stderr_max_bytes": 1_000_000,
        "guest_mount_path": "/app",
        "mount_data_dir": "datasets",
        "guest_data_path": "/data",
        "preserve_logs": False,
        "turn": 7,
    }


def test_what_there_is_not_is_left_out() -> None:
    event = start(ExecutionPolicy())
    assert not {"fuel_budget", "mount_data_dir", "guest_data_path"} & set(event)


def test_no_variable_and_no_argument_is_told() -> None:
    policy = ExecutionPolicy(env={"TOKEN": "secret"}, argv=("secret",))
    assert "secret" not in repr(start(policy))


def test_extra_fields_do_not_replace_what_is_true() -> None:
    assert start(ExecutionPolicy(), memory_bytes=1)["memory_bytes"] == 128_000_000
    assert complete(result(), success=False)["success"] is True


# The end


@requirement("LOG-9")
def test_the_end_tells_the_outcome() -> None:
    assert complete(result(), turn=7) == {
        "event": "execution.complete",
        "log_level": "info",
        "runtime": "python",
        "session_id": "s",
        "success": True,
        "exit_code": 0,
        "fuel_consumed": 12,
        "memory_used_bytes": 41_943_040,
        "duration_ms": 1.25,
        "stdout_bytes": 6,
        "stderr_bytes": 0,
        "stdout_truncated": False,
        "stderr_truncated": False,
        "files_created_count": 1,
        "files_modified_count": 0,
        "files_deleted_count": 2,
        "files_created_paths": ["output.txt"],
        "files_modified_paths": [],
        "files_deleted_paths": ["a/b", "c"],
        "turn": 7,
    }


@requirement("LOG-9")
def test_a_failure_is_an_ordinary_event_with_its_reason() -> None:
    metadata = {"trap_reason": TrapReason.FUEL, "stdout_truncated": True}
    event = complete(result(success=False, exit_code=None, metadata=metadata))
    assert (event["log_level"], event["success"], event["trap_reason"]) == ("info", False, "out_of_fuel")
    assert (event["stdout_truncated"], event["stderr_truncated"]) == (True, False)
    assert "exit_code" not in event
    assert complete(result(metadata={"stderr_truncated": True}))["stderr_truncated"] is True


def test_output_is_told_by_its_size_in_utf_8_only() -> None:
    event = complete(result(stdout="secret", stderr="你好\udce9"))
    assert (event["stdout_bytes"], event["stderr_bytes"]) == (6, 9)
    assert "secret" not in repr(event)


def test_the_place_of_the_workspace_is_not_told() -> None:
    assert "/srv" not in repr(complete(result()))


@requirement("LOG-9")
@pytest.mark.parametrize("kind", ["created", "modified", "deleted"])
def test_of_many_files_twenty_are_named(kind: str) -> None:
    names = [f"file_{number}" for number in range(50)]
    event = complete(result(**{f"files_{kind}": names}))
    assert event[f"files_{kind}_count"] == 50
    assert event[f"files_{kind}_paths"] == names[:20]


@requirement("LOG-9")
def test_a_long_path_is_cut() -> None:
    event = complete(result(files_created=["a" * 140, "a" * 141]))
    cut = "a" * 126 + "...[truncated]"
    assert len(cut) == 140
    assert event["files_created_paths"] == ["a" * 140, cut]


@given(st.text(), st.integers(0, 300))
def test_any_path_is_printable_and_short(text: str, times: int) -> None:
    done = result(files_modified=[text * times])
    paths = complete(done)["files_modified_paths"]
    assert isinstance(paths, list)
    assert all(path.isprintable() and len(path) <= 140 for path in paths)
    assert len(text * times) > 140 or not text.isprintable() or paths == [text * times]


# stdlib


def test_both_are_one_line_for_people(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="carrel"):
        SandboxLogger().log_execution_start("python", ExecutionPolicy())
        SandboxLogger().log_execution_complete(result(files_created=["new\nline"]))
    begin, end = caplog.records
    assert begin.getMessage().startswith("execution.start runtime=python memory_bytes=128000000 ")
    assert end.getMessage().startswith("execution.complete success=True exit_code=0 ")
    assert end.getMessage().isprintable()
    assert end.__dict__["files_created_paths"] == [r"new\nline"]
    assert (begin.levelname, end.levelname) == ("INFO", "INFO")
    assert [Path(record.pathname).name for record in caplog.records] == [Path(__file__).name] * 2


class Untouchable(dict[str, object]):
    """Metadata that nobody may look at."""

    def get(self, *_: object) -> object:
        raise AssertionError


def test_nothing_is_prepared_when_nobody_listens() -> None:
    done = result()
    object.__setattr__(done, "metadata", Untouchable())
    quiet = logging.getLogger("tests.quiet")
    quiet.setLevel(logging.WARNING)
    SandboxLogger(quiet).log_execution_complete(done)
    with pytest.raises(AssertionError):
        SandboxLogger(structlog.get_logger()).log_execution_complete(done)
