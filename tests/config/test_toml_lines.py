"""The line of every key is known, however the file is written."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carrel.config.kind import KeyPath
from carrel.config.toml_lines import TomlLines

DOCUMENT = '''\
# [fake]
top = 1  # top2 = 2
dotted.inner . deep = """
fake = 1
[[fake]]
"""

[session]  # [fake]
"quoted key" = 'fake = "1"'
'li"teral' = "a # b"
ttl_seconds = 5

[workspace]
root = \'\'\'
[fake]
\'\'\'\'
[[workspace.allow]]
path = "/a"
[[ workspace . "allow" ]]

mode = "rw"
[workspace.allow.more]
x = [ # one
  1.5,
  { y = 2, z.w = [
    3, ] },
]
[[workspace.allow]]
[a.b.c]
"esc\\u0061pe\\"d" = ""
last = {}'''

LINES: dict[KeyPath, int] = {
    ("top",): 2,
    ("dotted",): 3,
    ("dotted", "inner"): 3,
    ("dotted", "inner", "deep"): 3,
    ("session",): 8,
    ("session", "quoted key"): 9,
    ("session", 'li"teral'): 10,
    ("session", "ttl_seconds"): 11,
    ("workspace",): 13,
    ("workspace", "root"): 14,
    ("workspace", "allow"): 17,
    ("workspace", "allow", 0): 17,
    ("workspace", "allow", 0, "path"): 18,
    ("workspace", "allow", 1): 19,
    ("workspace", "allow", 1, "mode"): 21,
    ("workspace", "allow", 1, "more"): 22,
    ("workspace", "allow", 1, "more", "x"): 23,
    ("workspace", "allow", 1, "more", "x", 0): 24,
    ("workspace", "allow", 1, "more", "x", 1): 25,
    ("workspace", "allow", 1, "more", "x", 1, "y"): 25,
    ("workspace", "allow", 1, "more", "x", 1, "z"): 25,
    ("workspace", "allow", 1, "more", "x", 1, "z", "w"): 25,
    ("workspace", "allow", 1, "more", "x", 1, "z", "w", 0): 26,
    ("workspace", "allow", 2): 28,
    ("a",): 29,
    ("a", "b"): 29,
    ("a", "b", "c"): 29,
    ("a", "b", "c", 'escape"d'): 30,
    ("a", "b", "c", "last"): 31,
}


def places(value: object, place: KeyPath = ()) -> Iterator[KeyPath]:
    """Every place in a document."""
    inner: Iterator[tuple[str | int, object]] = iter(())
    if isinstance(value, dict):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    for name, each in inner:
        yield (*place, name)
        yield from places(each, (*place, name))


def test_every_key_has_the_line_on_which_it_stands() -> None:
    assert TomlLines(DOCUMENT).found == LINES
    assert set(places(tomllib.loads(DOCUMENT))) == set(LINES)


def test_windows_line_ends_change_nothing() -> None:
    assert TomlLines(DOCUMENT.replace("\n", "\r\n")).found == LINES


@pytest.mark.parametrize(
    ("place", "line"), [(("session", "missing"), 2), (("missing",), 1), ((), 1), (("session", "a", 3), 3)]
)
def test_a_place_that_is_not_there_has_the_line_of_what_is_around_it(place: KeyPath, line: int) -> None:
    assert TomlLines("\n[session]\na = [1]").of(place) == line


NAMES = st.sampled_from(["a", "b", "a.b", '"a"', "'b.c'", '"\\u0061 "', "a . b"])
SCALARS = st.sampled_from(
    [
        "1",
        "1.5",
        "true",
        "1979-05-27 07:32:00Z",
        "''",
        '""',
        '"""\nk = 1\n[x]"""',
        '"""""x"""""',
        "'''''x''''",
        *['"\\"#"', "'#['", "'''\n\\'''", '"""\\""""', "0xff", "-inf", "07:32:00"],
    ]
)
SPACES = st.sampled_from(["", " ", "\n", " # ] } , [x]\n", "\n\n"])


def _list(items: list[str], space: str) -> str:
    return "[" + space + f"{space},{space}".join(items) + (f",{space}" if items and space else "") + "]"


def _table(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{name} = {value}" for name, value in pairs) + "}"


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(_list, st.lists(inner, max_size=3), SPACES),
        st.builds(_table, st.lists(st.tuples(NAMES, inner), max_size=3)),
    ),
    max_leaves=6,
)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, NAMES, VALUES),
    st.builds("[{}]".format, NAMES),
    st.builds("[[{}]]".format, NAMES),
    st.just("# [a] = 'b'"),
    st.just(""),
)


@given(st.lists(STATEMENTS, max_size=8).map("\n".join))
def test_whatever_the_parser_finds_has_a_line(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    found = TomlLines(text).found
    assert set(found) == set(places(document))
    assert all(1 <= line <= text.count("\n") + 1 for line in found.values())


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=6))
def test_a_key_after_anything_has_its_own_line(values: list[tuple[str, bool]]) -> None:
    text, wanted = "", {}
    table: KeyPath = ()
    for number, (value, opens) in enumerate(values):
        if opens:
            text += f"[t{number}]\n"
            table = (f"t{number}",)
        wanted[*table, f"k{number}"] = text.count("\n") + 1
        text += f"k{number} = {value}\n"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    lines = TomlLines(text)
    assert {place: lines.of(place) for place in wanted} == wanted
