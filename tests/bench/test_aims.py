"""How a run stands to the aims of the project."""

from __future__ import annotations

import pytest

from bench._aims import CLOSE, MET, MISSED, UNMEASURED, Ceiling, verdict
from bench._rows import OURS, Figure, Row

CEILING = Ceiling("a read within twice the other", "read", "other", 2)


def row(detail: str, ours: float, other: float | None, operation: str = "read") -> Row:
    figures = {OURS: Figure(ours)} | ({} if other is None else {"other": Figure(other)})
    return Row(operation, detail, figures, {"other": "it is not here"} if other is None else {})


@pytest.mark.parametrize(
    ("found", "expected"), [(1.0, MET), (2.0, MET), (2.05, CLOSE), (2.2, MISSED)], ids=str
)
def test_an_aim_is_met_up_to_its_ceiling_and_close_within_the_noise(found: float, expected: str) -> None:
    assert verdict(found, 2) == expected


def test_the_worst_row_of_the_operation_decides() -> None:
    rows = [row("small", 1, 1), row("large", 5, 2), row("large", 100, 1, operation="write")]
    aim = CEILING.judge(rows)
    assert aim.verdict == MISSED
    assert "2.50x at large (5.00 ms and 2.00 ms)" in aim.found


def test_a_ceiling_for_one_row_leaves_the_others_alone() -> None:
    rows = [row("small", 1, 1), row("large", 5, 2)]
    assert (
        Ceiling("small reads within twice the other", "read", "other", 2, "small").judge(rows).verdict == MET
    )


def test_what_could_not_be_measured_is_neither_met_nor_missed() -> None:
    aim = CEILING.judge([row("small", 1, None)])
    assert aim.verdict == UNMEASURED
    assert aim.found.endswith("it is not here")


def test_batches_go_by_the_best_and_calls_by_the_median() -> None:
    batches = {OURS: Figure(9, best=2), "other": Figure(1, best=1)}
    assert Row("read", "", batches).ratio("other") == 2
    assert Row("read", "", {OURS: Figure(9), "other": Figure(1)}).ratio("other") == 9
