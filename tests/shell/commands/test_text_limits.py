"""Memory use and limits of the text commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.shell.budget import STATUS_LIMIT, Budget
from carrel.shell.runtime.shell import BareShell
from carrel.values import MIB, Limits
from carrel.workspace.workspace import Workspace

LITTLE = Budget(memory_bytes=2 * MIB)
LINES = b"some words of a line\n" * 266_000
"""Some 5.3 MiB."""


def shell_in(directory: Path, limits: Limits | None = None) -> BareShell:
    return BareShell(Workspace.open(directory, limits=limits), pipelines=True)


@pytest.mark.parametrize(
    "command",
    [
        "cat -n big",
        "head -n 66000 big",
        "head -n -5 big",
        "tail -n 5 big",
        "tail -n 200000 big",
        "tail -n +5 big",
        "tail -c 2000000 big",
        "tac big",
        "wc big",
        "uniq -c big",
        "cut -d ' ' -f 2 big",
        "nl big",
        "tr a-z A-Z < big",
        "sort -c big",
        "sort -m big big",
        "cat big | tail -n 5",
        "cat big | head -n -5",
        "cat big | tee copy",
        "xargs -n 1000 echo < big",
    ],
)
def test_a_large_file_is_never_in_memory_as_a_whole(command: str, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(LINES)
    result = shell_in(tmp_path).run(f"{command} > out", budget=LITTLE)
    assert result.stderr == b""
    assert result.exit_code == 0


@pytest.mark.parametrize(
    "command", ["sort big", "cat big | tac", "cat big | tail -n 200000", "head -n -200000 big"]
)
def test_what_must_be_kept_is_charged(command: str, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(LINES)
    result = shell_in(tmp_path).run(f"{command} > out", budget=LITTLE)
    assert result.error_code == "limit.memory_bytes"
    assert result.exit_code == STATUS_LIMIT


@pytest.mark.parametrize("command", ["cat -n", "sort", "cut -f 1", "nl", "uniq", "tac", "xargs", "wc -L"])
def test_a_line_without_an_end_is_charged_or_not_kept(command: str, tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * 8 * MIB)
    result = shell_in(tmp_path).run(f"{command} < long > out", budget=LITTLE)
    assert result.error_code in ("limit.memory_bytes", None)
    assert result.error_code is not None or command == "wc -L"


def test_the_end_of_a_huge_file_is_read_alone(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(2**40)
        huge.seek(2**40)
        huge.write(b"\nlast\n")
    shell = shell_in(tmp_path)
    assert shell.run("tail -n 1 huge").stdout == b"last\n"
    assert shell.run("tail -c 5 huge").stdout == b"last\n"
    assert shell.run("wc -c huge").stdout == b"%d huge\n" % (2**40 + 6)


def test_numbers_without_end_are_cut_off(tmp_path: Path) -> None:
    result = shell_in(tmp_path).run("seq inf", budget=Budget(output_bytes=1000))
    assert result.error_code == "limit.output_bytes"
    assert result.truncated
    assert len(result.stdout) == 1000


def test_a_format_that_is_used_again_and_again_ends_with_the_output(tmp_path: Path) -> None:
    words = " ".join(["1"] * 20_000)
    command = f"printf '%1000000d' {words}"
    result = shell_in(tmp_path).run(command, budget=Budget(output_bytes=3_000_000))
    assert result.error_code == "limit.output_bytes"


def test_commands_that_run_one_another_end(tmp_path: Path) -> None:
    result = shell_in(tmp_path).run("xargs " * 1000, stdin=b"a\n")
    assert b"commands are nested more than" in result.stderr
    assert result.exit_code == 123


def test_a_file_that_is_full_keeps_tee_from_no_other(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"x" * 90)
    shell = shell_in(tmp_path, Limits(file_bytes=100))
    result = shell.run("tee -a old new", stdin=b"y" * 50)
    assert result.exit_code == 1
    assert result.stdout == b"y" * 50
    assert b"old" in result.stderr
    assert (tmp_path / "old").read_bytes() == b"x" * 90


def test_sort_leaves_its_output_alone_if_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"b\na\n" * 20)
    (tmp_path / "out").write_bytes(b"old")
    shell = shell_in(tmp_path, Limits(file_bytes=50))
    assert shell.run("sort lines -o out").exit_code == 2
    assert (tmp_path / "out").read_bytes() == b"old"


def test_names_and_texts_that_are_not_utf_8_come_back_as_they_were(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        shell = BareShell(workspace, pipelines=True)
        shell.run(r"echo x > $'a\xff'")
        assert shell.run("wc -l *").stdout == b"1 a\xff\n"
        assert shell.run("head -v *").stdout == b"==> a\xff <==\nx\n"
        assert shell.run("basename /x/*").stdout == b"*\n"
        assert shell.run("echo *").stdout == b"a\xff\n"
        assert shell.run("xargs cat", stdin=b"a\xff\n").stdout == b"x\n"
        assert shell.run(r"tr $'\xff' y", stdin=b"\xff\n").stdout == b"y\n"
        assert shell.run(r"printf '%s %q' $'\xff' $'\xff'").stdout == rb"%b $'\377'" % b"\xff"


@pytest.mark.parametrize(
    "command",
    [
        "tr " + "'" + "[:" * 60_000 + "' x",
        "tr -d " + "'" + "[:digit:]" * 13_000 + "'",
        "tr " + "'" + "[a*" * 40_000 + "' x",
        "cut -f " + ",".join(map(str, range(1, 30_000))) + " -d x",
        "sort -k 1,1 -t x",
        "sort -V",
        "printf " + "%" * 120_000,
        "echo -e " + "'" + "\\\\" * 100_000 + "'",
        "tac -s ab",
        "xargs -d x echo",
    ],
)
def test_no_argument_takes_more_than_linear_time(command: str, tmp_path: Path) -> None:
    stdin = b".a" * 100_000 + b"\n"
    result = shell_in(tmp_path).run(f"{command} > out", stdin=stdin, budget=Budget(seconds=10))
    assert result.error_code is None
