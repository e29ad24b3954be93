"""`workspace` for an operator, who may change the rules, and for others, who may not."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sandbox.operator_workspace import DirectoryOperatorWorkspace, SessionOperatorWorkspace
from carrel.sandbox.shell import Shell
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.result import ShellResult
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement

OUTSIDE = "outside workspace"


@pytest.fixture
def operator(directory: Path) -> Iterator[Shell]:
    """The shell of an operator in `directory`, to be written."""
    hand = DirectoryOperatorWorkspace(directory)
    shell = Shell(hand.reopen(SandboxPolicy.for_workspace(directory)), pipelines=True, operator=hand)
    yield shell
    shell.workspace.close()


@pytest.fixture
def agent(workspace: Workspace) -> Shell:
    """Return a shell without an operator in the same directory."""
    return Shell(workspace, pipelines=True)


def out(result: ShellResult) -> str:
    """Return the output of a line that must succeed without errors."""
    assert (result.stderr, result.exit_code, result.error_code) == (b"", 0, None)
    return result.stdout.decode()


def denial(result: ShellResult) -> str:
    """Return the error message of a line that must fail without output."""
    assert (result.stdout, result.error_code) == (b"", None)
    assert result.exit_code != 0
    return result.stderr.decode()


# What it prints


@requirement("AP-05")
@pytest.mark.parametrize("line", ["workspace", "workspace status"])
def test_the_rules_are_printed_in_their_order(directory: Path, line: str) -> None:
    rules = [PathRule("/data", AccessMode.READ_ONLY), PathRule("/scratch", AccessMode.READ_WRITE)]
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_WRITE, rules)
    hand = DirectoryOperatorWorkspace(directory)
    with hand.reopen(policy) as workspace:
        for_operator = out(Shell(workspace, operator=hand).run(line))
        for_others = out(Shell(workspace).run(line))
    rules_text = "Allowed paths:\n  /workspace [rw] (workspace)\n  /data [ro]\n  /scratch [rw]\n"
    assert for_operator == (
        f"Workspace sandbox: enabled\nRoot: /workspace ({directory} on the host)\n{rules_text}"
    )
    assert for_others == f"Workspace sandbox: enabled\nRoot: /workspace\n{rules_text}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("workspace off", "unknown action 'off'"),
        ("workspace status x", "'status' does not take these arguments"),
        ("workspace rw x", "'rw' does not take these arguments"),
        ("workspace disable x", "'disable' does not take these arguments"),
        ("workspace allow", "allow: missing PATH"),
        ("workspace allow /a rw x", "too many arguments"),
        ("workspace allow /a wr", "allow: the mode must be ro or rw, not 'wr'"),
        ("workspace allow relative rw", "allow: PATH must be absolute: 'relative'"),
    ],
)
def test_an_order_that_makes_no_sense_changes_nothing(operator: Shell, line: str, said: str) -> None:
    before = operator.workspace
    result = operator.run(line)
    assert (result.exit_code, result.stdout) == (2, b"")
    assert result.stderr.decode().splitlines()[0] == f"workspace: {said}"
    assert operator.workspace is before


# What an operator may do


@requirement("AP-06", "AP-09")
def test_the_workspace_becomes_read_only_and_writable_again(operator: Shell, directory: Path) -> None:
    assert out(operator.run("pwd > a")) == ""
    assert out(operator.run("workspace ro")) == "Workspace is now read-only\n"
    assert "  /workspace [ro] (workspace)\n" in out(operator.run("workspace"))
    said = "sandbox: write access denied for 'b': read-only workspace\n"
    assert denial(operator.run("pwd > b")) == said
    assert out(operator.run("cat a")) == "/workspace\n"
    assert out(operator.run("workspace rw")) == "Workspace is now read-write\n"
    assert out(operator.run("pwd > b && cat b")) == "/workspace\n"
    assert sorted(path.name for path in directory.iterdir()) == ["a", "b"]


@requirement("AP-07", "AP-10", "AP-14")
def test_a_path_is_allowed_at_its_own_place(operator: Shell, outside: Path) -> None:
    made = outside / "made"
    said = f"sandbox: write access denied for '{made}': {OUTSIDE}\n"
    assert denial(operator.run(f"pwd > {made}")) == said
    assert out(operator.run(f"workspace allow '{outside}' rw")) == f"Allowed path added: {outside} [rw]\n"
    assert f"\n  {outside} [rw]\n" in out(operator.run("workspace"))
    assert out(operator.run(f"pwd > {made}")) == ""
    assert made.read_text() == "/workspace\n"


@requirement("AP-11")
def test_a_path_is_allowed_only_to_be_read_unless_more_is_said(operator: Shell, outside: Path) -> None:
    for order in (f"workspace allow {outside}", f"workspace allow {outside} ro"):
        assert out(operator.run(order)) == f"Allowed path added: {outside} [ro]\n"
    assert out(operator.run(f"cat {outside}/secret")) == "secret data"
    said = f"sandbox: write access denied for '{outside}/made': read-only path\n"
    assert denial(operator.run(f"pwd > {outside}/made")) == said


@requirement("AP-15")
def test_a_rule_that_comes_later_does_not_overrule_an_earlier_one(operator: Shell, directory: Path) -> None:
    (directory / "sub").mkdir()
    out(operator.run(f"workspace ro; workspace allow {directory}/sub rw"))
    assert "read-only workspace" in denial(operator.run("pwd > sub/a"))


@requirement("AP-12")
def test_rules_are_switched_off_and_on_again(operator: Shell, outside: Path) -> None:
    assert out(operator.run("workspace disable")) == "Workspace sandbox: disabled\n"
    assert out(operator.run("workspace")).startswith("Workspace sandbox: disabled\n")
    assert out(operator.run(f"cat {outside}/secret")) == "secret data"
    assert out(operator.run("workspace enable")) == "Workspace sandbox: enabled\n"
    said = f"sandbox: read access denied for '{outside}/secret': {OUTSIDE}\n"
    assert denial(operator.run(f"cat {outside}/secret")) == said


def test_changes_last_as_long_as_the_shell(operator: Shell, directory: Path, outside: Path) -> None:
    out(operator.run(f"workspace allow {outside} rw; workspace disable"))
    with DirectoryOperatorWorkspace(directory).reopen(SandboxPolicy.for_workspace(directory)) as workspace:
        assert OUTSIDE in denial(Shell(workspace).run(f"cat {outside}/secret"))


def test_where_the_shell_is_and_what_it_knows_stay_when_the_rules_change(
    operator: Shell, directory: Path
) -> None:
    (directory / "sub").mkdir()
    assert out(operator.run("cd sub; A=1; workspace ro; pwd")).endswith("/workspace/sub\n")
    assert operator.cwd == "/workspace/sub"


def test_the_operator_of_a_session_keeps_its_quota(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "sessions") as manager:
        manager.create("s1", limits=Limits(disk_bytes=100)).close()
        hand = SessionOperatorWorkspace(manager, "s1")
        shell = Shell(manager.open("s1"), pipelines=True, operator=hand)
        shell.workspace.write("small", bytes(40))
        out(shell.run("workspace ro; workspace rw"))
        assert shell.workspace.session_id == "s1"
        result = shell.run("cat small small small > big")
        shell.workspace.close()
    assert result.exit_code == 1
    assert b"big: " in result.stderr


def test_a_workspace_that_is_gone_keeps_its_rules(operator: Shell, directory: Path) -> None:
    directory.rename(directory.with_name("moved"))
    before = operator.workspace
    result = operator.run("workspace ro")
    assert (result.exit_code, result.stdout) == (1, b"")
    assert result.stderr.startswith(b"workspace: ")
    assert operator.workspace is before


# What others may not


@requirement("AP-12")
@pytest.mark.parametrize("order", ["rw", "ro", "allow / rw", "disable", "enable"])
def test_only_an_operator_changes_rules(
    directory: Path, outside: Path, order: str, caplog: pytest.LogCaptureFixture
) -> None:
    logger = SandboxLogger(logging.getLogger("carrel.test"))
    with Workspace.open(directory, logger=logger) as workspace:
        shell = Shell(workspace, pipelines=True)
        policy = workspace.policy
        said = denial(shell.run(f"workspace {order}"))
        assert shell.workspace.policy == policy
        assert OUTSIDE in denial(shell.run(f"cat {outside}/secret"))
    word = order.split(maxsplit=1)[0]
    assert said == f"sandbox: 'workspace {word}' denied: only an operator may change the rules\n"
    assert f"operation=workspace path={word}" in caplog.text


@requirement("AP-18")
@pytest.mark.parametrize("name", ["CARREL_WORKSPACE", "SWEBASH_WORKSPACE"])
def test_a_variable_that_is_set_later_warns_and_changes_no_rule(
    operator: Shell, outside: Path, name: str
) -> None:
    policy = operator.workspace.policy
    result = operator.run(f"export {name}={outside}")
    assert (result.exit_code, result.stdout) == (0, b"")
    warning = f"warning: {name} is read only when a shell starts; the workspace stays as it is"
    assert result.stderr.decode() == f"export: {warning}\n"
    assert operator.workspace.policy == policy
    assert OUTSIDE in denial(operator.run(f"cat {outside}/secret"))


# Where the shell is


@requirement("AP-08")
def test_the_shell_does_not_go_outside(agent: Shell, directory: Path, outside: Path) -> None:
    (directory / "out").symlink_to(outside)
    said = f"sandbox: read access denied for '{outside}': {OUTSIDE}\n"
    assert denial(agent.run(f"cd {outside}")) == said
    for target in ("..", "../outside", "/", "/etc", "/workspace/../..", "out"):
        denial(agent.run(f"cd {target}"))
        assert agent.cwd == "/workspace"


@requirement("AP-20")
def test_relative_paths_begin_where_the_shell_is(agent: Shell, directory: Path, outside: Path) -> None:
    (directory / "src").mkdir()
    (directory / "src/main").write_text("main")
    (directory / "lib").write_text("lib")
    out(agent.run("cd src"))
    assert out(agent.run("cat main ../lib /workspace/lib")) == "mainliblib"
    denial(agent.run("cat ../../outside/secret"))
    denial(agent.run("cat lib"))
    assert denial(agent.run(f"cd {outside}"))
    assert out(agent.run("cat main")) == "main"


@requirement("AP-20")
def test_relative_paths_fail_where_nothing_is_allowed_any_more(operator: Shell, outside: Path) -> None:
    out(operator.run(f"workspace disable; cd {outside}; workspace enable"))
    assert operator.cwd == str(outside)
    assert OUTSIDE in denial(operator.run("cat secret"))
    out(operator.run("cd"))
    assert out(operator.run("pwd > a; cat /workspace/a")) == "/workspace\n"


@requirement("AP-17")
@pytest.mark.parametrize(
    "program", ["/bin/cat", "/bin/sh -c", "/usr/bin/env", "./program", "/workspace/program", "bash", "sudo"]
)
def test_a_program_of_the_host_is_not_run(
    operator: Shell, directory: Path, outside: Path, program: str
) -> None:
    (directory / "program").write_text(f"#!/bin/sh\ncat {outside}/secret\n")
    (directory / "program").chmod(0o755)
    for line in (f"{program} {outside}/secret", f"env {program} {outside}/secret"):
        result = operator.run(line)
        assert (result.exit_code, result.stdout) == (127, b"")
        assert result.stderr.startswith(f"{program.split(maxsplit=1)[0]}: command not found".encode())
