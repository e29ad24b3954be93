"""Every error has a row, and every row an error."""

from __future__ import annotations

import inspect

import grpc
import pytest

from carrel import errors
from carrel.errors import (
    CarrelError,
    ContainerError,
    EditError,
    EngineError,
    LimitError,
    QuotaError,
    ToolError,
)
from carrel.service.error_status import TABLE, ExitStatus, error_status

AREAS = {
    ContainerError: "container.*",
    EditError: "edit.*",
    EngineError: "engine.*",
    LimitError: "limit.*",
    QuotaError: "quota.*",
    ToolError: "tool.*",
}
CASES = {
    "limit.executions",
    "limit.rate",
    "limit.requests",
    "limit.sessions",
    "limit.time",
    "limit.uploads",
    "tool.failed",
    "tool.status",
    "tool.unknown",
}
"""Codes that differ from the rest of their area."""


def codes() -> set[str]:
    """The code of every error in the tree; an error with a code per case is known by its area."""
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, CarrelError)]
    return {AREAS.get(kind, kind.code) for kind in kinds}


def test_every_error_has_a_row_and_every_row_an_error() -> None:
    assert codes() | CASES == set(TABLE)


def test_the_table_is_sorted() -> None:
    assert list(TABLE) == sorted(TABLE)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("path.missing", ExitStatus.FAILED),
        ("path.invalid", ExitStatus.INVALID),
        ("session.invalid_id", ExitStatus.INVALID),
        ("path.escape", ExitStatus.REFUSED),
        ("path.absolute", ExitStatus.REFUSED),
        ("access.denied", ExitStatus.REFUSED),
        ("access.outside", ExitStatus.REFUSED),
        ("limit.depth", ExitStatus.LIMIT),
        ("limit.file_bytes", ExitStatus.LIMIT),
        ("limit.sessions", ExitStatus.LIMIT),
        ("quota.bytes", ExitStatus.LIMIT),
        ("quota.entries", ExitStatus.LIMIT),
        ("edit.ambiguous", ExitStatus.FAILED),
        ("journal.rotated", ExitStatus.FAILED),
        ("path.busy", ExitStatus.UNAVAILABLE),
        ("disk.full", ExitStatus.UNAVAILABLE),
        ("disk.low", ExitStatus.UNAVAILABLE),
        ("runtime.failed", ExitStatus.UNAVAILABLE),
        ("runtime.missing", ExitStatus.UNAVAILABLE),
        ("sessions.unavailable", ExitStatus.UNAVAILABLE),
        ("workspace.closed", ExitStatus.UNAVAILABLE),
        ("policy.invalid", ExitStatus.INVALID),
        ("runtime.disabled", ExitStatus.REFUSED),
        ("engine.missing", ExitStatus.UNAVAILABLE),
        ("container.image", ExitStatus.UNAVAILABLE),
    ],
)
def test_a_code_gives_its_exit_status(code: str, status: ExitStatus) -> None:
    assert error_status(code).exit_status is status


def test_a_code_nobody_foresaw_simply_failed() -> None:
    assert error_status("comet.impact").exit_status is ExitStatus.FAILED


def test_only_what_may_work_later_is_to_be_tried_again() -> None:
    assert {code for code, row in TABLE.items() if row.retry} == {
        "engine.*",
        "limit.executions",
        "limit.rate",
        "limit.requests",
        "limit.sessions",
        "limit.uploads",
        "path.busy",
        "path.changed",
        "service.stopping",
        "service.unreachable",
        "sessions.unavailable",
    }


def test_no_error_ends_as_if_all_were_well() -> None:
    assert all(row.exit_status is not ExitStatus.DONE for row in TABLE.values())
    assert all(400 <= row.http_status < 600 for row in TABLE.values())
    assert {row.grpc_status for row in TABLE.values()} <= {status.name for status in grpc.StatusCode} - {"OK"}
