"""What the value of a setting may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from carrel.config.kind import (
    ABSOLUTE,
    MODE,
    PATH,
    SIZE,
    SWITCH,
    InvalidValueError,
    SettingKind,
    expand,
    number,
    number_or_none,
    short_repr,
)

NUMBER = number(1, 1_000)
NUMBER_OR_NONE = number_or_none(0, 10)


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        (NUMBER, 1, 1),
        (NUMBER, 1_000, 1_000),
        (NUMBER_OR_NONE, 0, 0),
        (NUMBER_OR_NONE, "none", None),
        (SIZE, 0, 0),
        (SIZE, 12, 12),
        (SIZE, "12", 12),
        (SIZE, "2KB", 2048),
        (SIZE, "3 MB", 3 * 2**20),
        (SIZE, "1gb", 2**30),
        (SWITCH, True, True),
        (MODE, "ro", "ro"),
        (MODE, "rw", "rw"),
        (MODE, "RW", "rw"),
        (MODE, "readwrite", "rw"),
        (MODE, "read-write", "rw"),
        (MODE, " Read-Only ", "ro"),
        (PATH, "a/b", Path("a/b")),
        (PATH, "~", Path("/home/me")),
        (PATH, "~/x", Path("/home/me/x")),
        (PATH, "~//etc", Path("/home/me/etc")),
        (PATH, "a~", Path("a~")),
        (ABSOLUTE, "/a", Path("/a")),
        (ABSOLUTE, "~/a", Path("/home/me/a")),
    ],
)
def test_a_value_from_the_file(kind: SettingKind[object], value: object, result: object) -> None:
    made = kind.check(value, "/home/me")
    assert (made, type(made)) == (result, type(result))


NAN = float("nan")


BAD: dict[str, tuple[SettingKind[object], list[object]]] = {
    "number": (NUMBER, [0, 1_001, -1, 2**80, True, 1.0, NAN, "1", "none", [], {}, None]),
    "number or none": (NUMBER_OR_NONE, [-1, 11, False, 1.5, float("inf"), "None", "", [1], 2**20_000]),
    "size": (SIZE, [-1, True, 1.5, "", "MB", "-1KB", "1.5MB", "1TB", "1 0", 2**60, "9" * 19]),
    "switch": (SWITCH, [1, 0, "true", "yes", None, []]),
    "mode": (MODE, ["", "anything_else", "r w", True, 1, ["rw"]]),
    "path": (PATH, ["", "a\0b", 1, True, ["/a"], "~other/x", "~~"]),
    "absolute": (ABSOLUTE, ["a", "./a", "", ".", "../a"]),
}


@pytest.mark.parametrize(("kind", "values"), BAD.values(), ids=BAD)
def test_values_that_make_no_sense_are_refused(kind: SettingKind[object], values: list[object]) -> None:
    for value in values:
        with pytest.raises(InvalidValueError):
            kind.check(value, "/home/me")


@pytest.mark.parametrize("text", ["1", "true", "TRUE", "yes", "on", " On "])
def test_a_variable_switches_on(text: str) -> None:
    assert SWITCH.check(SWITCH.from_text(text), None) is True


@pytest.mark.parametrize("text", ["0", "false", "no", "OFF"])
def test_a_variable_switches_off(text: str) -> None:
    assert SWITCH.check(SWITCH.from_text(text), None) is False


@pytest.mark.parametrize("text", ["2", "y", "enabled", "tru", "nan"])
def test_a_variable_that_is_no_switch_is_refused(text: str) -> None:
    with pytest.raises(InvalidValueError, match=f"must be true or false, not '{text}'"):
        SWITCH.check(SWITCH.from_text(text), None)


@pytest.mark.parametrize(("text", "result"), [("5", 5), (" 7 ", 7), ("0010", 10)])
def test_a_variable_is_a_number(text: str, result: int) -> None:
    assert NUMBER_OR_NONE.check(NUMBER_OR_NONE.from_text(text), None) == result


@pytest.mark.parametrize("text", ["None", "NONE", " none"])
def test_a_variable_says_that_there_is_no_ceiling(text: str) -> None:
    assert NUMBER_OR_NONE.check(NUMBER_OR_NONE.from_text(text), None) is None


@pytest.mark.parametrize(
    "text", ["-1", "+1", "1.0", "1_0", "0x1", "nan", "inf", "٣", "1e1", "9" * 5_000, "x"]
)
def test_a_variable_that_is_no_number_is_refused(text: str) -> None:
    for kind in (NUMBER, NUMBER_OR_NONE):
        with pytest.raises(InvalidValueError):
            kind.check(kind.from_text(text), None)


def test_a_tilde_without_a_home_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="HOME"):
        expand("~/x", None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1}, "a table"),
        ([1], "a list"),
        (10**20, "a number of that size"),
        ("x" * 100, "'" + "x" * 59 + "..."),
        (1.5, "1.5"),
    ],
)
def test_an_error_shows_any_value_and_stays_short(value: Any, text: str) -> None:
    assert short_repr(value) == text
