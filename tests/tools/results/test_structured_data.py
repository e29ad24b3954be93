"""JSON and YAML as data: what JSON can say, or the text as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.tools.results.structured_data import (
    MAX_DEPTH,
    MAX_JSON_CHARACTERS,
    MAX_NUMBER_CHARACTERS,
    MAX_YAML_CHARACTERS,
    NOTHING,
    parse_data,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=20,
)


@given(VALUES)
def test_what_was_written_as_json_is_read_as_the_same(value: object) -> None:
    assert parse_data(json.dumps(value), ".json") == value
    assert parse_data(json.dumps(value, ensure_ascii=False, indent=2), ".json") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 2.5, true, ~]\n", {"a": 1, "b": ["x", 2.5, True, None]}),
        ("- one\n- two\n", ["one", "two"]),
        ("2024-05-06", "2024-05-06"),
        ("at: 2024-05-06 07:08:09", {"at": "2024-05-06T07:08:09"}),
        ("3: a\ntrue: b\n~: c\n2.5: d\n", {"3": "a", "true": "b", "null": "c", "2.5": "d"}),
        ("2024-05-06: e", {"2024-05-06": "e"}),
        ("!!omap [a: 1]", [["a", 1]]),
        ("", None),
    ],
)
def test_yaml_becomes_what_json_can_say(text: str, value: object) -> None:
    assert parse_data(text, ".yaml") == value
    assert parse_data(text, ".yml") == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "NaN", "[Infinity]", "-Infinity", "1e999", "[-1e999]", "9" * 5000, "[" * 100_000],
)
def test_what_is_not_json_stays_text(text: str) -> None:
    assert parse_data(text, ".json") is NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: &x 1\nb: *x",
        "--- 1\n--- 2",
        "!!python/object/apply:os.system [id]",
        "!own 1",
        "!!set {a, b}",
        "!!binary aGk=",
        ".nan",
        "[.inf]",
        "? {a: b}\n: c",
        "a: 2024-13-01",
        "\0",
        "9" * 5000,
        f"0x{'f' * 5000}",
        "1" + ":1" * 5000,
        f"!!int '{'1:' * 5000}1'",
        "!!int ''",
        "!!bool x",
        "!!timestamp x",
    ],
)
def test_what_is_not_plain_yaml_stays_text(text: str) -> None:
    assert parse_data(text, ".yaml") is NOTHING


@pytest.mark.parametrize("suffix", [".txt", "", ".jsonl", ".toml", "json"])
def test_the_name_says_what_is_data(suffix: str) -> None:
    assert parse_data("1", suffix) is NOTHING


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_what_is_too_deep_stays_text(suffix: str, start: str, end: str) -> None:
    inside = "1" if start != "[" else ""
    assert parse_data(start * MAX_DEPTH + inside + end * MAX_DEPTH, suffix) is not NOTHING
    deep = MAX_DEPTH + 1
    assert parse_data(start * deep + inside + end * deep, suffix) is NOTHING


@pytest.mark.parametrize(("suffix", "most"), [(".json", MAX_JSON_CHARACTERS), (".yaml", MAX_YAML_CHARACTERS)])
def test_what_is_too_long_stays_text(suffix: str, most: int) -> None:
    assert parse_data(f'"{"x" * (most - 2)}"', suffix) == "x" * (most - 2)
    assert parse_data(f'"{"x" * (most - 1)}"', suffix) is NOTHING


def test_a_long_text_is_no_long_number() -> None:
    text = "x" * (MAX_NUMBER_CHARACTERS + 1)
    assert parse_data(text, ".yaml") == text
    assert parse_data(f"'1{text}'", ".yaml") == f"1{text}"
    assert parse_data("1" * MAX_NUMBER_CHARACTERS, ".yaml") == int("1" * MAX_NUMBER_CHARACTERS)


PIECES = st.lists(
    st.sampled_from([*"[]{}:,-?&*!|>'\"#%@` \n01af.", "0x", "!!int ", "!!float ", "~", "true", ".inf", "<<"])
    | st.text(max_size=2),
    max_size=30,
).map("".join)


@given(PIECES)
def test_whatever_is_read_can_be_written_as_json(text: str) -> None:
    for suffix in (".json", ".yaml"):
        found = parse_data(text, suffix)
        if found is not NOTHING:
            json.dumps(found, allow_nan=False)
