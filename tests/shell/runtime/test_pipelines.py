"""Pipelines and lists of commands: what runs, in which order, and how it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.errors import ClosedError
from carrel.shell.budget import Budget, Meter, Stopped
from carrel.shell.command.context import ShellResources
from carrel.shell.command.table import COMMANDS
from carrel.shell.language.parser import parse
from carrel.shell.runtime.execution import LineExecution
from carrel.shell.runtime.shell import BareShell
from carrel.shell.state import ShellState
from carrel.shell.streams import PIPE_BYTES, CommandStreams, InputStream, OutputStream, Pipe, PipeClosed
from carrel.workspace.workspace import Workspace

GOOD = "which -s pwd"
BAD = "which -s nothing"


@pytest.fixture
def shell(workspace: Workspace, directory: Path) -> BareShell:
    (directory / "f").write_bytes(b"one\ntwo\n")
    (directory / "d").mkdir()
    return BareShell(workspace, pipelines=True)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert not [each for each in threading.enumerate() if each not in before]


class Endless:
    """Endless standard input that counts the chunks read from it."""

    def __init__(self, piece: bytes = b"line\n" * 1000) -> None:
        self.piece = piece
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.taken += len(self.piece)
            yield self.piece


# Status


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (f"{GOOD} | {BAD}", 1),
        (f"{BAD} | {GOOD}", 0),
        (f"! {GOOD}", 1),
        (f"! {BAD}", 0),
        (f"! {BAD} | {GOOD}", 1),
        (f"! ! {BAD}", 1),
        ("nothing | pwd", 0),
        ("pwd | nothing", 127),
        (f"set -o pipefail; {BAD} | {GOOD}", 1),
        (f"set -o pipefail; nothing | {BAD} | {GOOD}", 1),
        (f"set -o pipefail; {BAD} | nothing | {GOOD}", 127),
        (f"set -o pipefail; {GOOD} | {GOOD}", 0),
        (f"set -o pipefail; set +o pipefail; {BAD} | {GOOD}", 0),
        (f"set -o pipefail; ! {BAD} | {GOOD}", 0),
        ("# nothing", 0),
        (f"{BAD}; V=1", 0),
    ],
)
def test_the_status_is_that_of_the_last_command(shell: BareShell, line: str, status: int) -> None:
    assert shell.run(line).exit_code == status


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        (f"{GOOD} && pwd", True),
        (f"{BAD} && pwd", False),
        (f"{GOOD} || pwd", False),
        (f"{BAD} || pwd", True),
        (f"{BAD}; pwd", True),
        (f"{BAD}\npwd", True),
        (f"{BAD} && {GOOD} || pwd", True),
        (f"{GOOD} || {GOOD} && pwd", True),
        (f"{GOOD} || {BAD} && pwd", True),
        (f"{BAD} || {GOOD} && pwd", True),
        (f"{BAD} && {BAD}; pwd", True),
        (f"! {BAD} && pwd", True),
        (f"{BAD} || {BAD} || pwd", True),
        (f"{GOOD} && {BAD} && pwd", False),
        (f"{BAD} | {GOOD} && pwd", True),
    ],
)
def test_and_and_or_are_read_from_left_to_right_as_in_sh(shell: BareShell, line: str, printed: bool) -> None:
    assert shell.run(line).stdout == (b"/workspace\n" if printed else b"")


def test_a_comment_alone_does_not_fail_because_the_line_before_did(shell: BareShell) -> None:
    shell.run(BAD)
    assert shell.run("# a comment").exit_code == 0


# What flows


def test_each_command_reads_what_the_one_before_writes(shell: BareShell) -> None:
    assert shell.run("cat f | cat | cat - f | head -n 3").stdout == b"one\ntwo\none\n"


def test_the_first_command_reads_the_standard_input_of_the_line(shell: BareShell) -> None:
    assert shell.run("cat | head -n 1", stdin=b"a\nb\n").stdout == b"a\n"
    assert shell.run("cat", stdin=[b"a", b"b"]).stdout == b"ab"


def test_what_one_command_leaves_of_the_input_the_next_one_finds(shell: BareShell) -> None:
    assert shell.run("head -n 1; cat", stdin=[b"a\n", b"b\n"]).stdout == b"a\nb\n"


def test_errors_of_all_commands_are_collected(shell: BareShell) -> None:
    result = shell.run("cat x | cat y | cat f")
    assert result.stdout == b"one\ntwo\n"
    assert sorted(result.stderr.splitlines()) == [
        b"cat: x: No such file or directory",
        b"cat: y: No such file or directory",
    ]


@pytest.mark.parametrize("line", ["cat | head -n 1", "cat | cat | cat | head -n 1", "cat | which -s pwd"])
def test_an_endless_command_ends_when_its_pipe_has_no_reader(shell: BareShell, line: str) -> None:
    endless = Endless()
    result = shell.run(line, stdin=endless, budget=Budget(seconds=None))
    assert result.stdout in (b"line\n", b"")
    assert result.exit_code == 0
    # Each pipe and each buffer holds some of it, but not more and more.
    assert endless.taken < 12 * PIPE_BYTES


def test_a_large_file_into_a_small_reader_is_not_read_to_its_end(shell: BareShell, directory: Path) -> None:
    with (directory / "big").open("wb") as file:
        file.write(b"first\n")
        file.truncate(2**32)
    result = shell.run("cat big | head -n 1", budget=Budget(seconds=None))
    assert (result.stdout, result.exit_code) == (b"first\n", 0)


def test_a_writer_without_a_reader_has_the_status_of_a_broken_pipe(shell: BareShell) -> None:
    shell.run("set -o pipefail")
    assert shell.run("cat | which -s pwd", stdin=Endless()).exit_code == 141


def test_a_pipe_holds_at_most_its_size_and_one_chunk() -> None:
    meter = Meter(Budget(seconds=None))
    pipe = Pipe(meter)
    written = 0
    full = threading.Event()

    def write() -> None:
        nonlocal written
        while written < 10 * PIPE_BYTES:
            if written >= PIPE_BYTES:
                full.set()
            pipe.write(b"x" * 2**16)
            written += 2**16
        pipe.close()

    writer = threading.Thread(target=write)
    writer.start()
    full.wait()
    assert written == PIPE_BYTES
    assert sum(map(len, pipe)) == 10 * PIPE_BYTES
    writer.join()


def test_a_writer_whose_reader_never_starts_is_woken_by_a_stop() -> None:
    meter = Meter(Budget(seconds=None))
    pipe = Pipe(meter)
    pipe.write(b"x" * PIPE_BYTES)
    meter.cancel()
    with pytest.raises(Stopped):
        pipe.write(b"y")


def test_a_writer_whose_reader_never_starts_ends_with_its_time() -> None:
    pipe = Pipe(Meter(Budget(seconds=0.01)))
    pipe.write(b"x" * PIPE_BYTES)
    with pytest.raises(Stopped):
        pipe.write(b"y")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", ["reader", "writer"])
def test_stopping_a_line_that_waits_leaves_no_pipe_locked(end: str) -> None:
    now = [0.0]
    meter = Meter(Budget(seconds=5), lambda: now[0])
    pipe = Pipe(meter)
    looks: list[str] = []

    def look() -> None:
        other = threading.Thread(target=pipe.close, daemon=True)
        other.start()
        other.join()
        looks.append("free")

    meter.on_stop(look)
    now[0] = 6
    if end == "reader":
        with pytest.raises(Stopped):
            list(pipe)
    else:
        pipe.write(b"x" * PIPE_BYTES)
        with pytest.raises(Stopped):
            pipe.write(b"y")
    assert looks == ["free"]


def test_many_stages_whose_time_is_over_at_once_all_end(shell: BareShell) -> None:
    for _ in range(20):
        result = shell.run("sleep 1000 | cat | cat | cat | cat", budget=Budget(seconds=0.002))
        assert result.error_code == "limit.time"


def test_an_aborted_pipe_is_not_taken_for_complete() -> None:
    pipe = Pipe(Meter(Budget()))
    pipe.write(b"x")
    pipe.abort()
    with pytest.raises(PipeClosed):
        list(pipe)


# Ways to fail


@pytest.mark.parametrize(
    "line", ["cat big | cat < missing", "cat big | nothing", "cat big | cat -z", "cat big | ''"]
)
def test_a_stage_that_does_not_start_ends_the_one_before_it(
    shell: BareShell, directory: Path, line: str
) -> None:
    (directory / "big").write_bytes(b"x" * (PIPE_BYTES * 3))
    result = shell.run(line, budget=Budget(seconds=None))
    assert result.exit_code != 0
    assert result.error_code is None


def test_a_thread_that_cannot_be_started_ends_the_whole_line(
    shell: BareShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Thread.start
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if started:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="start new thread"):
        shell.run("cat | cat | cat", stdin=Endless(), budget=Budget(seconds=None))
    monkeypatch.undo()
    assert shell.run("pwd").exit_code == 0


def test_changes_of_the_shell_in_a_pipeline_do_not_last(shell: BareShell) -> None:
    for line in ("cd d | cat", "pwd | cd d", "export V=1 | cat", "V=1 | cat", "set -o pipefail | cat"):
        assert shell.run(line).exit_code == 0
    assert shell.cwd == "/workspace"
    assert "V" not in shell.env
    assert shell.run(f"{BAD} | {GOOD}").exit_code == 0


def test_a_stage_sees_the_directory_it_went_to(shell: BareShell) -> None:
    assert shell.run("cd d && pwd | cat").stdout == b"/workspace/d\n"


def test_exit_ends_the_line(shell: BareShell) -> None:
    result = shell.run("pwd; exit 3; pwd")
    assert (result.stdout, result.exit_code, result.ended) == (b"/workspace\n", 3, True)
    assert shell.run("exit").exit_code == 3


def test_exit_in_a_pipeline_ends_only_its_stage(shell: BareShell) -> None:
    result = shell.run("exit 3 | cat f; pwd")
    assert (result.stdout, result.ended) == (b"one\ntwo\n/workspace\n", False)
    assert shell.run("cat f | exit 3").exit_code == 3
    assert not shell.run("cat f | exit 3").ended


def test_nested_commands_are_limited(shell: BareShell) -> None:
    assert shell.run("env " * 10 + "pwd").stdout == b"/workspace\n"
    result = shell.run("env " * 10_000 + "pwd")
    assert (result.exit_code, result.stdout) == (1, b"")
    assert b"nested more than 20 deep" in result.stderr


def test_the_error_of_a_redirection_may_go_to_a_pipe_without_a_reader(workspace: Workspace) -> None:
    meter = Meter(Budget())
    pipe = Pipe(meter)
    pipe.close_reader()
    output = OutputStream(pipe, meter)
    execution = LineExecution(
        ShellResources(workspace, None, None, COMMANDS), ShellState("/workspace"), meter
    )
    line = parse("pwd 2>&1 < missing", pipelines=True)
    assert execution.run(line, CommandStreams(InputStream(), output, output)) == 1


# Somebody who listens and fails


def broken(stream: str, data: bytes) -> None:
    raise BrokenPipeError(stream)


@pytest.mark.parametrize(
    "line",
    [
        "pwd",
        "cat f",
        "cat f | cat",
        "cat x",
        "cat x | sleep 1000",
        "sleep 1000 | cat f",
        "cat f x > g",
        "pwd; pwd",
    ],
)
def test_a_listener_that_raises_ends_the_line_and_is_heard(shell: BareShell, line: str) -> None:
    with pytest.raises(BrokenPipeError):
        shell.run(line, on_output=broken, budget=Budget(seconds=None))
    assert shell.run("pwd").exit_code == 0


def test_an_input_that_raises_ends_the_line_and_is_heard(shell: BareShell) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a\n"
        raise OSError("no more")

    for line in ("cat", "cat | cat", "cat | sleep 1000", "cat > g"):
        with pytest.raises(OSError, match="no more"):
            shell.run(line, stdin=pieces(), budget=Budget(seconds=None))


def test_a_listener_is_never_called_by_two_threads_at_once(shell: BareShell) -> None:
    inside: list[str] = []
    met: list[str] = []

    def listen(stream: str, data: bytes) -> None:
        met.extend(inside)
        inside.append(stream)
        threading.Event().wait(0.001)
        inside.remove(stream)

    shell.run("cat " + "x " * 50 + "| cat " + "y " * 50 + "| cat f", on_output=listen)
    assert not met


def test_a_closed_workspace_is_reported_from_within_a_pipeline(
    shell: BareShell, workspace: Workspace
) -> None:
    workspace.close()
    for line in (
        "cat f",
        "cat f | cat",
        "cat | cat f",
        "cat *",
        "cat < f",
        "cat > g",
        "cd d",
        "cat >> g | cat",
    ):
        with pytest.raises(ClosedError):
            shell.run(line)
