"""Analysis of a command line without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.errors import ClosedError, MetacharacterError, ShellSyntaxError
from carrel.policy.rules import Access, AccessMode, PathRule, SandboxPolicy
from carrel.shell.budget import Budget
from carrel.shell.command.table import COMMANDS
from carrel.shell.runtime.analysis import Analysis
from carrel.shell.runtime.shell import BareShell
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

READ, WRITE = Access.READ, Access.WRITE


@pytest.fixture
def shell(workspace: Workspace, directory: Path) -> BareShell:
    (directory / "d").mkdir()
    for name in ("a", "b", "d/c"):
        (directory / name).write_bytes(b"text\n")
    return BareShell(workspace, pipelines=True)


def uses(analysis: Analysis) -> list[tuple[str, Access, str]]:
    return [(use.command, use.access, use.path) for use in analysis.uses]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cd d", [("cd", READ, "/workspace/d")]),
        ("cd", []),
        ("pwd > x", [("pwd", WRITE, "/workspace/x")]),
        ("pwd >> x 2> y", [("pwd", WRITE, "/workspace/x"), ("pwd", WRITE, "/workspace/y")]),
        ("pwd &> x", [("pwd", WRITE, "/workspace/x")]),
        ("pwd < a 2>&1", [("pwd", READ, "/workspace/a")]),
        ("> x", [("", WRITE, "/workspace/x")]),
        ("python a", [("python", READ, "/workspace/a")]),
        ("python - < a", [("python", READ, "/workspace/a")]),
        ("python -c 'pass' a", []),
        ("cd d; pwd > x", [("cd", READ, "/workspace/d"), ("pwd", WRITE, "/workspace/d/x")]),
        ("cd d && cd .. && pwd < a", [
            ("cd", READ, "/workspace/d"), ("cd", READ, "/workspace/d/.."), ("pwd", READ, "/workspace/a"),
        ]),
        ("cd d; cd; pwd < a", [("cd", READ, "/workspace/d"), ("pwd", READ, "/workspace/a")]),
        ("cd d; cd -; pwd < a", [("cd", READ, "/workspace/d"), ("pwd", READ, "/workspace/a")]),
        ("cd -- d; pwd < c", [("cd", READ, "/workspace/d"), ("pwd", READ, "/workspace/d/c")]),
        ("cd d | pwd < a", [("cd", READ, "/workspace/d"), ("pwd", READ, "/workspace/a")]),
        ("cd d < a", [("cd", READ, "/workspace/a"), ("cd", READ, "/workspace/d")]),
        ("V=x; pwd > $V", [("pwd", WRITE, "/workspace/x")]),
        ("pwd > ~/x", [("pwd", WRITE, "/workspace/x")]),
        ("env V=1 python a", [("python", READ, "/workspace/a")]),
        ("env -i env -u V python a > x", [("env", WRITE, "/workspace/x"), ("python", READ, "/workspace/a")]),
        ("python ''", []),
        ("cat a - d/c", [("cat", READ, "/workspace/a"), ("cat", READ, "/workspace/d/c")]),
        ("head -n 3 [ab]", [("head", READ, "/workspace/a"), ("head", READ, "/workspace/b")]),
        ("env cp a x", [("cp", READ, "/workspace/a"), ("cp", WRITE, "/workspace/x")]),
        ("cat a | tee x", [("cat", READ, "/workspace/a"), ("tee", WRITE, "/workspace/x")]),
    ],
)  # fmt: skip
def test_what_would_be_read_and_written_is_reported(
    shell: BareShell, line: str, expected: list[tuple[str, Access, str]]
) -> None:
    analysis = shell.analyze(line)
    assert uses(analysis) == expected
    assert analysis.problems == ()
    assert analysis.allowed


def test_words_are_expanded_as_they_would_be_now(shell: BareShell) -> None:
    analysis = shell.analyze("cat [ab] ${PWD}; env X=1 cat '*'")
    assert analysis.commands == (
        ("cat", "a", "b", "/workspace"),
        ("env", "X=1", "cat", "*"),
        ("cat", "*"),
    )


@pytest.mark.parametrize(
    ("line", "runs", "changes"),
    [
        ("python a", True, True),
        ("env python a", True, True),
        ("python --help", False, False),
        ("python < a", True, True),
        ("xargs python", True, True),
        ("xargs rm", False, True),
        ("env xargs env rm -f", False, True),
        ("xargs cat; rm --help", False, False),
        ("xargs", False, False),
        ("rm a", False, True),
        ("cp a x", False, True),
        ("pwd", False, False),
        ("pwd > x", False, True),
        ("pwd < a", False, False),
        ("cd d", False, False),
    ],
)
def test_whether_guest_code_runs_and_anything_changes_is_reported(
    shell: BareShell, line: str, runs: bool, changes: bool
) -> None:
    analysis = shell.analyze(line)
    assert (analysis.runs_code, analysis.changes) == (runs, changes)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nothing", "nothing: command not found or not allowed"),
        ("'no such'", "'no such': command not found or not allowed"),
        ("pwd; nothing | pwd", "nothing: command not found or not allowed"),
        ("env nothing", "nothing: command not found or not allowed"),
        ("cat a | xargs nothing", "nothing: command not found or not allowed"),
        ("head -y a", "head: invalid option -- 'y'"),
        ("env head -y a", "head: invalid option -- 'y'"),
        ("python -z", "python: unknown option -z"),
        ("env " * 50 + "pwd", "commands are nested more than 20 deep"),
        ("V=x;" + "V=$V$V;" * 25, "variables would take"),
    ],
)
def test_what_would_be_refused_at_once_is_a_problem(shell: BareShell, line: str, problem: str) -> None:
    analysis = shell.analyze(line)
    assert any(each.startswith(problem) for each in analysis.problems)
    assert not analysis.allowed


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("before", ["", "env ", "xargs "])
def test_any_command_without_arguments_can_be_analyzed(shell: BareShell, name: str, before: str) -> None:
    analysis = shell.analyze(before + name)
    assert name in [command[0] for command in analysis.commands]
    if before == "xargs ":
        assert not analysis.problems


def test_a_command_that_is_not_allowed_is_a_problem(workspace: Workspace) -> None:
    shell = BareShell(workspace, commands={"pwd", "env"})
    assert shell.analyze("pwd").allowed
    assert shell.analyze("cat a").problems == ("cat: command not found or not allowed",)
    assert shell.analyze("env cat a").problems == ("cat: command not found or not allowed",)


def test_a_line_that_cannot_be_read_is_an_error(shell: BareShell, workspace: Workspace) -> None:
    with pytest.raises(ShellSyntaxError, match="quoting"):
        shell.analyze("cat 'a")
    with pytest.raises(ShellSyntaxError, match="Empty command"):
        shell.analyze("  ")
    with pytest.raises(MetacharacterError):
        BareShell(workspace).analyze("cat a | head")
    with pytest.raises(TypeError):
        shell.analyze(b"pwd")  # type: ignore[arg-type]  # that it is wrong is the point


# Rules


def test_the_rule_that_decides_is_reported(directory: Path, outside: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    policy = SandboxPolicy.for_workspace(
        directory, AccessMode.READ_ONLY, [PathRule(str(outside)), PathRule(str(other), AccessMode.READ_WRITE)]
    )
    with Workspace.open(directory, policy=policy) as workspace:
        shell = BareShell(workspace, pipelines=True)
        analysis = shell.analyze(
            f"pwd < a > b; pwd < {outside}/secret > {outside}/x; pwd > {other}/y; pwd < /etc/passwd"
        )
    assert [(use.allowed, use.rule, use.mode, use.reason) for use in analysis.uses] == [
        (True, 0, AccessMode.READ_ONLY, None),
        (False, 0, AccessMode.READ_ONLY, "read-only workspace"),
        (True, 1, AccessMode.READ_ONLY, None),
        (False, 1, AccessMode.READ_ONLY, "read-only path"),
        (True, 2, AccessMode.READ_WRITE, None),
        (False, None, None, "outside workspace"),
    ]
    assert not analysis.allowed


@pytest.mark.parametrize(
    "path", ["../secret", "/workspace/../outside/secret", "link", "/etc/passwd", "x" * 300, "y/" * 3000 + "z"]
)
def test_a_path_that_escapes_or_is_invalid_is_not_allowed(
    shell: BareShell, directory: Path, outside: Path, path: str
) -> None:
    (directory / "link").symlink_to(outside / "secret")
    (use,) = shell.analyze(f"pwd < {path}").uses
    assert not use.allowed
    assert use.reason


def test_nothing_is_changed_recorded_or_remembered(
    shell: BareShell, workspace: Workspace, directory: Path
) -> None:
    before = sorted(directory.rglob("*"))
    shell.analyze("cd d; V=1; export W=1; pwd > x; pwd < /etc/passwd; cat /etc/* ../*; env nothing; exit 3")
    assert sorted(directory.rglob("*")) == before
    assert list(workspace.changes()) == []
    assert shell.cwd == "/workspace"
    assert "W" not in shell.env
    assert shell.run("env V=$V S=$?").stdout.count(b"V=\n") == 1


def test_looking_is_within_the_budget_and_the_limits(directory: Path) -> None:
    for number in range(30):
        (directory / f"f{number}").touch()
    with Workspace.open(directory, limits=Limits(list_entries=20)) as workspace:
        analysis = BareShell(workspace).analyze("pwd *")
        assert len(analysis.problems) == 1
    with Workspace.open(directory) as workspace:
        analysis = BareShell(workspace, budget=Budget(entries=10)).analyze("pwd *")
        assert analysis.problems == ("Command looked at more than 10 entries, the limit",)


def test_paths_that_a_pattern_goes_through_are_charged(workspace: Workspace, directory: Path) -> None:
    for number in range(100):
        (directory / f"d{number}").mkdir()
    analysis = BareShell(workspace, budget=Budget(memory_bytes=10_000)).analyze("cat */missing*")
    assert analysis.problems == ("Command needs more than 10000 bytes of memory, the limit",)


def test_a_closed_workspace_is_an_error(shell: BareShell, workspace: Workspace) -> None:
    workspace.close()
    with pytest.raises(ClosedError):
        shell.analyze("pwd < a")
