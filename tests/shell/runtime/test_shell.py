"""The shell as a whole: its state, what it refuses, and what it records."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carrel.audit.logger import SandboxLogger
from carrel.errors import ClosedError
from carrel.policy.rules import AccessMode, SandboxPolicy
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement


@pytest.fixture
def shell(workspace: Workspace, directory: Path) -> BareShell:
    (directory / "f").write_bytes(b"one\n")
    (directory / "d").mkdir()
    return BareShell(workspace)


@pytest.mark.parametrize("line", ["", " ", "\t\n", "\n\n"])
def test_an_empty_command_is_refused(shell: BareShell, line: str) -> None:
    result = shell.run(line)
    assert (result.stderr, result.exit_code, result.error_code) == (b"Empty command\n", 2, "shell.syntax")
    assert not result.success


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("cat f | head", "|"), ("cat f; pwd", ";"), ("cat f && pwd", "&&"), ("cat f || pwd", "||"),
        ("cat f > g", ">"), ("cat < f", "<"), ("cat f >> g", ">>"), ("cat $(pwd)", "$("), ("cat `pwd`", "`"),
        ("cat f\npwd", "\\n"), ("cat f\rpwd", "\\r"), ("cat f &", "&"), ('cat "$(pwd)"', "$("),
        ('cat "`pwd`"', "`"),
    ],
)  # fmt: skip
def test_a_metacharacter_is_refused_reported_and_recorded(
    shell: BareShell, workspace: Workspace, directory: Path, line: str, sign: str
) -> None:
    result = shell.run(line)
    assert (result.stdout, result.exit_code, result.error_code) == (b"", 2, "shell.metacharacter")
    assert result.stderr.startswith(f"Shell metacharacter not allowed: {sign} (at character ".encode())
    assert result.message == result.stderr.decode().rstrip("\n")
    (event,) = list(workspace.changes())
    assert (event.operation, event.path, event.error) == ("shell", line, "shell.metacharacter")
    assert not (directory / "g").exists()


@requirement("LOG-13")
@pytest.mark.parametrize(
    ("line", "code", "path", "is_recorded"),
    [
        ("cat 'f", "shell.syntax", "cat 'f", True),
        ("git status", "shell.command", "git", True),
        ("ls --colour-me", "shell.usage", "ls", False),
        ("cp f", "shell.usage", "cp", False),
    ],
)
def test_a_mistake_is_no_security_event(
    directory: Path, caplog: pytest.LogCaptureFixture, line: str, code: str, path: str, is_recorded: bool
) -> None:
    logger = SandboxLogger()
    with caplog.at_level(logging.INFO, "carrel"), Workspace.open(directory, logger=logger) as workspace:
        assert not BareShell(workspace).run(line).success
        recorded = [(event.path, event.error) for event in workspace.changes()]
    (record,) = caplog.records
    fields = record.__dict__
    assert (fields["event"], record.levelname) == ("shell.rejected", "INFO")
    assert (fields["code"], fields["path"]) == (code, path)
    assert recorded == [(path, code)] * is_recorded
    counts = logger.counts
    assert (counts.of(mistakes=True), counts.of(mistakes=False)) == ({code: 1}, {})


@requirement("LOG-10")
@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("cat f | head", "security.shell_metacharacter"),
        ("rm f", "security.shell_command"),
        ("cat /etc/passwd", "security.access_outside"),
        ("workspace rw", "security.access_denied"),
    ],
)
def test_what_is_denied_is_a_security_event(
    workspace: Workspace, caplog: pytest.LogCaptureFixture, line: str, event: str
) -> None:
    shell = BareShell(workspace, commands=("cat", "workspace"))
    with caplog.at_level(logging.WARNING, "carrel"):
        shell.run(line)
    assert [record.event for record in caplog.records] == [event]  # type: ignore[attr-defined]


def test_an_unclosed_quote_is_an_error(shell: BareShell) -> None:
    result = shell.run("cat 'f")
    assert (result.exit_code, result.error_code) == (2, "shell.syntax")
    assert b"quoting" in result.stderr


def test_a_line_with_half_a_character_is_refused_and_recorded(shell: BareShell, workspace: Workspace) -> None:
    assert shell.run("cat \ud800").error_code == "shell.syntax"
    assert len(list(workspace.changes())) == 1


def test_a_line_may_end_in_a_newline(shell: BareShell) -> None:
    assert shell.run("cat f\n").stdout == b"one\n"


def test_a_command_must_be_text(shell: BareShell) -> None:
    with pytest.raises(TypeError, match="must be str"):
        shell.run(b"pwd")  # type: ignore[arg-type]  # that it is wrong is the point
    assert shell.run("pwd").exit_code == 0


def test_an_unknown_command_is_reported_and_recorded(shell: BareShell, workspace: Workspace) -> None:
    for name in ("nothing", "/bin/sh", "./f", "sudo"):
        result = shell.run(f"{name} x")
        assert result.exit_code == 127
        assert result.stderr.startswith(f"{name}: command not found".encode())
        assert result.error_code is None
    assert [(event.path, event.error) for event in workspace.changes()] == [
        (name, "shell.command") for name in ("nothing", "/bin/sh", "./f", "sudo")
    ]


def test_a_command_that_is_not_allowed_is_reported_and_recorded(workspace: Workspace) -> None:
    shell = BareShell(workspace, commands={"pwd", "env"})
    assert shell.run("pwd").exit_code == 0
    for line in ("cat f", "env cat f"):
        assert shell.run(line).stderr == b"cat: command not allowed here\n"
    assert [event.error for event in workspace.changes()] == ["shell.command"] * 2
    assert shell.may_run("pwd")
    assert not shell.may_run("cat")
    assert not shell.may_run("nothing")


def test_a_shell_remembers_where_it_is_and_its_variables(shell: BareShell) -> None:
    result = shell.run("cd d")
    assert result.cwd == shell.cwd == "/workspace/d"
    assert shell.run("cat ../f").stdout == b"one\n"
    shell.run("export V=1")
    shell.run("W=2")
    assert shell.env["V"] == "1"
    assert "W" not in shell.env
    assert shell.run("cat $W").stderr == b"cat: 2: No such file or directory\n"


def test_pwd_prints_the_logical_or_the_physical_path(workspace: Workspace, directory: Path) -> None:
    workspace.mkdir("d/e")
    (directory / "way").symlink_to("d/e")
    shell = BareShell(workspace, pipelines=True)
    assert shell.run("cd way; pwd; pwd -P; pwd -P -L").stdout == (
        b"/workspace/way\n/workspace/d/e\n/workspace/way\n"
    )
    workspace.remove("d", recursive=True)
    assert shell.run("pwd -P").exit_code == 1
    assert shell.run("pwd").stdout == b"/workspace/way\n"


def test_a_variable_can_be_exported_without_a_value(shell: BareShell) -> None:
    assert shell.run("export V").exit_code == 0
    assert "V" not in shell.env
    shell.run("V=1")
    assert shell.env["V"] == "1"


def test_the_variables_of_the_host_are_not_visible(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    shell = BareShell(workspace, env={"GIVEN": "1"})
    assert sorted(shell.env) == ["GIVEN", "HOME", "LANG", "PATH", "PWD"]
    assert b"SECRET" not in shell.run("env").stdout


def test_output_is_delivered_as_it_is_produced_instead_of_kept(shell: BareShell) -> None:
    told: list[tuple[str, bytes]] = []
    result = shell.run("cat f missing", on_output=lambda *each: told.append(each))
    assert told == [("stdout", b"one\n"), ("stderr", b"cat: missing: No such file or directory\n")]
    assert (result.stdout, result.stderr, result.exit_code) == (b"", b"", 1)


def test_a_refusal_is_passed_to_the_callback_too(shell: BareShell) -> None:
    told: list[tuple[str, bytes]] = []
    shell.run("cat | cat", on_output=lambda *each: told.append(each))
    assert [stream for stream, _ in told] == ["stderr"]


def test_lines_of_several_threads_run_one_after_another(workspace: Workspace, directory: Path) -> None:
    shell = BareShell(workspace, pipelines=True)
    for name in "abcd":
        (directory / name).mkdir()
    results: list[ShellResult] = []

    def work(name: str) -> None:
        for _ in range(50):
            results.append(shell.run(f"cd /workspace/{name} && V={name}; pwd | cat; env -i V=$V"))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    printed = {result.stdout for result in results}
    assert printed == {f"/workspace/{name}\nV={name}\n".encode() for name in "abcd"}
    assert len(results) == 200


def test_a_closed_workspace_is_an_error(shell: BareShell, workspace: Workspace) -> None:
    workspace.close()
    with pytest.raises(ClosedError):
        shell.run("cat f")
    with pytest.raises(ClosedError):
        shell.run("cat *")


def test_a_denial_is_reported_in_one_line_and_recorded(directory: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    with Workspace.open(directory, policy=policy) as workspace:
        result = BareShell(workspace).run("cat /etc/passwd")
        (event,) = list(workspace.changes())
    assert result.stderr == b"sandbox: read access denied for '/etc/passwd': outside workspace\n"
    assert result.exit_code == 1
    assert event.error == "access.outside"


def test_a_result_has_the_duration_and_the_working_directory(shell: BareShell) -> None:
    result = shell.run("pwd")
    assert result.success
    assert result.duration_ms > 0
    assert result.cwd == "/workspace"
    assert not result.ended


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from([
            "cat", "head", "cd", "pwd", "env", "export", "set", "exit", "which", "help", "f", "d", "..", "*",
            "-n", "1", "--help", "-z", "|", "||", "&&", ";", ">", "<", ">>", "2>&1", "!", "'", '"', "$V",
            "V=a", "~", "#", "\\", "$?", "-", "[a", "é", "\udcff", "\n",
        ]),
        max_size=8,
    )
)  # fmt: skip
def test_any_line_is_a_result_and_leaves_no_thread(shell: BareShell, words: list[str]) -> None:
    joined = BareShell(shell.workspace, pipelines=True, budget=Budget(seconds=20))
    result = joined.run(" ".join(words))
    assert 0 <= result.exit_code <= 255
    ours = ("carrel-pipeline", "carrel-redirect")
    assert not [each for each in threading.enumerate() if each.name.startswith(ours)]
