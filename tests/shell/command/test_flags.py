"""Parsing of command options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.shell.command.flags import (
    NUMBER,
    HelpRequest,
    Opt,
    UsageError,
    parse_size,
    parser_of,
    whole_number,
)
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Flags:
    all: Annotated[bool, Opt("-a", "--all", help="all")] = False
    brief: Annotated[bool, Opt("-b", "--brief", "--short", help="brief")] = False
    lines: Annotated[
        int, Opt("-n", "--lines", NUMBER, metavar="NUM", help="lines", parse=whole_number("bad"))
    ] = 10
    order: Annotated[
        str, Opt("-t", const="time", help="by time"), Opt("-S", const="size", help="by size")
    ] = "name"
    include: Annotated[tuple[str, ...], Opt("--include", metavar="GLOB", help="some")] = ()
    color: Annotated[str | None, Opt("-c", "--color", metavar="[WHEN]", help="colors")] = None


def parse(*argv: str, options_first: bool = False) -> tuple[Flags, list[str]]:
    return parser_of(Flags, options_first).parse(argv)


@pytest.mark.parametrize(
    ("argv", "flags"),
    [
        (["-a"], Flags(all=True)),
        (["-ab"], Flags(all=True, brief=True)),
        (["-abn5"], Flags(all=True, brief=True, lines=5)),
        (["-n5"], Flags(lines=5)),
        (["-n", "5"], Flags(lines=5)),
        (["-an", "5"], Flags(all=True, lines=5)),
        (["--lines=5"], Flags(lines=5)),
        (["--lines", "5"], Flags(lines=5)),
        (["--li=5"], Flags(lines=5)),
        (["--al"], Flags(all=True)),
        (["--sh"], Flags(brief=True)),
        (["-7"], Flags(lines=7)),
        (["-7", "-n", "3"], Flags(lines=3)),
        (["-n", "3", "-7"], Flags(lines=7)),
        (["-t", "-S"], Flags(order="size")),
        (["-S", "-t"], Flags(order="time")),
        (["-tS"], Flags(order="size")),
        (["--include=a", "--include", "b"], Flags(include=("a", "b"))),
        (["--include="], Flags(include=("",))),
        (["--color"], Flags(color="")),
        (["--color=always"], Flags(color="always")),
        (["-c"], Flags(color="")),
        (["-calways"], Flags(color="always")),
        (["-ac"], Flags(all=True, color="")),
        (["-a", "-a"], Flags(all=True)),
    ],
)
def test_options_are_read_in_every_spelling(argv: list[str], flags: Flags) -> None:
    assert parse(*argv) == (flags, [])


@pytest.mark.parametrize(
    ("argv", "operands"),
    [
        (["x", "-a", "y"], ["x", "y"]),
        (["-a", "--", "-b"], ["-b"]),
        (["-a", "--", "--"], ["--"]),
        (["-", "-a"], ["-"]),
        (["-a", ""], [""]),
        (["--color", "x", "-a"], ["x"]),
        (["-a", "-c", "x"], ["x"]),
    ],
)
def test_operands_are_what_is_left(argv: list[str], operands: list[str]) -> None:
    flags, found = parse(*argv)
    assert flags.all
    assert found == operands


def test_the_first_operand_may_end_the_options() -> None:
    assert parse("-a", "x", "-b", "--", options_first=True) == (Flags(all=True), ["x", "-b", "--"])
    assert parse("-a", "--", "-b", options_first=True) == (Flags(all=True), ["-b"])


@pytest.mark.parametrize(
    ("argv", "message", "status", "hint"),
    [
        (["-z"], "invalid option -- 'z'", 2, True),
        (["-az"], "invalid option -- 'z'", 2, True),
        (["-é"], "invalid option -- 'é'", 2, True),
        (["--zzz"], "unrecognized option '--zzz'", 2, True),
        (["--zzz=1"], "unrecognized option '--zzz=1'", 2, True),
        (["-n"], "option requires an argument -- 'n'", 2, True),
        (["-an"], "option requires an argument -- 'n'", 2, True),
        (["--lines"], "option '--lines' requires an argument", 2, True),
        (["--li"], "option '--lines' requires an argument", 2, True),
        (["--all=1"], "option '--all' doesn't allow an argument", 2, True),
        (["--al="], "option '--all' doesn't allow an argument", 2, True),
        (["--help=1"], "option '--help' doesn't allow an argument", 2, True),
        (["-n", "x"], "bad: 'x'", 1, False),
        (["--lines=-1"], "bad: '-1'", 1, False),
    ],
)
def test_every_mistake_has_the_words_of_gnu(argv: list[str], message: str, status: int, hint: bool) -> None:
    with pytest.raises(UsageError) as caught:
        parse(*argv)
    assert (caught.value.message, caught.value.status, caught.value.hint) == (message, status, hint)


def test_a_prefix_of_several_options_is_ambiguous() -> None:
    @dataclass(frozen=True, slots=True)
    class Two:
        quiet: Annotated[bool, Opt("--quiet", help="quiet")] = False
        quick: Annotated[bool, Opt("--quick", help="quick")] = False

    with pytest.raises(UsageError) as caught:
        parser_of(Two).parse(["--qui=1"])
    assert caught.value.message == "option '--qui=1' is ambiguous; possibilities: '--quiet' '--quick'"
    assert parser_of(Two).parse(["--quie"]) == (Two(quiet=True), [])


@pytest.mark.parametrize("argv", [["--help"], ["--hel"], ["-a", "--help", "-z"], ["x", "--h"]])
def test_help_takes_precedence_over_errors(argv: list[str]) -> None:
    with pytest.raises(HelpRequest):
        parse(*argv)


def test_after_two_dashes_help_is_an_operand() -> None:
    assert parse("--", "--help") == (Flags(), ["--help"])


def test_the_rows_of_the_help_show_every_spelling() -> None:
    assert [row.spelling for row in parser_of(Flags).rows()] == [
        "-a, --all",
        "-b, --brief, --short",
        "-n, --lines=NUM, -NUM",
        "-t",
        "-S",
        "--include=GLOB",
        "-c, --color[=WHEN]",
        "--help",
    ]


def test_a_number_without_end_is_read_at_once() -> None:
    assert parse("-n", "9" * 100_000)[0].lines >= 10**39


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("7", 7),
        ("2b", 1024),
        ("1kB", 1000),
        ("1K", 1024),
        ("1k", 1024),
        ("3M", 3 * 2**20),
        ("1MiB", 2**20),
    ],
)
def test_sizes_have_the_suffixes_of_gnu(text: str, size: int) -> None:
    assert parse_size(text, "bad") == size


@pytest.mark.parametrize("text", ["x", "-1", "1x", "1KK", "1.5K", " 1", "٣"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="bad: "):
        parse_size(text, "bad")


@given(st.lists(st.text("-ablnc=5t ", max_size=8), max_size=6))
def test_any_arguments_are_read_or_refused(argv: list[str]) -> None:
    try:
        flags, operands = parse(*argv)
    except (UsageError, HelpRequest):
        return
    assert isinstance(flags, Flags)
    assert all(operand in argv for operand in operands)


def test_a_wrong_option_has_status_two_and_a_hint(workspace: Workspace) -> None:
    result = BareShell(workspace).run("head -y")
    assert result.exit_code == 2
    assert result.stderr == b"head: invalid option -- 'y'\nTry 'head --help' for more information.\n"


def test_help_is_printed_and_nothing_else_is_done(workspace: Workspace) -> None:
    result = BareShell(workspace).run("head --help missing")
    assert (result.exit_code, result.stderr) == (0, b"")
    assert result.stdout.startswith(b"Usage: head [OPTION]... [FILE]...\nPrint the first part of files.\n")
    assert b"--lines" in result.stdout


@pytest.mark.parametrize("command", ["exit", "set", "help", "workspace", "python"])
def test_commands_that_read_their_own_arguments_have_help_too(workspace: Workspace, command: str) -> None:
    result = BareShell(workspace).run(f"{command} --help")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: {command} ".encode())
