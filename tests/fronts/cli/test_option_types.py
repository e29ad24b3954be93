"""Durations and ceilings of the command line."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.fronts.cli.option_types import (
    MAX_TTL_SECONDS,
    OptionParser,
    OptionValue,
    limit_parser,
    parse_duration,
    parse_finite_duration,
    render_duration,
)
from carrel.storage import session_record

OPTION = click.Option(["--x"])
CONTEXT = click.Context(click.Command("x"))


def parse(parser: OptionParser, text: str | None) -> OptionValue | None:
    return parser(CONTEXT, OPTION, text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("24h", 86_400), ("7d", 604_800), ("007d", 604_800)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert parse(parse_duration, text) == OptionValue(seconds)
    assert parse(parse_finite_duration, text) == OptionValue(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "0s",
        "-1",
        "+1",
        "1.5h",
        "1e3",
        "5x",
        "5 m",
        " 5m",
        "5m ",
        "5M",
        "1h30m",
        "h",
        "None",
        "٣",
        "5m\n",
    ],
)
def test_anything_else_is_no_duration(text: str) -> None:
    for parser in (parse_duration, parse_finite_duration):
        with pytest.raises(click.BadParameter, match="not a duration such as 90, 90s, 15m, 24h"):
            parse(parser, text)


def test_none_is_for_ever_where_that_makes_sense() -> None:
    assert parse(parse_duration, "none") == OptionValue(None)
    with pytest.raises(click.BadParameter):
        parse(parse_finite_duration, "none")


def test_what_is_not_given_is_not_none() -> None:
    for parser in (parse_duration, parse_finite_duration, limit_parser(5)):
        assert parse(parser, None) is None


@pytest.mark.parametrize("text", ["36601d", "999999999999d", f"{MAX_TTL_SECONDS + 1}"])
def test_more_than_a_hundred_years_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="a hundred years"):
        parse(parse_duration, text)


def test_the_longest_duration_is_the_longest_that_a_session_may_have() -> None:
    assert MAX_TTL_SECONDS == session_record.TTL_SECONDS
    assert parse(parse_duration, str(MAX_TTL_SECONDS)) == OptionValue(MAX_TTL_SECONDS)


@given(st.integers(min_value=1, max_value=MAX_TTL_SECONDS))
def test_a_duration_that_is_shown_can_be_given_again(seconds: int) -> None:
    assert parse(parse_duration, render_duration(seconds)) == OptionValue(seconds)
    assert render_duration(float(seconds)) == render_duration(seconds)


def test_durations_are_shown_in_their_largest_unit() -> None:
    shown = [render_duration(each) for each in (None, 0.5, 90, 900, 5_400, 86_400)]
    assert shown == ["none", "0.5s", "90s", "15m", "90m", "1d"]


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("5", 5), ("none", None)])
def test_a_ceiling_is_a_number_or_none(text: str, value: int | None) -> None:
    assert parse(limit_parser(5), text) == OptionValue(value)


@pytest.mark.parametrize("text", ["", "6", "-1", "1.5", "many", "٣", "9" * 19, "0x5"])
def test_anything_else_is_no_ceiling(text: str) -> None:
    with pytest.raises(click.BadParameter, match="not a whole number from 0 to 5, nor none"):
        parse(limit_parser(5), text)
