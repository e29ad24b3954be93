"""What a command takes without being charged for it meets the limits of the process that it runs in."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from carrel.sandbox.workers import runner
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.shell.budget import STATUS_CANCELLED, STATUS_LIMIT, STATUS_TIMED_OUT, Budget
from carrel.values import MIB
from tests.attack.test_shell_bombs import BOMBS, prepare
from tests.sandbox.workers.conftest import MEMORY_BYTES, MakeShell, make_shell, unmetered

__all__ = ["make_shell", "unmetered"]
pytestmark = pytest.mark.attack

MEMORY = "limit.memory_bytes"
WALL_BYTES = 40 * MIB
"""What the bombs are made for; the workers may take less."""
QUICK = ("tr-repeats", "head-many", "sort-short-lines", "sed-double-by-G")
HOLDING = (
    *QUICK,
    "braces-of-wide-characters",
    "xargs-pieces",
    "diff-short-lines",
    "cut-fields",
    "grep-a-line-too-long",
    "sed-replace-each-by-a-word",
)
"""Bombs that hold what they make, and do so at once; with nothing charged, only the process stops them."""
OTHERS = [name for name, bomb in BOMBS.items() if bomb.refused is not None and name not in HOLDING]


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.2)


@pytest.mark.parametrize(
    "name",
    [*QUICK, *(pytest.param(name, marks=pytest.mark.thorough) for name in HOLDING if name not in QUICK)],
)
def test_a_bomb_that_is_not_charged_is_ended_by_the_wall(
    name: str, unmetered: ShellWorkers, make_shell: MakeShell, tmp_path: Path
) -> None:
    shell = make_shell(unmetered)
    line = prepare(tmp_path / "one" / "s", BOMBS[name], WALL_BYTES)
    result = shell.run(line, budget=Budget(seconds=60), on_output=lambda stream, data: None)
    assert (result.error_code, result.exit_code) == (MEMORY, STATUS_LIMIT)
    assert shell.run("echo still here").stdout == b"still here\n"


@pytest.mark.thorough
@pytest.mark.parametrize("name", OTHERS)
def test_a_bomb_that_is_not_charged_leaves_the_service_as_it_was(
    name: str, unmetered: ShellWorkers, make_shell: MakeShell, tmp_path: Path
) -> None:
    shell = make_shell(unmetered)
    line = prepare(tmp_path / "one" / "s", BOMBS[name], WALL_BYTES)
    result = shell.run(line, budget=Budget(seconds=20), on_output=lambda stream, data: None)
    assert result.error_code in (MEMORY, "limit.time", "limit.output_bytes", None)
    assert shell.run("echo still here").stdout == b"still here\n"


def test_a_command_that_takes_all_memory_is_told_as_the_memory_limit(
    unmetered: ShellWorkers, make_shell: MakeShell
) -> None:
    shell = make_shell(unmetered)
    budget = Budget(memory_bytes=MIB)
    result = shell.run("echo x > f; hog", budget=budget)
    assert (result.error_code, result.exit_code) == (MEMORY, STATUS_LIMIT)
    assert 0 < result.stdout.count(b"1\n") <= MEMORY_BYTES // MIB
    assert result.message == f"Command needs more than {MIB} bytes of memory, the limit"
    assert shell.run("cat f").stdout == b"x\n"


def test_one_that_never_ends_is_killed_and_told_as_the_time_limit(
    unmetered: ShellWorkers, make_shell: MakeShell
) -> None:
    shell = make_shell(unmetered)
    with shell.workspace.gate.watching() as events:
        result = shell.run("cd /; X=1; echo x > f; hang", budget=Budget(seconds=2))
    assert (result.stdout, result.exit_code, result.error_code) == (
        b"begun\n",
        STATUS_TIMED_OUT,
        "limit.time",
    )
    assert result.message == "Command timed out after 2s"
    # What it did before is in the journal, and so is told; what the shell remembered is as before.
    assert {event.path for event in events if event.error is None} == {"f"}
    assert shell.run("echo $X; pwd; cat f").stdout == b"\n/workspace\nx\n"
    assert shell.workspace.usage() == shell.workspace.recount()


def test_one_that_does_not_hear_of_its_end_is_killed_when_it_is_cancelled(
    unmetered: ShellWorkers, make_shell: MakeShell
) -> None:
    shell = make_shell(unmetered)

    def stop(stream: str, data: bytes) -> None:
        shell.cancel()

    result = shell.run("hang", on_output=stop)
    assert (result.exit_code, result.error_code) == (STATUS_CANCELLED, "shell.cancelled")
    assert shell.run("echo next").stdout == b"next\n"


def test_what_is_printed_without_being_counted_is_counted_by_the_service(
    unmetered: ShellWorkers, make_shell: MakeShell
) -> None:
    result = make_shell(unmetered).run("seq 1 100000000", budget=Budget(output_bytes=1000))
    assert (len(result.stdout), result.error_code) == (1000, "limit.output_bytes")
    assert result.truncated


@pytest.mark.parametrize(
    ("signal", "status", "code"),
    [
        ("SIGSEGV", 139, "runtime.failed"),
        ("SIGABRT", 134, "runtime.failed"),
        ("SIGKILL", STATUS_LIMIT, MEMORY),
    ],
)
def test_a_worker_that_crashes_is_told_as_a_failure_of_its_line(
    signal: str, status: int, code: str, unmetered: ShellWorkers, make_shell: MakeShell
) -> None:
    shell = make_shell(unmetered)
    result = shell.run(f"crash {signal}")
    assert (result.stdout, result.exit_code, result.error_code) == (b"begun\n", status, code)
    assert shell.run("echo next").stdout == b"next\n"


def test_a_mistake_in_a_command_is_logged_and_tells_nothing(
    unmetered: ShellWorkers, make_shell: MakeShell, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "carrel"), pytest.raises(RuntimeError) as raised:
        make_shell(unmetered).run("mistake")
    assert "secret" not in str(raised.value)
    (record,) = caplog.records
    assert (record.event, record.error) == ("shell.failed", "KeyError")  # type: ignore[attr-defined]


def test_two_tenants_never_share_a_worker(unmetered: ShellWorkers, make_shell: MakeShell) -> None:
    one, two = make_shell(unmetered, "one"), make_shell(unmetered, "two")
    seen = [{shell.run("process").stdout for _ in range(3)} for shell in (one, two, one, two)]
    assert seen[0] == seen[2]
    assert seen[1] == seen[3]
    assert not seen[0] & seen[1]
