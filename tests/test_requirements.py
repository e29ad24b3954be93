"""Every required behaviour is shown by a test or has a gap, and no test names anything else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.requirements import REQUIREMENTS, requirement

HERE = Path(__file__).parent
MARKS = ("requirement", "mark.requirement", "pytest.mark.requirement")


@dataclass(frozen=True, slots=True)
class Claim:
    """One id in one test file; the id is `None` where it is not a plain text."""

    name: str | None
    place: str
    decorates_a_test: bool


@cache
def claims() -> tuple[Claim, ...]:
    """What all test files claim, read as text, so that it does not matter which of them run."""
    files = sorted(path for path in HERE.rglob("test_*.py") if path != Path(__file__))
    return tuple(claim for path in files for claim in _claims_in(path))


def _claims_in(path: Path) -> Iterator[Claim]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    on_tests = {
        id(decorator)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if node.name.startswith(("test_", "Test"))
        for decorator in node.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in MARKS:
            on_test = id(node) in on_tests or ast.unparse(node.func) != "requirement"
            for argument in node.args:
                value = argument.value if isinstance(argument, ast.Constant) else None
                yield Claim(
                    name=value if isinstance(value, str) else None,
                    place=f"{path.relative_to(HERE)}:{node.lineno}",
                    decorates_a_test=on_test,
                )


def test_every_behaviour_without_a_gap_is_shown_by_a_test() -> None:
    shown = {claim.name for claim in claims()}
    missing = [name for name, row in REQUIREMENTS.items() if row.gap is None and name not in shown]
    assert missing == []


def test_every_id_that_a_test_names_exists() -> None:
    wrong = [f"{claim.place}: {claim.name}" for claim in claims() if claim.name not in REQUIREMENTS]
    assert wrong == []


def test_no_test_claims_a_behaviour_with_a_gap() -> None:
    wrong = [
        f"{claim.place}: {claim.name}"
        for claim in claims()
        if claim.name in REQUIREMENTS and REQUIREMENTS[claim.name].gap is not None
    ]
    assert wrong == []


def test_an_id_is_named_on_a_test_not_beside_one() -> None:
    wrong = [claim.place for claim in claims() if not claim.decorates_a_test]
    assert wrong == []


def test_every_behaviour_says_something_and_every_gap_too() -> None:
    for name, row in REQUIREMENTS.items():
        assert row.says, name
        assert row.gap is None or row.gap, name


@pytest.mark.parametrize("ids", [(), ("NO-1",), ("P-01", "NO-1")])
def test_a_mark_with_an_unknown_id_fails_at_import(ids: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="no such requirement"):
        requirement(*ids)


def test_a_mark_carries_each_id() -> None:
    @requirement("P-01", "P-02")
    def shows() -> None: ...

    marks = shows.pytestmark
    assert {mark.args for mark in marks} == {("P-01",), ("P-02",)}
    assert {mark.name for mark in marks} == {"requirement"}
