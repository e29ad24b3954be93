"""What passes between a guest and its host are values, and come out as they went in."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.adapters.smolagents.json_codec import NUMBERS, decode, encode

KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.binary(), st.dates())
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.complex_numbers(allow_nan=False),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.decimals(allow_nan=False),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.sets(KEYS),
        st.frozensets(KEYS),
        st.dictionaries(st.text() | st.just("$"), inner),
        st.dictionaries(KEYS, inner),
    ),
    max_leaves=20,
)


def passed(value: Any) -> Any:
    return decode(json.loads(json.dumps(encode(value))))


@given(value=VALUES)
def test_a_value_comes_out_as_it_went_in(value: Any) -> None:
    found = passed(value)
    assert found == value
    assert type(found) is type(value)


def test_numbers_that_json_does_not_have_pass_too() -> None:
    assert math.isnan(passed(math.nan))
    assert passed([math.inf, -math.inf]) == [math.inf, -math.inf]
    assert passed(datetime(2026, 1, 2, tzinfo=UTC)).tzinfo == UTC


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_arrays_of_numbers_pass(name: str) -> None:
    array = numpy.array([[0, 1], [1, 0]], dtype=name)
    found = passed(array)
    assert found.dtype == array.dtype
    assert numpy.array_equal(found, array)
    assert passed(array[0, 1]) == 1
    assert type(passed(numpy.int64(3))) is int


class Colour(StrEnum):
    RED = "red"


def test_what_is_more_than_a_value_becomes_the_value() -> None:
    assert type(passed(Colour.RED)) is str
    assert passed(Colour.RED) == "red"


@pytest.mark.parametrize(
    "value",
    [object(), print, ValueError("x"), range(3), numpy.array([object()]), numpy.array(["a"]), [object()]],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_value_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be passed"):
        encode(value)


@pytest.mark.attack
@pytest.mark.parametrize(
    "document",
    [
        '{"$": "module", "of": "os"}',
        '{"$": ["tuple"], "of": []}',
        '{"$": "tuple"}',
        '{"$": "set", "of": [[]]}',
        '{"$": "dict", "of": [[{}, 1]]}',
        '{"$": "dict", "of": [1]}',
        '{"$": "bytes", "of": "?"}',
        '{"$": "complex", "of": ["1", "2", "3"]}',
        '{"$": "timedelta", "of": [1e300, 0, 0]}',
        '{"$": "Decimal", "of": "x"}',
        '{"$": "date", "of": 3}',
        '{"$": "array", "of": ["a"], "dtype": "S2000000000"}',
        '{"$": "array", "of": [1], "dtype": "object"}',
        '{"$": "array", "of": [1], "dtype": ["int8"]}',
        '{"$": "array", "of": [[1], [1, 2]], "dtype": "int8"}',
        "[" * 100_000 + "]" * 100_000,
    ],
    ids=lambda document: document[:60],
)
def test_a_document_that_means_nothing_is_an_error_and_makes_nothing(document: str) -> None:
    with pytest.raises((ArithmeticError, LookupError, RecursionError, TypeError, ValueError)):
        decode(json.loads(document))


def test_the_kinds_of_values_are_known() -> None:
    assert passed((date(2026, 1, 2), time(3, 4), timedelta(1), Decimal("1.10"))) == (
        date(2026, 1, 2),
        time(3, 4),
        timedelta(1),
        Decimal("1.10"),
    )
