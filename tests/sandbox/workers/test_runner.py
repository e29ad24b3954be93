"""A line in a worker does what it does here: what it prints, changes, remembers, and how it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import ClosedError, SessionMissingError
from carrel.policy.rules import AccessMode
from carrel.sandbox.shell import Shell
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.sandbox.workers.protocol import parse_counts
from carrel.sandbox.workers.runner import SessionRunner
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import STATUS_CANCELLED, STATUS_TIMED_OUT, Budget
from carrel.shell.result import ShellResult
from carrel.values import MIB
from tests.sandbox.workers.conftest import MakeShell

LINES = (
    "ls",
    "mkdir -p d && cd d && X=5",
    "pwd; echo $X; echo one > f.txt; cat f.txt none",
    "printf '3\\n1\\n2\\n' | sort | head -n 2 > sorted; cat sorted",
    "nosuch",
    "echo 'unclosed",
    "cat | tr a-z A-Z",
    "grep -c x < f.txt; set -o pipefail; false | true",
    "cp f.txt g.txt; mv g.txt h.txt; rm f.txt; cat ../../out",
    "echo ../*; cd ..; export Y='ä\udcff'",
    "env; exit 3",
    "seq 1 200000",
)


@pytest.mark.parametrize("limit", [Budget(), Budget(output_bytes=2000, entries=40)], ids=["usual", "small"])
def test_a_line_answers_as_it_does_in_process(
    workers: ShellWorkers, make_shell: MakeShell, limit: Budget
) -> None:
    here, there = make_shell(None, "here"), make_shell(workers, "there")
    for line in LINES:
        answers = [
            _plain(shell.run(line, stdin=b"input\n" * 40_000, budget=limit)) for shell in (here, there)
        ]
        assert answers[0] == answers[1], line
        assert here.env == there.env
    assert _records(here) == _records(there)


def _plain(result: ShellResult) -> ShellResult:
    return replace(result, duration_ms=0)


def _records(shell: Shell) -> list[tuple[object, ...]]:
    return [
        (event.actor, event.operation, event.path, event.other_path, event.before_bytes, event.after_bytes)
        for event in shell.workspace.changes(0)
    ]


def test_what_a_line_changes_is_told_to_those_who_watch(workers: ShellWorkers, make_shell: MakeShell) -> None:
    shell = make_shell(workers)
    with shell.workspace.gate.watching() as events:
        shell.run("echo one > a; python -c \"open('b', 'w').write('two')\"; mkdir c")
    paths = [event.path for event in events]
    assert paths == sorted(paths)
    assert {event.path for event in events} == {"a", "b", "c"}


def test_python_runs_in_the_guest_of_the_service(workers: ShellWorkers, make_shell: MakeShell) -> None:
    shell = make_shell(workers)
    line = "printf 'b\\na\\n' | python -c 'import sys; print(sys.stdin.read().upper())' | sort | head -n 3"
    assert shell.run(line).stdout == b"\nA\nB\n"
    result = shell.run("python -c 'import sys; print(1); sys.exit(7)'")
    assert (result.stdout, result.exit_code) == (b"1\n", 7)


def test_a_view_holds_in_a_worker(workers: ShellWorkers, make_shell: MakeShell, tmp_path: Path) -> None:
    whole = make_shell(workers)
    whole.run("mkdir in out; echo x > out/f; echo y > in/f")
    view = whole.workspace.narrowed(mode=AccessMode.READ_ONLY, within=["in"])
    runner = SessionRunner(workers, WorkspaceManager(tmp_path / "one"), "s", "host")
    shell = Shell(view, pipelines=True, commands={"cat", "touch"}, runner=runner)
    assert shell.run("cat in/f").stdout == b"y\n"
    assert shell.run("cat out/f").exit_code == 1
    assert b"read-only" in shell.run("touch in/g").stderr
    assert shell.run("ls in").exit_code == 127


def test_output_comes_while_the_line_runs(workers: ShellWorkers, make_shell: MakeShell) -> None:
    shell = make_shell(workers)
    came = Event()
    stops: list[Callable[[], object]] = []
    run = _running(
        lambda: shell.run("echo one; sleep 60", on_output=lambda *_: came.set(), on_start=stops.append)
    )
    assert came.wait(30)
    stops[0]()
    result = run()
    assert (result.exit_code, result.error_code) == (STATUS_CANCELLED, "shell.cancelled")


def test_a_line_that_takes_too_long_ends_by_itself(workers: ShellWorkers, make_shell: MakeShell) -> None:
    shell = make_shell(workers)
    result = shell.run("echo one; sleep 60", budget=Budget(seconds=2))
    assert (result.stdout, result.exit_code, result.error_code) == (b"one\n", STATUS_TIMED_OUT, "limit.time")
    assert result.message == "Command timed out after 2s"
    assert shell.run("echo two").stdout == b"two\n"


def test_a_session_that_was_made_anew_is_not_touched(
    workers: ShellWorkers, make_shell: MakeShell, tmp_path: Path
) -> None:
    shell = make_shell(workers)
    with WorkspaceManager(tmp_path / "one") as manager:
        manager.delete_workspace("s")
        with manager.create("s") as fresh:
            fresh.write("mine", b"")
            with pytest.raises(SessionMissingError):
                shell.run("rm mine")
            assert [info.path for info in fresh.list()] == ["mine"]


def test_a_workspace_that_is_closed_cancels_the_line_and_takes_no_other(
    workers: ShellWorkers, make_shell: MakeShell, tmp_path: Path
) -> None:
    shell = make_shell(workers)
    runner = SessionRunner(workers, WorkspaceManager(tmp_path / "one"), "s", "host")
    view = Shell(shell.workspace.narrowed(), pipelines=True, runner=runner)
    result = view.run("echo one; sleep 60", on_output=lambda *_: view.workspace.close())
    assert result.error_code == "shell.cancelled"
    with pytest.raises(ClosedError):
        view.run("echo two")


def test_refusals_of_a_worker_are_logged_here(
    workers: ShellWorkers, make_shell: MakeShell, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "carrel"):
        make_shell(workers).run("cat /etc/passwd")
    assert [record.event for record in caplog.records] == ["security.access_outside"]  # type: ignore[attr-defined]


def test_refusals_and_mistakes_in_a_worker_are_counted_here_whatever_is_logged(make_shell: MakeShell) -> None:
    workers = ShellWorkers(1, 512 * MIB, logger=SandboxLogger(logging.Logger("silent", logging.CRITICAL)))
    try:
        shell = make_shell(workers)
        for _ in range(3):
            shell.run("cat /etc/passwd; git status; ls --colour-me")
        counts = workers.logger.counts
        assert counts.of(mistakes=False) == {"access.outside": 3}
        assert counts.of(mistakes=True) == {"shell.command": 3, "shell.usage": 3}
    finally:
        workers.close()


@pytest.mark.parametrize(
    "head", [None, 1, [1], [[True, "limit.time"]], [[True, "x y", 1]], [[False, "a", -1]], [[0, "a", 1]]]
)
def test_a_worker_reports_nothing_but_numbers(head: object) -> None:
    assert parse_counts([[False, "path.escape", 2]]) == [(False, "path.escape", 2)]
    with pytest.raises(ValueError, match="numbers"):
        parse_counts(head)


def test_a_long_line_of_pipes_finds_memory_for_its_threads(
    workers: ShellWorkers, make_shell: MakeShell
) -> None:
    assert make_shell(workers).run("echo x" + " | cat" * 90).stdout == b"x\n"


def test_a_large_input_is_handed_over_in_pieces(workers: ShellWorkers, make_shell: MakeShell) -> None:
    assert make_shell(workers).run("wc -c", stdin=b"x" * 20 * MIB).stdout == b"%d\n" % (20 * MIB)


def _running(work: Callable[[], ShellResult]) -> Callable[[], ShellResult]:
    """Begin *work* in a thread; what it gives is waited for when it is asked for."""
    found: list[ShellResult] = []
    thread = Thread(target=lambda: found.append(work()))
    thread.start()

    def result() -> ShellResult:
        thread.join(30)
        return found[0]

    return result
