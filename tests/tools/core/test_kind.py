"""Kinds of arguments: their JSON Schema, and their errors for other values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from carrel.tools.core.schema import (
    MAX_PROBLEMS,
    ArgumentKind,
    BooleanKind,
    ChoiceKind,
    InvalidArgument,
    ListKind,
    NumberKind,
    ObjectKind,
    Param,
    TextKind,
    describe_value,
    kind_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One replacement."""

    old: Annotated[str, Param("What is there", minimum=1)] = field(metadata={"name": "oldText"})
    new: Annotated[str, Param("What comes there")] = field(metadata={"name": "newText"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One argument of every sort."""

    path: Annotated[str, Param("Which file", minimum=1, maximum=10)]
    swaps: Annotated[tuple[Swap, ...], Param("What to replace", maximum=2)] = ()
    lines: Annotated[tuple[int, int] | None, Param("From and to", minimum=2, maximum=2)] = None
    encoding: Annotated[Literal["utf-8", "ascii"] | None, Param("How", default="utf-8")] = None
    count: Annotated[int, Param("How many", minimum=1, maximum=10**7)] = 3
    seconds: Annotated[float | None, Param("How long", minimum=0.5)] = None
    force: Annotated[bool, Param("Whether to insist")] = False
    names: Annotated[tuple[str, ...], Param("Some names")] = ("a",)


TABLE = ObjectKind(Sample)


def test_a_table_is_an_object_that_takes_nothing_else() -> None:
    swap = {
        "type": "object",
        "properties": {
            "oldText": {"type": "string", "minLength": 1, "description": "What is there"},
            "newText": {"type": "string", "description": "What comes there"},
        },
        "required": ["oldText", "newText"],
        "additionalProperties": False,
    }
    assert TABLE.schema() == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1, "maxLength": 10, "description": "Which file"},
            "swaps": {
                "type": "array",
                "items": swap,
                "maxItems": 2,
                "description": "What to replace",
                "default": [],
            },
            "lines": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "description": "From and to",
            },
            "encoding": {
                "type": "string",
                "enum": ["utf-8", "ascii"],
                "description": "How",
                "default": "utf-8",
            },
            "count": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10**7,
                "description": "How many",
                "default": 3,
            },
            "seconds": {"type": "number", "minimum": 0.5, "description": "How long"},
            "force": {"type": "boolean", "description": "Whether to insist", "default": False},
            "names": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Some names",
                "default": ["a"],
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_a_table_makes_its_dataclass() -> None:
    given = {
        "path": "f",
        "swaps": [{"oldText": "a", "newText": "b"}],
        "lines": [1, 2.0],
        "encoding": "ascii",
        "count": 10**7,
        "seconds": 1,
        "force": True,
        "names": [],
    }
    assert TABLE.parse(given) == Sample(
        path="f",
        swaps=(Swap(old="a", new="b"),),
        lines=(1, 2),
        encoding="ascii",
        count=10**7,
        seconds=1,
        force=True,
        names=(),
    )


def test_null_leaves_an_argument_out_if_it_may_be_left_out() -> None:
    nothing = dict.fromkeys(("swaps", "lines", "encoding", "count", "seconds", "force", "names"))
    assert TABLE.parse({"path": "f", **nothing}) == Sample(path="f")
    with pytest.raises(InvalidArgument, match=r"^'path' must be a text, not null$"):
        TABLE.parse({"path": None})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "'path' is missing"),
        ({"path": ""}, "'path' must not be empty"),
        ({"path": "x" * 11}, "'path' is too long: 11 characters, the limit is 10"),
        ({"path": 1}, "'path' must be a text, not 1"),
        ({"path": ["f"]}, "'path' must be a text, not a list"),
        ({"path": {}}, "'path' must be a text, not an object"),
        ({"path": "f", "count": "3"}, "'count' must be a whole number from 1 to 10000000, not the text '3'"),
        ({"path": "f", "count": True}, "'count' must be a whole number from 1 to 10000000, not true"),
        ({"path": "f", "count": 0}, "'count' must be a whole number from 1 to 10000000, not 0"),
        ({"path": "f", "count": 1.5}, "'count' must be a whole number from 1 to 10000000, not 1.5"),
        ({"path": "f", "seconds": 0.25}, "'seconds' must be a number of at least 0.5, not 0.25"),
        ({"path": "f", "force": 1}, "'force' must be true or false, not 1"),
        ({"path": "f", "force": "true"}, "'force' must be true or false, not the text 'true'"),
        ({"path": "f", "encoding": "x"}, "'encoding' must be one of utf-8, ascii, not the text 'x'"),
        ({"path": "f", "encoding": []}, "'encoding' must be one of utf-8, ascii, not a list"),
        ({"path": "f", "names": "a"}, "'names' must be a list, not the text 'a'"),
        ({"path": "f", "names": ["a", 2]}, "'names' [1] must be a text, not 2"),
        ({"path": "f", "lines": [1]}, "'lines' must have 2 items, not 1"),
        ({"path": "f", "swaps": [{}] * 3}, "'swaps' must have 0 to 2 items, not 3"),
        (
            {"path": "f", "swaps": [{"oldText": "a", "newtext": "b"}]},
            "'swaps' [0] there is no argument 'newtext'; did you mean 'newText'?; 'newText' is missing",
        ),
        ({"path": "f", "swaps": [[]]}, "'swaps' [0] must be an object, not a list"),
        ({"pat": "f"}, "there is no argument 'pat'; did you mean 'path'?; 'path' is missing"),
        ({"path": "f", "zzz": 1}, "there is no argument 'zzz'"),
        ({"path": "f", 7: 1}, "7 is not a name"),
        ([], "must be an object, not a list"),
        ("f", "must be an object, not the text 'f'"),
    ],
)
def test_a_value_of_another_kind_is_explained(given: object, says: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        TABLE.parse(given)
    assert str(caught.value) == says


def test_all_problems_are_reported_at_once_but_not_without_end() -> None:
    with pytest.raises(InvalidArgument) as caught:
        TABLE.parse({"force": 0, "names": 0})
    problems = "'force' must be true or false, not 0; 'names' must be a list, not 0; 'path' is missing"
    assert str(caught.value) == problems
    with pytest.raises(InvalidArgument) as caught:
        TABLE.parse({f"x{number}": 1 for number in range(1000)})
    assert str(caught.value).count("there is no argument") == MAX_PROBLEMS


@pytest.mark.parametrize("value", [10**400, -(10**400), 2**63, 1e300, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [NumberKind(), NumberKind(minimum=1), NumberKind(whole=True)], ids=str)
def test_a_number_without_measure_is_refused(kind: NumberKind, value: float) -> None:
    with pytest.raises(InvalidArgument, match=r"not a number that is too large$"):
        kind.parse(value)


def test_a_whole_number_is_an_int_however_it_was_written() -> None:
    found = NumberKind(whole=True).parse(3.0)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (str, TextKind()),
        (str | None, TextKind()),
        (int, NumberKind(whole=True)),
        (float, NumberKind()),
        (bool, BooleanKind()),
        (Literal["a", "b"], ChoiceKind(("a", "b"))),
        (tuple[str, ...], ListKind(TextKind())),
        (tuple[Annotated[str, Param("", minimum=1)], ...], ListKind(TextKind(1))),
    ],
)
def test_the_type_of_a_field_says_what_it_takes(hint: Any, kind: ArgumentKind) -> None:
    assert kind_of(hint, Param("")) == kind


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "null"),
        (False, "false"),
        (1.5, "1.5"),
        ("a\n\ud800", r"the text 'a\n\ud800'"),
        ("x" * 41, f"the text '{'x' * 40}...'"),
        ({1}, "a set"),
        (object(), "a object"),
    ],
)
def test_a_value_is_shown_in_a_few_words(value: object, says: str) -> None:
    assert describe_value(value) == says
