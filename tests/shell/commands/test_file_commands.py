"""File commands beyond the recorded cases: special names, limits, rules, times, links that escape."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.shell.budget import Budget
from carrel.shell.command.flags import parser_of
from carrel.shell.command.table import COMMANDS
from carrel.shell.result import ShellResult
from carrel.shell.runtime.shell import BareShell
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

FILE_COMMANDS = (
    "cp", "du", "find", "ls", "mkdir", "mv", "realpath", "rm", "rmdir", "stat", "test", "touch", "tree",
)  # fmt: skip
ODD = b"odd \xff\xfe name\n"
NOW_NS = 1_717_243_200 * 10**9
"""Noon on 1 June 2024."""
DAY_NS = 86_400 * 10**9

Run = Callable[[str], ShellResult]


@pytest.fixture
def top(tmp_path: Path) -> Path:
    path = tmp_path / "ws"
    path.mkdir()
    return path


@pytest.fixture
def run(top: Path) -> Iterator[Run]:
    with Workspace.open(top) as workspace:
        yield BareShell(workspace, pipelines=True).run


def run_with(top: Path, line: str, **options: object) -> ShellResult:
    """Run one line in a workspace opened with other options."""
    with Workspace.open(top, **options) as workspace:  # type: ignore[arg-type]  # any of its options
        return BareShell(workspace, pipelines=True).run(line)


# Odd names


def test_names_that_are_not_utf8_come_out_as_they_are(top: Path, run: Run) -> None:
    (top / os.fsdecode(ODD)).write_bytes(b"content")

    assert run("ls").stdout == ODD + b"\n"
    assert run("find -type f -print0").stdout == b"./" + ODD + b"\0"
    assert run("stat -c %n odd*").stdout == ODD + b"\n"
    assert run("ls -b").stdout == b"odd\\ \\377\\376\\ name\\n\n"
    assert ODD in run("tree").stdout
    assert run("du -b odd*").stdout == b"7\t" + ODD + b"\n"


def test_names_that_are_not_utf8_can_be_copied_moved_and_removed(top: Path, run: Run) -> None:
    (top / os.fsdecode(ODD)).write_bytes(b"content")

    assert run("mkdir d && cp odd* d && cp -r d e && mv odd* e/moved").exit_code == 0
    assert os.listdir(os.fsencode(top / "d")) == [ODD]
    assert sorted(os.listdir(os.fsencode(top / "e"))) == [b"moved", ODD]
    assert run("rm -r d e/odd*").exit_code == 0
    assert os.listdir(top / "e") == ["moved"]


def test_a_name_in_a_message_can_be_pasted(top: Path, run: Run) -> None:
    (top / "it's").mkdir()

    assert run('rm "it\'s"').stderr == b'rm: cannot remove "it\'s": Is a directory\n'
    assert run("ls 'a\nb'").stderr == b"ls: cannot access 'a'$'\\n''b': No such file or directory\n"


def test_names_from_a_directory_are_good_for_the_next_command(top: Path, run: Run) -> None:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/f").write_text("found\n")

    with Workspace.open(top) as workspace:
        shell = BareShell(workspace)
        shell._state.cwd = "/workspace/a"  # `cd` is another command's business
        for name in (b"b/f", b"./b/f", b"../a/b/f"):
            start = os.fsdecode(os.path.dirname(os.path.dirname(name)) or b"b")
            path = shell.run(f"find {start} -name f").stdout.rstrip(b"\n")
            assert path == name
            assert shell.run(f"cat {os.fsdecode(path)}").stdout == b"found\n"


# Times


def test_a_long_listing_shows_the_time_of_what_is_recent_and_the_year_of_the_rest(top: Path) -> None:
    for name, when in (("new", NOW_NS - DAY_NS), ("old", NOW_NS - 200 * DAY_NS), ("later", NOW_NS + DAY_NS)):
        (top / name).write_bytes(b"")
        os.utime(top / name, ns=(when, when))

    result = run_with(top, "ls -l later new old", clock=lambda: NOW_NS)

    assert result.stdout.splitlines() == [
        b"-rw-r--r-- 1 root root 0 Jun  2  2024 later",
        b"-rw-r--r-- 1 root root 0 May 31 12:00 new",
        b"-rw-r--r-- 1 root root 0 Nov 14  2023 old",
    ]


def test_touch_takes_the_time_from_the_clock_of_the_workspace(top: Path) -> None:
    (top / "f").write_bytes(b"")

    assert run_with(top, "touch f", clock=lambda: NOW_NS).exit_code == 0
    assert (top / "f").stat().st_mtime_ns == NOW_NS
    assert run_with(top, "touch -d '2 days ago' f", clock=lambda: NOW_NS).exit_code == 0
    assert (top / "f").stat().st_mtime_ns == NOW_NS - 2 * DAY_NS


def test_distant_times_are_not_an_error(top: Path, run: Run) -> None:
    result = run(
        "touch -d @999999999999999999 f; ls -l f; stat -c %y f; find f -printf '%t %T+'; ls --full-time"
    )

    assert (result.exit_code, result.stderr) == (0, b"")


def test_find_reports_age_in_whole_days(top: Path) -> None:
    for days in (0, 1, 2, 3):
        (top / f"d{days}").write_bytes(b"")
        os.utime(top / f"d{days}", ns=(NOW_NS - days * DAY_NS - 1, NOW_NS - days * DAY_NS - 1))

    def found(test: str) -> list[bytes]:
        return run_with(top, f"find . -type f {test}", clock=lambda: NOW_NS).stdout.split()

    assert found("-mtime 2") == [b"./d2"]
    assert found("-mtime +1") == [b"./d2", b"./d3"]
    assert found("-mtime -1") == [b"./d0"]


# Limits


@pytest.mark.parametrize("line", ["find .", "ls -R", "du", "tree", "cp -r d e", "rm -rv d"])
def test_a_search_ends_with_the_budget_of_entries(top: Path, line: str) -> None:
    for number in range(30):
        (top / f"d/{number}").mkdir(parents=True)
        (top / f"d/{number}/f").write_bytes(b"")

    with Workspace.open(top) as workspace:
        result = BareShell(workspace, budget=Budget(entries=20)).run(line)

    assert result.error_code == "limit.entries"
    assert result.exit_code == 4


@pytest.mark.parametrize("line", ["find .", "ls -R", "tree", "du -a"])
def test_output_ends_with_its_budget(top: Path, line: str) -> None:
    for number in range(200):
        (top / f"a-rather-long-name-{number}").write_bytes(b"")

    with Workspace.open(top) as workspace:
        result = BareShell(workspace, budget=Budget(output_bytes=1000)).run(line)

    assert len(result.stdout) == 1000
    assert result.error_code == "limit.output_bytes"


def test_a_copy_that_finds_no_room_is_reported_and_the_others_continue(top: Path) -> None:
    (top / "big").write_bytes(b"x" * 600)
    (top / "small").write_bytes(b"x")
    (top / "d").mkdir()

    result = run_with(top, "cp big small d", limits=Limits(disk_bytes=1000, entries=None))

    assert result.exit_code == 1
    assert result.stderr.startswith(b"cp: cannot create regular file 'd/big': ")
    assert os.listdir(top / "d") == ["small"]


def test_deep_expressions_are_refused_and_do_not_end_the_shell(run: Run) -> None:
    deep = "'(' " * 5000
    assert run(f"find . {deep} -true {') ' * 5000}".replace(")", "')'")).exit_code == 1
    assert run(f"test {deep} a").exit_code == 2
    assert run("find . " + "! " * 5001 + "-true").stdout == b""
    assert run("test " + "! " * 5001 + "a").exit_code == 1


def test_patterns_take_linear_time(top: Path, run: Run) -> None:
    (top / ("a" * 200)).write_bytes(b"")

    assert run(f"find . -name '{'*a' * 100}b'").stdout == b""
    assert run(f"find . -path '{'*a' * 100}b'").stdout == b""
    assert run("find . -regex '(a|aa)+$b'").stdout == b""


# Rules


@pytest.mark.parametrize(
    "line",
    ["cp a b", "cp -r d e", "mv a b", "rm a", "rm -rv d", "rmdir empty", "mkdir x", "mkdir -p x/y",
     "touch a", "touch x", "find a -delete"],
)  # fmt: skip
def test_what_may_only_be_read_is_not_changed(top: Path, line: str) -> None:
    (top / "d").mkdir()
    (top / "empty").mkdir()
    (top / "a").write_bytes(b"a")
    (top / "d/f").write_bytes(b"f")
    policy = SandboxPolicy.for_workspace(top, mode=AccessMode.READ_ONLY)
    before = sorted(str(path) for path in top.rglob("*"))

    result = run_with(top, line, policy=policy)

    assert result.exit_code == 1
    assert b"sandbox: write access denied" in result.stderr
    assert sorted(str(path) for path in top.rglob("*")) == before


def test_files_go_from_one_rule_to_another(top: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "d").mkdir(parents=True)
    (other / "d/f").write_text("f\n")
    policy = SandboxPolicy(
        str(top), (PathRule(str(top), AccessMode.READ_WRITE), PathRule(str(other), AccessMode.READ_ONLY))
    )

    result = run_with(top, f"cp -r {other}/d copy; cat copy/f; realpath {other}/d/../d/f", policy=policy)

    assert result.stdout.decode() == f"f\n{other}/d/f\n"
    assert run_with(top, f"mv {other}/d moved", policy=policy).exit_code == 1
    assert (other / "d/f").exists()


def test_directories_are_created_below_the_root_of_a_rule(top: Path, tmp_path: Path) -> None:
    other = tmp_path / "far/other"
    other.mkdir(parents=True)
    policy = SandboxPolicy.for_workspace(top, allow=[PathRule(str(other), AccessMode.READ_WRITE)])

    result = run_with(top, f"mkdir -p {other}/a/b /workspace/c/d", policy=policy)

    assert (result.exit_code, result.stderr) == (0, b"")
    assert (other / "a/b").is_dir()
    assert (top / "c/d").is_dir()


# Links that lead out


@pytest.fixture
def leading_out(top: Path, tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (top / "d").mkdir()
    (top / "d/absolute").symlink_to(outside)
    (top / "d/relative").symlink_to("../../outside")
    return outside


@pytest.mark.parametrize(
    "line",
    [
        "ls -R d",
        "ls d/absolute/",
        "ls -lLF d",
        "find d",
        "find -H d/absolute",
        "du d",
        "tree -F d",
        "cp -r d e",
        "cp -rL d e",
        "cp d/absolute/secret x",
        "stat -L d/absolute",
        "realpath d/absolute",
        "realpath -m d/relative/x",
        "mv d/absolute/secret x",
        "rm -r d/absolute/secret",
        "touch d/absolute/new",
        "mkdir -p d/absolute/new/x",
    ],
)
def test_nothing_outside_is_visible_or_changed(leading_out: Path, top: Path, run: Run, line: str) -> None:
    result = run(line)

    assert b"secret" not in result.stdout
    assert str(leading_out).encode() not in result.stderr
    assert os.listdir(leading_out) == ["secret"]
    assert not list(top.rglob("secret"))


def test_a_link_that_escapes_is_removed_not_followed(leading_out: Path, top: Path, run: Run) -> None:
    assert run("rm -r d").exit_code == 0
    assert not (top / "d").exists()
    assert (leading_out / "secret").exists()


def test_tests_of_files_outside_are_false(leading_out: Path, run: Run) -> None:
    assert run("test -e d/absolute/secret").exit_code == 1
    assert run("test -e /etc/passwd").exit_code == 1
    assert run("test -e ../outside").exit_code == 1
    assert run("test -L d/absolute").exit_code == 0


# Others


def test_hard_links_are_counted_once(top: Path, run: Run) -> None:
    (top / "one").write_bytes(b"x" * 5000)
    os.link(top / "one", top / "two")

    once = int(run("du -sb .").stdout.split()[0])
    twice = int(run("du -slb .").stdout.split()[0])

    assert twice - once == 5000


def test_links_that_form_a_cycle_are_not_copied_forever(top: Path, run: Run) -> None:
    (top / "d/sub").mkdir(parents=True)
    (top / "d/sub/up").symlink_to("..")

    result = run("cp -rL d e")

    assert result.stderr == b"cp: cannot copy cyclic symbolic link 'd/sub/up'\n"
    assert (top / "e/sub").is_dir()


def test_links_that_form_a_cycle_are_not_listed_forever(top: Path, run: Run) -> None:
    (top / "d").mkdir()
    (top / "d/up").symlink_to("..")

    result = run("ls -RL")

    assert result.stdout == b".:\nd\n\n./d:\nup\n"
    assert result.stderr == b"ls: ./d/up: not listing already-listed directory\n"


def test_a_directory_is_not_copied_into_itself_through_a_link(top: Path, run: Run) -> None:
    (top / "d/x/y").mkdir(parents=True)
    (top / "deep").symlink_to("d/x/y")

    result = run("cp -r d deep/new")

    assert result.stderr == b"cp: cannot copy a directory, 'd', into itself, 'deep/new'\n"
    assert os.listdir(top / "d/x/y") == []


def test_a_target_that_is_read_only_is_replaced_only_by_force(top: Path, run: Run) -> None:
    (top / "a").write_text("new")
    (top / "b").write_text("old")
    (top / "b").chmod(0o444)

    assert run("cp a b").stderr == b"cp: cannot create regular file 'b': Permission denied\n"
    assert run("cp -f a b").exit_code == 0
    assert (top / "b").read_text() == "new"


@pytest.mark.parametrize("name", FILE_COMMANDS)
def test_every_command_has_help(run: Run, name: str) -> None:
    text = run(f"{name} --help").stdout.decode()

    assert text.startswith(f"Usage: {name} ")
    assert COMMANDS[name].load().__doc__ == f"{COMMANDS[name].summary.capitalize()}."


def test_commands_report_what_they_would_touch() -> None:
    def touched(name: str, *argv: str) -> list[str]:
        module = COMMANDS[name].load()
        if not hasattr(module, "Flags"):
            return [f"{touch.access} {touch.operand}" for touch in module.accesses(list(argv))]
        flags, operands = parser_of(module.Flags).parse(argv)
        return [f"{touch.access} {touch.operand}" for touch in module.accesses(flags, operands)]

    assert touched("ls") == ["read ."]
    assert touched("ls", "-l", "-") == ["read ./-"]
    assert touched("cp", "-r", "a", "b", "c") == ["read a", "read b", "write c"]
    assert touched("cp", "-t", "d", "a") == ["read a", "write d"]
    assert touched("mv", "a", "b") == ["write a", "write b"]
    assert touched("rm", "-r", "a") == ["write a"]
    assert touched("touch", "-r", "x", "a") == ["read x", "write a"]
    assert touched("find", "a", "b", "-name", "x") == ["read a", "read b"]
    assert touched("find", "-delete") == ["read .", "write ."]
    assert touched("test", "-f", "a", "-a", "b", "-nt", "c") == ["read a", "read b", "read c"]


def test_nothing_is_logged_about_ordinary_use(top: Path, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    (top / "d").mkdir()
    with caplog.at_level(logging.WARNING):
        run(
            "mkdir -p d/e; touch d/f; ls -la; ls -R; find; du; tree; cp -r d c; mv c g; rm -r g; realpath d/e"
        )

    assert caplog.records == []
