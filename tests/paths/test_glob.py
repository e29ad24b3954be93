"""Globs: what they match, what they refuse, and that they never take long."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import PatternError
from carrel.paths.glob import PATTERN_CHARACTERS, Pattern
from tests.paths.settings import repeatable
from tests.requirements import requirement


@requirement("L-05", "L-06", "L-07", "L-08")
@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.txt", "file.txt", True),
        ("file.*", "file.txt", True),
        ("*.py", "test.py", True),
        ("*.txt", "file.py", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("*", "anything", True),
        ("*", ".hidden", True),
        ("", "", None),
        # without a slash: the name, at any depth
        ("*.py", "lib/tests/test_helper.py", True),
        ("helper.py", "lib/helper.py", True),
        ("lib", "lib/helper.py", False),
        ("*.json", "data.txt", False),
        # with a slash: the whole path
        ("lib/*.py", "lib/helper.py", True),
        ("lib/*.py", "lib/tests/test.py", False),
        ("lib/*.py", "other/lib/helper.py", False),
        ("./main.py", "main.py", True),
        ("./main.py", "lib/main.py", False),
        ("lib/", "lib", True),
        ("lib//helper.py", "lib/helper.py", True),
        ("lib\\*.py", "lib/helper.py", True),
        ("*/*", "a/b", True),
        ("*/*", "a/b/c", False),
        # any number of names
        ("**/*.py", "main.py", True),
        ("**/*.py", "lib/helper.py", True),
        ("**/*.py", "lib/tests/test_helper.py", True),
        ("**", "a/b/c", True),
        ("**", "a", True),
        ("src/**", "src/a/b", True),
        ("src/**", "other/a", False),
        ("src/**/test_*.py", "src/test_a.py", True),
        ("src/**/test_*.py", "src/a/b/test_a.py", True),
        ("src/**/test_*.py", "src/a/b/a.py", False),
        ("**/a/**/b/**", "x/a/y/b/z", True),
        ("**/a/**/b/**", "x/b/y/a/z", False),
        ("a/**/b/**/a", "a/b/b/a/b/a", True),
        ("a**b", "axyzb", True),
        ("a**b", "x/ab", True),
        ("***", "a", True),
        # sets
        ("[ab].py", "a.py", True),
        ("[ab].py", "c.py", False),
        ("[!ab].py", "c.py", True),
        ("[!ab].py", "a.py", False),
        ("[a-c]", "b", True),
        ("[a-c]", "d", False),
        ("[]]", "]", True),
        ("[!]]", "a", True),
        ("[!]]", "]", False),
        ("[-a]", "-", True),
        ("[", "[", True),
        ("[ab", "[ab", True),
        ("x[", "x[", True),
        ("[z-a]", "m", False),
        # nothing else means anything
        ("a.c", "abc", False),
        ("a+", "aa", False),
        ("(a|b)", "a", False),
        ("(a|b)", "(a|b)", True),
        ("^a$", "a", False),
        ("{a,b}", "a", False),
        ("A", "a", False),
        ("é", "é", True),
        ("?", "世", True),
        ("a*", "a\nb", True),
        ("a", "a\n", False),
    ],
)
def test_a_pattern_matches_or_not(pattern: str, path: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(PatternError):
            Pattern(pattern)
    else:
        assert Pattern(pattern).matches(path) is expected


@requirement("P-18")
@pytest.mark.parametrize(
    "pattern",
    [
        "../s2/*",
        "..",
        "a/../b",
        "a/..",
        "..\\x",
        "**/..",
        "",
        ".",
        "/",
        "./.",
        "/etc/*",
        "\\etc\\*",
        "a\0b",
        "x" * (PATTERN_CHARACTERS + 1),
    ],
    ids=lambda pattern: repr(pattern)[:20],
)
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError) as caught:
        Pattern(pattern)
    assert caught.value.code == "pattern.invalid"
    assert isinstance(caught.value, ValueError)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("pattern", ["...", "a..b", "..a", "**/...", "x" * PATTERN_CHARACTERS])
def test_dots_in_a_name_and_long_patterns_are_fine(pattern: str) -> None:
    assert Pattern(pattern).matches(pattern.replace("**/", ""))


@pytest.mark.parametrize("pattern", [b"*", None, 1])
def test_a_pattern_is_text(pattern: object) -> None:
    with pytest.raises(TypeError):
        Pattern(pattern)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    ("pattern", "parent"),
    [
        ("*.py", ()),
        ("main.py", ()),
        ("lib/*.py", ("lib",)),
        ("lib/tests/a.py", ("lib", "tests")),
        ("./lib//x", ("lib",)),
        ("lib/*/deep/x", ("lib",)),
        ("**/x", ()),
        ("[ab]/x", ()),
    ],
)
def test_the_names_before_any_magic_tell_where_to_begin(pattern: str, parent: tuple[str, ...]) -> None:
    assert Pattern(pattern).literal_parent == parent


# Time


@pytest.mark.timeout(20)
@pytest.mark.parametrize("anchor", ["", "d/"])
def test_many_stars_take_no_longer_than_few(anchor: str) -> None:
    pattern = Pattern(anchor + "a*" * 500 + "b")
    assert not pattern.matches(anchor + "a" * 255)
    assert not pattern.matches(anchor + "a" * 4000)
    assert Pattern(anchor + "*a*a*a*a*a*a*a*a*a*ab").matches(anchor + "a" * 4000 + "b")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["**/a/", "**/*/", "**/a*/", "**/?*?/"])
def test_many_double_stars_take_no_longer_than_few(part: str) -> None:
    pattern = Pattern(part * (900 // len(part)) + "b")
    assert not pattern.matches("a/" * 2_000 + "a")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "pattern", ["[" * 1024, "[a" * 512, "[!" * 512, "?*" * 512, "*?" * 512, "[]-a]*" * 170]
)
def test_no_pattern_takes_long_to_compile_or_match(pattern: str) -> None:
    Pattern(pattern).matches("a" * 4000)


# The same as the plainest matcher there is


@repeatable
@given(
    st.lists(
        st.sampled_from(["a", "b", "*", "?", "**", "/", "/**/", "[ab]", "[!a]", "[a-b]", "."]),
        min_size=1,
        max_size=9,
    ).map("".join),
    st.lists(st.text("abc.", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join),
)
def test_a_pattern_means_what_the_plainest_matcher_says(pattern: str, path: str) -> None:
    try:
        compiled = Pattern(pattern)
    except PatternError:
        return
    assert compiled.matches(path) == reference(pattern, path)


def reference(pattern: str, path: str) -> bool:
    """Match by trying everything."""
    parts = tuple(part for part in pattern.split("/") if part not in ("", "."))
    if "/" not in pattern and parts != ("**",):
        return _name_matches(pattern, path.rpartition("/")[2])
    return _path_matches(parts, tuple(path.split("/")))


@cache
def _path_matches(parts: tuple[str, ...], names: tuple[str, ...]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        return any(_path_matches(parts[1:], names[skip:]) for skip in range(len(names) + 1))
    return bool(names) and _name_matches(parts[0], names[0]) and _path_matches(parts[1:], names[1:])


@cache
def _name_matches(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_name_matches(pattern[1:], name[skip:]) for skip in range(len(name) + 1))
    for text, matched in (("[ab]", "ab"), ("[!a]", "bc."), ("[a-b]", "ab"), ("?", "abc.")):
        if pattern.startswith(text):
            return name[:1] in tuple(matched) and _name_matches(pattern[len(text) :], name[1:])
    return name[:1] == pattern[0] and _name_matches(pattern[1:], name[1:])


@repeatable
@given(st.text("ab*?[]!-^/\\.&~|", max_size=30) | st.text(max_size=30), st.text(max_size=20))
def test_any_text_is_a_pattern_or_refused_as_one(pattern: str, path: str) -> None:
    try:
        compiled = Pattern(pattern)
    except PatternError:
        return
    assert compiled.matches(path) in (True, False)


@repeatable
@given(st.lists(st.text("abc ._-", min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_path_without_magic_matches_itself(parts: list[str]) -> None:
    names = [part if part not in (".", "..") else "x" for part in parts]
    path = "/".join(names)
    assert Pattern("./" + path).matches(path)
    assert Pattern("**/" + path).matches("deep/er/" + path)
    assert Pattern(names[-1]).matches(path)


@repeatable
@given(
    st.lists(st.sampled_from(["a", "b", "*", "?", "a*", "**"]), min_size=1, max_size=4),
    st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=4),
)
def test_a_path_that_matches_has_a_name_that_may(parts: list[str], names: list[str]) -> None:
    pattern = Pattern("/".join(parts))
    if pattern.matches("/".join(names)):
        assert pattern.matches_name(names[-1])


@pytest.mark.parametrize(("pattern", "name"), [("*.py", "a.txt"), ("src/**/*.py", "a.txt"), ("a/b", "a")])
def test_a_name_rules_a_pattern_out(pattern: str, name: str) -> None:
    assert not Pattern(pattern).matches_name(name)
    assert Pattern("src/**").matches_name(name)
