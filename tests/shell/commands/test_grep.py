"""`grep` beyond the recorded cases: large files, long lines, special names, budgets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.shell.budget import Budget
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace

MIB = 2**20


def grep(top: Path, command: str, budget: Budget | None = None) -> tuple[bytes, int]:
    with Workspace.open(top) as workspace:
        result = BareShell(workspace, pipelines=True, budget=budget).run(command)
    return result.stdout, result.exit_code


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """Create a file of several chunks whose lines contain their numbers."""
    lines = [b"%d %s\n" % (number, b"x" * (number % 90)) for number in range(1, 60_001)]
    (tmp_path / "f").write_bytes(b"".join(lines))
    return tmp_path


@pytest.mark.parametrize("pattern", ["20000", "^20000 ", r"\(20000\) x*$", "^2000[0] "])
def test_line_numbers_are_right_beyond_the_first_chunk(numbered: Path, pattern: str) -> None:
    output, status = grep(numbered, f"grep -n '{pattern}' f")
    assert output.split(b"\n")[0].startswith(b"20000:20000 ")
    assert status == 0


def test_offsets_are_right_beyond_the_first_chunk(numbered: Path) -> None:
    output, _ = grep(numbered, "grep -b '^50000 ' f")
    offset = int(output.split(b":")[0])
    assert (numbered / "f").read_bytes()[offset:].startswith(b"50000 ")


def test_context_reaches_over_the_borders_of_chunks(numbered: Path) -> None:
    content = (numbered / "f").read_bytes()
    number = content.count(b"\n", 0, MIB) + 1
    output, _ = grep(numbered, f"grep -n -C3 '^{number} ' f")
    numbers = [int(line.replace(b":", b"-").split(b"-")[0]) for line in output.splitlines()]
    assert numbers == list(range(number - 3, number + 4))
    output, _ = grep(numbered, f"grep -h -A2000 '^{number - 1000} ' f")
    assert [int(line.split()[0]) for line in output.splitlines()] == list(range(number - 1000, number + 1001))


def test_a_line_longer_than_a_chunk_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\n" + b"x" * (3 * MIB) + b"needle" + b"y" * MIB + b"\nb\n")
    assert grep(tmp_path, "grep -c needle f") == (b"1\n", 0)
    assert grep(tmp_path, "grep -ob needle f") == (b"%d:needle\n" % (2 + 3 * MIB), 0)
    assert grep(tmp_path, "grep -cv needle f") == (b"2\n", 0)


def test_a_line_beyond_the_memory_limit_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * (4 * MIB))
    output, status = grep(tmp_path, "grep y f", Budget(memory_bytes=2 * MIB))
    assert (output, status) == (b"", 4)


def test_lines_before_a_match_are_kept_within_the_budget(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"line\n" * MIB + b"needle\n")
    output, status = grep(tmp_path, "grep -B 99999999 needle f", Budget(memory_bytes=3 * MIB))
    assert (output, status) == (b"", 4)
    output, _ = grep(tmp_path, "grep -B 300000 needle f", Budget(memory_bytes=5 * MIB))
    assert output == b"line\n" * 300_000 + b"needle\n"


def test_all_lines_are_counted_and_complemented(numbered: Path) -> None:
    assert grep(numbered, "grep -c '' f") == (b"60000\n", 0)
    assert grep(numbered, "grep -vc 7 f")[0] == b"%d\n" % sum("7" not in str(n) for n in range(1, 60_001))


def test_a_nul_in_a_later_chunk_hides_only_what_follows(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"needle\n" + b"filler\n" * (MIB // 4) + b"\0needle\n")
    with Workspace.open(tmp_path) as workspace:
        result = BareShell(workspace).run("grep needle f")
    assert (result.stdout, result.stderr) == (b"needle\n", b"grep: f: binary file matches\n")


def test_names_that_are_not_utf8_are_printed_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / os.fsdecode(b"n\xff")).write_bytes(b"needle\n")
    assert grep(tmp_path, "grep -r needle d") == (b"d/n\xff:needle\n", 0)


def test_a_pattern_that_is_not_utf8_matches_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\xffb\nab\n")
    pattern = os.fsdecode(b"a\xff")
    assert grep(tmp_path, f"grep -ac {pattern} f") == (b"1\n", 0)
    assert grep(tmp_path, f"grep -aic {pattern}. f") == (b"1\n", 0)


def test_a_rule_of_the_workspace_is_reported_and_the_rest_searched(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"needle\n")
    with Workspace.open(tmp_path) as workspace:
        result = BareShell(workspace).run("grep needle ../outside a")
    assert result.stdout == b"a:needle\n"
    assert result.exit_code == 2


def test_what_a_slow_matcher_would_take_forever_is_quick(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a" * 50_000 + b"\n")
    assert grep(tmp_path, r"grep -E '(a*)*(a*)*b' f", Budget(seconds=20)) == (b"", 1)
