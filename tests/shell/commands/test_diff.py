"""`diff` beyond the recorded cases: large files, budgets, and that the changes are correct."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult
from carrel.shell.runtime.shell import BareShell
from carrel.shell.text.line_diff import line_changes
from carrel.workspace.workspace import Workspace


def diff(top: Path, command: str, budget: Budget | None = None) -> ShellResult:
    with Workspace.open(top) as workspace:
        return BareShell(workspace, pipelines=True, budget=budget).run(command)


LINES = st.lists(st.sampled_from("abc{}"), max_size=60)


@given(old=LINES, new=LINES)
def test_the_changes_make_one_file_of_the_other(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for change in line_changes(old, new, lambda: None):
        made += old[at : change.old] + new[change.new : change.new_end]
        assert made == new[: change.new_end]
        at = change.old_end
    assert made + old[at:] == new


def test_two_large_files_that_differ_a_little_are_compared(tmp_path: Path) -> None:
    lines = [b"%d\n" % number for number in range(200_000)]
    (tmp_path / "a").write_bytes(b"".join(lines))
    lines[1000:1001] = [b"other\n"]
    del lines[150_000]
    (tmp_path / "b").write_bytes(b"".join(lines))
    expected = b"1001c1001\n< 1000\n---\n> other\n150001d150000\n< 150000\n"
    assert diff(tmp_path, "diff a b").stdout == expected


def test_files_with_nothing_in_order_are_compared_in_time(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"".join(b"%d\n" % (number * 7919 % 1709) for number in range(1709)))
    (tmp_path / "b").write_bytes(b"".join(b"%d\n" % (number * 104729 % 1709) for number in range(1709)))
    assert diff(tmp_path, "diff a b", Budget(seconds=60)).exit_code == 1


def test_files_beyond_the_memory_limit_end_the_command(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\n" * 10**6)
    (tmp_path / "b").write_bytes(b"b\n" * 10**6)
    assert diff(tmp_path, "diff a b", Budget(memory_bytes=2**20)).exit_code == 4
    assert diff(tmp_path, "diff -q a b", Budget(memory_bytes=2**20)).exit_code == 1


def test_what_two_files_took_is_given_back_for_the_next(tmp_path: Path) -> None:
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
        for number in range(20):
            content = b"%s\n" % directory.encode() * 1000
            (tmp_path / directory / str(number)).write_bytes(content)
    result = diff(tmp_path, "diff -r a b | head -n 1", Budget(memory_bytes=2**20))
    assert result.stdout == b"diff -r a/0 b/0\n"


def test_names_that_are_not_utf8_are_compared(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / os.fsdecode(b"n\xff")).write_bytes(b"1\n")
    assert diff(tmp_path, "diff a b").stdout == b"Only in a: n\xff\n"
