"""Pathname expansion."""

from __future__ import annotations

import fnmatch
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.shell.budget import Budget
from carrel.shell.language.glob import name_pattern
from carrel.shell.language.pattern import PatternSegment, matcher
from carrel.shell.runtime.shell import BareShell
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

TREE = [
    "a.txt",
    "b.txt",
    "B.txt",
    "c",
    ".hidden",
    ".x/y",
    "d/a.txt",
    "d/.h",
    "d/e/f.txt",
    "d/e/g",
    "[x]",
    "*",
]


@pytest.fixture
def shell(workspace: Workspace, directory: Path) -> BareShell:
    for name in TREE:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (directory / "link").symlink_to("d")
    return BareShell(workspace, pipelines=True)


def expanded(shell: BareShell, words: str) -> list[str]:
    (command,) = shell.analyze(f"cat {words}").commands
    return list(command[1:])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("*", ["*", "B.txt", "[x]", "a.txt", "b.txt", "c", "d", "link"]),
        ("*.txt", ["B.txt", "a.txt", "b.txt"]),
        ("?.txt", ["B.txt", "a.txt", "b.txt"]),
        ("[ab].txt", ["a.txt", "b.txt"]),
        ("[a-c]*", ["a.txt", "b.txt", "c"]),
        ("[!a-z]*.txt", ["B.txt"]),
        ("[^a-z]*.txt", ["B.txt"]),
        ("[[:upper:]]*", ["B.txt"]),
        ("[[:lower:][:digit:]].txt", ["a.txt", "b.txt"]),
        ("[]x[]*", ["[x]"]),
        (".*", [".hidden", ".x"]),
        (".h*", [".hidden"]),
        ("[.]h*", ["[.]h*"]),
        (".x/*", [".x/y"]),
        ("*/*.txt", ["d/a.txt", "link/a.txt"]),
        ("*/", ["d/", "link/"]),
        ("d/*/", ["d/e/"]),
        ("d/*", ["d/a.txt", "d/e"]),
        ("./*.txt", ["./B.txt", "./a.txt", "./b.txt"]),
        ("/workspace/[ac]*", ["/workspace/a.txt", "/workspace/c"]),
        ("**/*.txt", ["B.txt", "a.txt", "b.txt", "d/a.txt", "d/e/f.txt"]),
        ("**/**/*.txt", ["B.txt", "a.txt", "b.txt", "d/a.txt", "d/e/f.txt"]),
        ("d/**", ["d/a.txt", "d/e", "d/e/f.txt", "d/e/g"]),
        ("**/", ["d/", "d/e/", "link/"]),
        ("**/e/*", ["d/e/f.txt", "d/e/g"]),
        ("**/e/**/g", ["d/e/g"]),
        ("d/**/a.txt", ["d/a.txt"]),
        ("*/e/g", ["d/e/g", "link/e/g"]),
        ("*/missing", ["*/missing"]),
        ("*.none", ["*.none"]),
        ("c/*", ["c/*"]),
        ("missing/*", ["missing/*"]),
        ("'*'", ["*"]),
        ("\\*.txt", ["*.txt"]),
        ("'*'.txt *.'txt'", ["*.txt", "B.txt", "a.txt", "b.txt"]),
        ("'*'*", ["*"]),
        ("'*'?", ["*?"]),
        ("'[x]'*", ["[x]"]),
        ("[x]", ["[x]"]),
        ("['*']", ["*"]),
        ("[a'-'b].txt", ["a.txt", "b.txt"]),
        ("[a'-'c]", ["c"]),
        ("[a", ["[a"]),
        ("a[", ["a["]),
    ],
)
def test_patterns_match_as_in_sh(shell: BareShell, words: str, expected: list[str]) -> None:
    assert expanded(shell, words) == expected


def test_paths_come_in_the_order_of_their_bytes(workspace: Workspace, directory: Path) -> None:
    names = ["a", "B", "é", "\U0001f600", "\ufb01", "z", "a-b", "a/b"]
    for name in names[:-1]:
        (directory / name).touch()
    (Path(os.fsdecode(os.fsencode(directory) + b"/\xff"))).touch()
    found = expanded(BareShell(workspace), "*")
    assert [os.fsencode(name) for name in found] == sorted(os.fsencode(name) for name in found)
    assert "\udcff" in found


def test_a_pattern_is_relative_to_the_working_directory(shell: BareShell) -> None:
    shell.run("cd d")
    assert expanded(shell, "*") == ["a.txt", "e"]
    assert expanded(shell, "../*.txt") == ["../B.txt", "../a.txt", "../b.txt"]


