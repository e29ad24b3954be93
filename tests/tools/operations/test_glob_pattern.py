"""Glob patterns with braces."""

from __future__ import annotations

import tracemalloc

import pytest

from carrel.errors import LimitError, PatternError
from carrel.tools.operations.glob_pattern import GlobPattern, compile_patterns


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.{ts,tsx}", "src/a.tsx", True),
        ("*.{ts,tsx}", "src/a.js", False),
        ("src/**/*.{c,h}", "src/deep/er/a.h", True),
        ("src/**/*.{c,h}", "lib/a.h", False),
        ("{src,lib}/*.py", "lib/a.py", True),
        ("f{1..3}.txt", "f2.txt", True),
        ("f{1..3}.txt", "f4.txt", False),
        ("{alone}", "{alone}", True),
        ("*.txt", "a/b.txt", True),
    ],
)
def test_braces_stand_for_each_of_their_parts(pattern: str, path: str, matches: bool) -> None:
    assert GlobPattern(pattern).matches(path) is matches


def test_it_is_about_names_only_if_all_parts_are() -> None:
    assert GlobPattern("*.{a,b}").anywhere
    assert not GlobPattern("{*.a,b/*}").anywhere


@pytest.mark.parametrize(
    "pattern",
    [
        "{1..1000}",
        "{1..999999}",
        "{a,b}" * 20,
        "{a," * 30 + "}" * 30,
        "{,}",
        "{a,../b}",
        "{" * 2000,
        "{a,b}" * 5 + "x*" * 490,
    ],
)
def test_what_is_not_a_pattern_or_stands_for_too_many_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        GlobPattern(pattern)


def test_braces_that_stand_for_too_many_are_not_spelled_out() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(PatternError):
            GlobPattern("{a,b}" * 13 + "x" * 900)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**21


def test_patterns_are_compiled_only_while_there_is_time() -> None:
    checks = iter((None, None, LimitError("time", limit=1, asked=None, message="late")))

    def check() -> None:
        if (error := next(checks)) is not None:
            raise error

    with pytest.raises(LimitError):
        compile_patterns(["a", "b", "c", "d"], check)
    assert list(checks) == []
