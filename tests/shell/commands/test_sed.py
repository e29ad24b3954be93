"""`sed` beyond the recorded cases: endless loops, growing lines, large files."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.shell.budget import Budget
from carrel.shell.command.flags import parser_of
from carrel.shell.commands.sed.command import Flags, accesses
from carrel.shell.result import ShellResult
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace


def sed(top: Path, command: str, budget: Budget | None = None) -> ShellResult:
    with Workspace.open(top) as workspace:
        return BareShell(workspace, pipelines=True, budget=budget).run(command)


@pytest.mark.parametrize("script", [":a;ba", ":a;s/x/x/;ta", "s/$/\\n/;D", "G;D"])
def test_a_loop_without_end_is_stopped(tmp_path: Path, script: str) -> None:
    (tmp_path / "f").write_bytes(b"x\n")
    result = sed(tmp_path, f"sed '{script}' f", Budget(seconds=0.2))
    assert result.exit_code == 124


@pytest.mark.parametrize("script", [":a;s/x/xx/g;ba", ":a;s/.*/&&/;ba", ":a;H;G;ba", ":a;G;h;ba"])
def test_a_line_that_grows_without_end_is_stopped(tmp_path: Path, script: str) -> None:
    (tmp_path / "f").write_bytes(b"x\n")
    result = sed(tmp_path, f"sed '{script}' f", Budget(memory_bytes=8 * 2**20, seconds=20))
    assert result.exit_code == 4


def test_joining_all_lines_takes_linear_time(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"line\n" * 100_000)
    result = sed(tmp_path, r"sed ':a;N;$!ba;s/\n/,/g' f", Budget(seconds=20))
    assert result.stdout == b",".join([b"line"] * 100_000) + b"\n"


def test_a_file_edited_in_place_stays_as_it_was_if_the_command_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x\n" * 10)
    result = sed(tmp_path, "sed -i '5{:a;ba}' f", Budget(seconds=0.2))
    assert result.exit_code == 124
    assert (tmp_path / "f").read_bytes() == b"x\n" * 10
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_large_file_is_edited_in_place(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old line\n" * 50_000)
    assert sed(tmp_path, "sed -i s/old/new/ f").exit_code == 0
    assert (tmp_path / "f").read_bytes() == b"new line\n" * 50_000


def test_bytes_that_are_not_utf8_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\xffb\n")
    assert sed(tmp_path, "sed 's/b/c/;y/a/A/;s/A/\\U&x/' f").stdout == b"AX\xffc\n"


def test_what_a_script_would_read_and_write_is_known_before(tmp_path: Path) -> None:
    flags, operands = parser_of(Flags).parse(["-i.old", "1r extra", "f"])
    assert [(touch.access.value, touch.operand) for touch in accesses(flags, operands)] == [
        ("read", "extra"),
        ("read", "f"),
        ("write", "f"),
        ("write", "f.old"),
    ]