def test_a_pattern_does_not_leave_the_workspace(shell: BareShell, outside: Path) -> None:
    for pattern in ("/*", f"{outside}/*", "../*", "../outside/*", "d/../../*"):
        assert shell.run(f"which {pattern}").stdout == b""
        assert expanded(shell, pattern) == [pattern]


def test_a_link_that_escapes_is_not_searched(shell: BareShell, directory: Path, outside: Path) -> None:
    (directory / "out").symlink_to(outside)
    assert expanded(shell, "out/*") == ["out/*"]
    assert expanded(shell, "**/secret") == ["**/secret"]


NAMES = st.text("ab.-]![*?", max_size=8)


@given(st.text("ab.-]![*?", max_size=8), NAMES)
def test_one_name_is_matched_as_fnmatch_does(pattern: str, name: str) -> None:
    expected = fnmatch.fnmatchcase(name, pattern)
    assert matcher([PatternSegment(pattern, False)])(name) == expected


@given(NAMES, st.text("ab.-]![*?^:\\", max_size=8))
def test_what_is_quoted_matches_only_itself(name: str, pattern: str) -> None:
    assert matcher([PatternSegment(pattern, True)])(name) == (name == pattern)
    assert matcher([PatternSegment("*", False), PatternSegment(pattern, True)])(name) == name.endswith(
        pattern
    )
    assert matcher([PatternSegment("[x", False), PatternSegment(pattern, True), PatternSegment("]", False)])(
        name
    ) == (len(name) == 1 and name in f"x{pattern}")


def test_a_backslash_quotes_in_the_pattern_of_find() -> None:
    assert name_pattern(r"\*a*")("*ab")
    assert not name_pattern(r"\*a*")("xab")
    assert name_pattern(r"[\]a]")("]")
    assert name_pattern("a\\")("a\\")


def test_many_stars_take_no_more_than_linear_time_each() -> None:
    # With a matcher that tries every way, this would not end.
    assert not matcher([PatternSegment("*a" * 200 + "b", False)])("a" * 250)
    assert not matcher([PatternSegment("*a?" * 100 + "b", False)])("a" * 250)
    assert matcher([PatternSegment("*" * 500, False)])("a" * 250)


def test_a_pattern_too_long_for_any_name_matches_nothing() -> None:
    assert matcher([PatternSegment("*" * 1024, False)])("a")
    assert not matcher([PatternSegment("*" * 1025, False)])("a")


@pytest.mark.parametrize("piece", ["[", "[a", "[]", "[!", "[a-", "*[", "[:", "]"])
def test_a_pattern_is_compiled_in_steps_linear_in_its_length(piece: str) -> None:
    few, many = compile_steps(piece * 10), compile_steps(piece * 100)
    assert many <= 12 * few


def compile_steps(pattern: str) -> int:
    """Count the lines of our code that run to compile *pattern*."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:  # as `sys.settrace` wants it
        nonlocal count
        if not frame.f_code.co_filename.endswith("pattern.py"):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        matcher([PatternSegment(pattern, False)])
    finally:
        sys.settrace(before)
    return count


def test_a_pattern_of_very_many_names_needs_no_stack(shell: BareShell) -> None:
    for pattern in ("./" * 50_000 + "*", "a/" * 50_000 + "*", "*/" * 50_000 + "*", "**/" * 50_000 + "*.txt"):
        assert len(expanded(shell, pattern)) >= 1


def test_several_double_stars_do_not_look_at_the_same_directories_again(
    workspace: Workspace, directory: Path
) -> None:
    (directory / "/".join(["a"] * 20)).mkdir(parents=True)
    shell = BareShell(workspace, budget=Budget(entries=2_000))
    result = shell.run("which -s " + "**/a/" * 10 + "x*")
    assert result.error_code is None


def test_entries_that_are_examined_are_counted(workspace: Workspace, directory: Path) -> None:
    for number in range(30):
        (directory / f"f{number}").touch()
    result = BareShell(workspace, budget=Budget(entries=20)).run("which *")
    assert (result.error_code, result.exit_code) == ("limit.entries", 4)


def test_a_directory_too_large_to_be_listed_fails_the_command(directory: Path) -> None:
    for number in range(30):
        (directory / f"f{number}").touch()
    with Workspace.open(directory, limits=Limits(list_entries=20)) as workspace:
        result = BareShell(workspace, pipelines=True).run("which * ; pwd")
    assert result.stdout == b"/workspace\n"
    assert b"20" in result.stderr
