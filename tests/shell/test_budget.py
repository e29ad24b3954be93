"""Limits that stop a command line, and the state after that."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.shell.budget import STATUS_CANCELLED, STATUS_LIMIT, STATUS_TIMED_OUT, Budget, Meter, Stopped
from carrel.shell.runtime.shell import BareShell
from carrel.shell.streams import BUFFER_BYTES, OutputCollector, OutputStream
from carrel.workspace.workspace import Workspace

LONG = "sleep 1000"


class Clock:
    """A clock that moves only when it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def shell(workspace: Workspace) -> BareShell:
    return BareShell(workspace, pipelines=True)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Start the threads of `arun`, which belong to the process and stay."""
    before = set(threading.enumerate())
    yield
    started = (each for each in threading.enumerate() if each not in before)
    left = [each for each in started if re.match("carrel-(?!call)", each.name)]
    assert not left


@pytest.fixture
def restless() -> Iterator[None]:
    """Switch threads after a few steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Gate:
    """Standard input that reports when it is read, so that a test knows that a command waits."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        yield b"first\n"
        self.asked.set()
        self.open.wait()
        yield b"second\n"


# The meter


def test_time_is_over_when_the_clock_says_so() -> None:
    clock = Clock()
    meter = Meter(Budget(seconds=5), clock)
    clock.now = 5.0
    meter.check()
    assert meter.remaining_seconds() == 0
    clock.now = 5.1
    with pytest.raises(Stopped) as caught:
        meter.check()
    assert (caught.value.code, caught.value.status) == ("limit.time", STATUS_TIMED_OUT)
    assert caught.value.message == "Command timed out after 5s"


def test_without_a_limit_nothing_is_ever_over() -> None:
    clock = Clock()
    meter = Meter(Budget(seconds=None, output_bytes=None, entries=None, memory_bytes=None), clock)
    clock.now = 1e12
    meter.charge_memory(10**15)
    meter.charge_entries(10**15)
    assert meter.charge_output(10**15) == 10**15
    assert meter.remaining_seconds() is None


def test_entries_are_counted_together() -> None:
    meter = Meter(Budget(entries=10))
    meter.charge_entries(10)
    with pytest.raises(Stopped) as caught:
        meter.charge_entries(1)
    assert (caught.value.code, caught.value.status) == ("limit.entries", STATUS_LIMIT)


def test_released_memory_can_be_charged_again() -> None:
    meter = Meter(Budget(memory_bytes=10))
    meter.charge_memory(10)
    meter.charge_memory(-5)
    meter.charge_memory(5)
    with pytest.raises(Stopped) as caught:
        meter.charge_memory(1)
    assert (caught.value.code, caught.value.status) == ("limit.memory_bytes", STATUS_LIMIT)
    meter.charge_memory(-11)


def test_the_first_reason_is_the_one_that_is_reported() -> None:
    meter = Meter(Budget(entries=1))
    meter.cancel()
    with pytest.raises(Stopped) as caught:
        meter.charge_entries(5)
    assert (caught.value.code, caught.value.status) == ("shell.cancelled", STATUS_CANCELLED)


def test_a_listener_is_called_even_if_it_is_added_late() -> None:
    meter = Meter(Budget())
    early, late = threading.Event(), threading.Event()
    meter.on_stop(early.set)
    meter.cancel()
    meter.on_stop(late.set)
    assert early.is_set()
    assert late.is_set()


def test_waiting_ends_at_once_when_all_is_stopped_already() -> None:
    meter = Meter(Budget(seconds=None))
    meter.cancel()
    with pytest.raises(Stopped):
        meter.wait(10_000)


def test_waiting_ends_with_the_remaining_time() -> None:
    clock = Clock()
    meter = Meter(Budget(seconds=5), clock)
    clock.now = 6
    with pytest.raises(Stopped):
        meter.wait(10_000)


@pytest.mark.parametrize("seconds", ["inf", "1e300", "1e300 inf"])
def test_a_time_too_long_for_any_clock_can_be_waited_for(shell: BareShell, seconds: str) -> None:
    stopper = threading.Thread(target=cancel_when_it_runs, args=(shell,))
    stopper.start()
    result = shell.run(f"sleep {seconds}", budget=Budget(seconds=None))
    stopper.join()
    assert result.exit_code == STATUS_CANCELLED


@pytest.mark.parametrize("value", [-1, float("nan"), True])
@pytest.mark.parametrize("name", ["seconds", "output_bytes", "entries", "memory_bytes"])
def test_a_budget_is_a_number_or_none(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Budget(**{name: value})  # type: ignore[arg-type]  # that it is wrong is the point


# Output


@pytest.mark.parametrize("limit", [0, 1, 5, 11])
def test_output_is_cut_exactly_at_the_limit(shell: BareShell, directory: Path, limit: int) -> None:
    (directory / "f").write_bytes(b"hello world\n")
    result = shell.run("cat f", budget=Budget(output_bytes=limit))
    assert result.stdout == b"hello world\n"[:limit]
    assert result.truncated
    assert (result.error_code, result.exit_code) == ("limit.output_bytes", STATUS_LIMIT)
    assert result.stderr == f"Command printed more than {limit} bytes, the limit\n".encode()
    assert result.message is not None


def test_output_as_long_as_the_limit_is_not_cut(shell: BareShell, directory: Path) -> None:
    (directory / "f").write_bytes(b"hello world\n")
    result = shell.run("cat f", budget=Budget(output_bytes=12))
    assert (result.stdout, result.truncated, result.error_code) == (b"hello world\n", False, None)


def test_standard_output_and_error_are_counted_together(shell: BareShell, directory: Path) -> None:
    (directory / "f").write_bytes(b"12345")
    result = shell.run("cat f missing", budget=Budget(output_bytes=8))
    assert result.stdout == b"12345"
    assert result.stderr == b"catCommand printed more than 8 bytes, the limit\n"
    assert result.truncated


def test_output_that_is_delivered_is_truncated_too(shell: BareShell, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * 300_000)
    told: list[tuple[str, bytes]] = []
    result = shell.run(
        "cat f", on_output=lambda *each: told.append(each), budget=Budget(output_bytes=100_000)
    )
    assert sum(len(data) for stream, data in told if stream == "stdout") == 100_000
    assert told[-1] == ("stderr", b"Command printed more than 100000 bytes, the limit\n")
    assert result.truncated
    assert result.stdout == b""


def test_what_goes_into_a_file_or_a_pipe_is_not_output(shell: BareShell, directory: Path) -> None:
    (directory / "f").write_bytes(b"x\n" * 100_000)
    result = shell.run("cat f > g; cat f | head -n 1", budget=Budget(output_bytes=2))
    assert (result.stdout, result.error_code) == (b"x\n", None)
    assert (directory / "g").stat().st_size == 200_000


def test_many_small_chunks_are_passed_on_together() -> None:
    meter = Meter(Budget())
    told: list[bytes] = []
    output = OutputStream(OutputCollector(meter, told.append), meter)
    for _ in range(BUFFER_BYTES):
        output.write(b"x")
    assert told == [b"x" * BUFFER_BYTES]


def test_nothing_that_several_threads_write_is_lost(restless: None) -> None:
    meter = Meter(Budget())
    collected = OutputCollector(meter)
    output = OutputStream(collected, meter)

    def write(letter: bytes) -> None:
        for _ in range(2_000):
            output.write(letter)
            output.flush()

    threads = [threading.Thread(target=write, args=(bytes([65 + number]),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = collected.content()
    assert [content.count(bytes([65 + number])) for number in range(4)] == [2_000] * 4


# Memory


def test_an_endless_line_is_kept_only_within_the_budget(shell: BareShell, directory: Path) -> None:
    (directory / "f").write_bytes(b"x" * 5_000_000)
    result = shell.run("sort f", budget=Budget(memory_bytes=2_000_000))
    assert (result.error_code, result.exit_code) == ("limit.memory_bytes", STATUS_LIMIT)


def test_lines_that_are_not_read_are_not_charged_forever(shell: BareShell, directory: Path) -> None:
    for number in range(20):
        (directory / f"f{number}").write_bytes(b"first\n" + b"x" * 100_000)
    result = shell.run("head -n 1 *", budget=Budget(memory_bytes=300_000))
    assert result.error_code is None
    assert result.stdout.count(b"first\n") == 20


# Time and cancelling


def test_a_command_that_waits_too_long_is_stopped_and_reported(shell: BareShell) -> None:
    result = shell.run(f"pwd; {LONG}; pwd", budget=Budget(seconds=0.05))
    assert result.stdout == b"/workspace\n"
    assert (result.error_code, result.exit_code) == ("limit.time", STATUS_TIMED_OUT)
    assert result.stderr == b"Command timed out after 0.05s\n"
    assert not result.truncated


def test_no_time_at_all_runs_nothing(shell: BareShell, directory: Path) -> None:
    result = shell.run("pwd > f", budget=Budget(seconds=0))
    assert result.error_code == "limit.time"
    assert not (directory / "f").exists()


def test_after_a_stop_the_shell_continues(shell: BareShell) -> None:
    shell.run(LONG, budget=Budget(seconds=0))
    result = shell.run("env S=$?")
    assert result.exit_code == 0
    assert b"S=124\n" in result.stdout


def cancel_when_it_runs(shell: BareShell) -> None:
    """Cancel as soon as a line is running."""
    while not shell.cancel():
        threading.Event().wait(0.001)


@pytest.mark.parametrize(
    "line",
    [LONG, f"{LONG} | cat", f"cat | {LONG}", f"{LONG} | {LONG} | {LONG}", f"{LONG} > f", f"env {LONG}"],
)
def test_a_waiting_command_can_be_cancelled_from_another_thread(shell: BareShell, line: str) -> None:
    stopper = threading.Thread(target=cancel_when_it_runs, args=(shell,))
    stopper.start()
    result = shell.run(line, budget=Budget(seconds=None))
    stopper.join()
    assert (result.error_code, result.exit_code) == ("shell.cancelled", STATUS_CANCELLED)
    assert result.stderr == b"Command cancelled\n"


def test_what_was_printed_before_a_cancel_is_kept(shell: BareShell) -> None:
    gate = Gate()

    def stop() -> None:
        gate.asked.wait()
        shell.cancel()
        gate.open.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    result = shell.run("cat", stdin=gate)
    stopper.join()
    assert (result.stdout, result.exit_code) == (b"first\n", STATUS_CANCELLED)


def test_one_line_can_be_cancelled_alone(shell: BareShell) -> None:
    gate = Gate()
    stops: list[Callable[[], object]] = []
    results = {}

    def run(name: str, line: str, **options: Any) -> threading.Thread:
        def work() -> None:
            results[name] = shell.run(line, on_start=stops.append, **options)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    first = run("first", "cat", stdin=gate)
    assert gate.asked.wait(60)
    second = run("second", "> second")
    while len(stops) < 2:
        threading.Event().wait(0.001)
    stops[1]()
    # The first line still runs, or waits to.
    second.join()
    gate.open.set()
    first.join()
    assert (results["second"].error_code, results["second"].exit_code) == (
        "shell.cancelled",
        STATUS_CANCELLED,
    )
    assert results["second"].stderr == b"Command cancelled\n"
    assert results["first"].exit_code == 0
    assert not shell.workspace.exists("second")


def test_the_time_to_wait_for_another_line_counts(shell: BareShell) -> None:
    gate = Gate()
    first = threading.Thread(target=shell.run, args=("cat",), kwargs={"stdin": gate})
    first.start()
    assert gate.asked.wait(60)
    result = shell.run("> second", budget=Budget(seconds=0.01))
    gate.open.set()
    first.join()
    assert (result.error_code, result.exit_code, result.cwd) == ("limit.time", STATUS_TIMED_OUT, "/workspace")
    assert not shell.workspace.exists("second")


def test_a_line_that_is_cancelled_before_it_begins_does_not_run(shell: BareShell) -> None:
    result = shell.run("> f", on_start=lambda stop: stop())
    assert (result.error_code, result.exit_code) == ("shell.cancelled", STATUS_CANCELLED)
    assert not shell.workspace.exists("f")


def test_cancelling_an_idle_shell_does_nothing(shell: BareShell) -> None:
    assert shell.cancel() == 0
    assert shell.run("pwd").exit_code == 0


def test_a_stop_is_recorded(shell: BareShell, workspace: Workspace) -> None:
    shell.run("sleep 5", budget=Budget(seconds=0))
    (event,) = list(workspace.changes())
    assert (event.operation, event.path, event.error) == ("shell", "sleep 5", "limit.time")


# asyncio


def test_arun_returns_what_run_returns(shell: BareShell) -> None:
    result = asyncio.run(shell.arun("pwd; cat missing"))
    assert (result.stdout, result.exit_code) == (b"/workspace\n", 1)


def test_a_task_that_is_cancelled_stops_its_command(shell: BareShell) -> None:
    async def main() -> None:
        began = asyncio.Event()
        loop = asyncio.get_running_loop()

        def told(stream: str, data: bytes) -> None:
            loop.call_soon_threadsafe(began.set)

        line = f"which -z; {LONG} | {LONG}"
        task = asyncio.create_task(shell.arun(line, on_output=told, budget=Budget(seconds=None)))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The command has ended, or this would wait for it.
        assert shell.run("pwd").exit_code == 0

    asyncio.run(main())


def test_cancel_stops_an_awaited_command_too(shell: BareShell) -> None:
    stopper = threading.Thread(target=cancel_when_it_runs, args=(shell,))
    stopper.start()
    result = asyncio.run(shell.arun(LONG, budget=Budget(seconds=None)))
    stopper.join()
    assert result.exit_code == STATUS_CANCELLED
