"""Expansion of words into arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.shell.budget import Budget
from carrel.shell.runtime.shell import BareShell
from carrel.shell.state import MAX_VARIABLES_CHARACTERS
from carrel.workspace.workspace import Workspace

VARIABLES = {"A": "x", "SPACED": " a  b\t", "EMPTY": "", "STAR": "*.txt", "TWO": "1 2"}


@pytest.fixture
def shell(workspace: Workspace) -> BareShell:
    return BareShell(workspace, pipelines=True, env=VARIABLES)


def arguments(shell: BareShell, words: str) -> list[str]:
    """Return the expansion of *words*."""
    (command,) = shell.analyze(f"cat {words}").commands
    return list(command[1:])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("$A", ["x"]),
        ("${A}y$A", ["xyx"]),
        ('"$A y"', ["x y"]),
        ("'$A'", ["$A"]),
        ("\\$A", ["$A"]),
        ("$NONE", []),
        ('"$NONE"', [""]),
        ('""$NONE', [""]),
        ("$NONE''", [""]),
        ("$EMPTY a", ["a"]),
        ("$SPACED", ["a", "b"]),
        ('"$SPACED"', [" a  b\t"]),
        ("x$SPACED", ["x", "a", "b"]),
        ("${SPACED}x", ["a", "b", "x"]),
        ("x${SPACED}y", ["x", "a", "b", "y"]),
        ("${TWO}$TWO", ["1", "21", "2"]),
        ('""$SPACED', ["", "a", "b"]),
        ('"$TWO"$TWO', ["1 21", "2"]),
        ("$?", ["0"]),
        ("~", ["/workspace"]),
        ("~/a", ["/workspace/a"]),
        ("'~'", ["~"]),
        ("\\~", ["~"]),
        ('~"/a"', ["~/a"]),
        ("~root", ["~root"]),
        ("a~ a/~", ["a~", "a/~"]),
        ("~$A", ["~x"]),
        ('~/"a b"', ["/workspace/a b"]),
        ("a=~/b", ["a=~/b"]),
        ("$'a\\tb'", ["a\tb"]),
        ("{a,b}", ["a", "b"]),
    ],
)
def test_a_word_is_expanded_as_in_sh(shell: BareShell, words: str, expected: list[str]) -> None:
    assert arguments(shell, words) == expected


def test_the_value_of_an_unquoted_variable_is_a_pattern(shell: BareShell, directory: Path) -> None:
    (directory / "a.txt").touch()
    assert arguments(shell, "$STAR") == ["a.txt"]
    assert arguments(shell, '"$STAR"') == ["*.txt"]


def test_a_pattern_may_follow_the_tilde(shell: BareShell, directory: Path) -> None:
    (directory / "a.txt").touch()
    assert arguments(shell, "~/*.txt") == ["/workspace/a.txt"]


def test_the_value_of_home_is_not_a_pattern(workspace: Workspace, directory: Path) -> None:
    (directory / "ab").touch()
    shell = BareShell(workspace, env={"HOME": "a*"})
    assert arguments(shell, "~") == ["a*"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("V=1", "1"),
        ("V=", ""),
        ("V=$SPACED", " a  b\t"),
        ("V=~", "/workspace"),
        ("V=~/a", "/workspace/a"),
        ("V='~/a'", "~/a"),
        ('V=a"b c"d', "ab cd"),
        ("V=*", "*"),
        ("V=1 V=2", "2"),
        ("W=1 V=$W$W", "11"),
        ("V=1; V=$V$V", "11"),
        ("$NONE V=1", "not set"),
        ("V=1 $NONE", "1"),
        ("V=1 pwd", "not set"),
        ("V=0; V=1 pwd", "0"),
    ],
)
def test_assignments_last_only_without_a_command(shell: BareShell, line: str, value: str) -> None:
    shell.run("V='not set'")
    shell.run(line)
    assert arguments(shell, '"$V"') == [value]


def test_an_assignment_before_a_command_is_given_to_it_alone(shell: BareShell) -> None:
    assert b"\nV=1\n" in shell.run("V=1 env").stdout
    assert b"\nV=1\n" not in shell.run("env").stdout


def test_the_words_of_a_command_do_not_see_its_own_assignments(shell: BareShell) -> None:
    assert shell.run("A=new env B=$A").stdout.count(b"B=x\n") == 1


def test_a_variable_that_is_only_set_is_not_given_to_commands(shell: BareShell) -> None:
    shell.run("V=1")
    assert b"V=1\n" not in shell.run("env").stdout
    shell.run("export V")
    assert b"V=1\n" in shell.run("env").stdout


def test_the_status_of_the_last_command_is_a_variable(shell: BareShell) -> None:
    shell.run("cat missing")
    assert arguments(shell, "$?") == ["1"]
    assert shell.run("cat missing; env S=$?").stdout.count(b"\nS=1\n") == 1


def test_variables_cannot_grow_for_ever(shell: BareShell) -> None:
    result = shell.run("V=x;" + "V=$V$V;" * 60)
    assert result.exit_code == 1
    assert b"variables would take" in result.stderr
    assert len(arguments(shell, '"$V"')[0]) <= MAX_VARIABLES_CHARACTERS
    exported = shell.run("export A$V=1")
    assert exported.exit_code == 1
    assert shell.run("env B$V=1").exit_code == 1


def test_many_variables_together_are_limited_too(shell: BareShell) -> None:
    shell.run("V=x;" + "V=$V$V;" * 18)
    results = [shell.run(f"V{number}=${{V}}x") for number in range(8)]
    assert [result.exit_code for result in results] == [0, 0, 1, 1, 1, 1, 1, 1]


def test_a_huge_word_is_stopped_before_it_is_assembled(shell: BareShell) -> None:
    shell.run("V=x;" + "V=$V$V;" * 18)
    result = shell.run("cat " + "$V" * 50_000, budget=Budget(memory_bytes=2**24))
    assert (result.error_code, result.exit_code) == ("limit.memory_bytes", 4)


def test_memory_of_one_command_is_available_to_the_next(shell: BareShell) -> None:
    shell.run("V=x;" + "V=$V$V;" * 10)
    budget = Budget(memory_bytes=3_000)
    assert shell.run("W=$V$V; W=$V$V; which -s $V$V; which -s $V$V", budget=budget).error_code is None
    assert shell.run("W=$V$V$V", budget=budget).error_code == "limit.memory_bytes"
