"""A worker that was taken over, at the other end of the line of a script: the host ends it and goes on."""

from __future__ import annotations

import io
import json
import select
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from carrel.errors import SandboxExecutionError
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.call import CancellableCall, RunOutcome
from carrel.runtimes.frames import HEAD_BYTES, FrameKind, FrameSocket, FrameSocketBroken
from carrel.runtimes.result import TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.wasm import exchange
from carrel.runtimes.wasm.exchange import NotStartedError, run_script
from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.runtimes.wasm.worker_process import WasmWorker
from carrel.values import MIB

pytestmark = [pytest.mark.attack, pytest.mark.timeout(60)]

POLICY = ExecutionPolicy(
    timeout_seconds=3600,
    memory_bytes=40 * MIB,
    stdout_max_bytes=1000,
    stderr_max_bytes=1000,
    file_operations=50,
)
SHORT = replace(POLICY, timeout_seconds=0.05)
"""For those whose time has to be over."""
HEADER = struct.Struct("<BII")
FILE = bytes(8 * MIB)
"""What every file holds: more than fits into a socket."""

Play = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_GRACE_SECONDS", 0.05)


class Process:
    """What the host knows of the process at the other end: it can be told to stop a script, and be killed."""

    def __init__(self, theirs: socket.socket) -> None:
        self.cancelled = 0
        self.is_ended = False
        self.was_ended_early = False
        """Whether the host ended it, not the test."""
        self._theirs = theirs

    def cancel(self, number: int, serial: int) -> None:
        self.cancelled += 1

    def end(self) -> str:
        self.is_ended = True
        with suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)
        return "it was stopped"

    def cause(self) -> str:
        return self.end()


class Files:
    """Answers everything with a large file."""

    roots: tuple[str, ...] = ()

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> tuple[dict[str, object], bytes]:
        return {}, FILE


def _frame(kind: int, head: object = None, body: bytes = b"") -> bytes:
    text = b"" if head is None else json.dumps(head).encode()
    return HEADER.pack(kind, len(text), len(body)) + text + body


def _take_order(theirs: socket.socket) -> None:
    kind, head, body = HEADER.unpack(theirs.recv(HEADER.size, socket.MSG_WAITALL))
    assert kind == FrameKind.RUN
    theirs.recv(head + body, socket.MSG_WAITALL)


def _play(
    play: Play,
    *,
    source: bytes = b"pass",
    stdin: bytes | io.BytesIO = b"",
    call: CancellableCall | None = None,
    takes_order: bool = True,
    files: Files | None = None,
    policy: ExecutionPolicy = POLICY,
) -> tuple[RunOutcome, Process]:
    """Run a script whose other end is *play*, in a thread of its own."""
    ours, theirs = socket.socketpair()
    process = Process(theirs)
    problems: list[Exception] = []

    def other_end() -> None:
        try:
            if takes_order:
                _take_order(theirs)
            play(theirs)
        except (BrokenPipeError, ConnectionResetError, FrameSocketBroken):
            return
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=other_end)
    thread.start()
    interpreter = InterpreterHandle(
        cast("WasmWorker", process), 1, FrameSocket(ours, body_bytes=0), metered=False
    )
    script = Script(source=source, cwd="/app", stdin=stdin)
    try:
        ending = run_script(call or CancellableCall(), interpreter, script, policy, files or Files())
    finally:
        process.was_ended_early = process.is_ended
        interpreter.close()
        process.end()
        thread.join()
        theirs.close()
    assert not problems
    return ending, process


def _wait(theirs: socket.socket) -> None:
    """Take what comes, and say nothing, until the host hangs up."""
    while theirs.recv(2**16):
        pass


def _be_deaf(theirs: socket.socket) -> None:
    """Take nothing, until the host hangs up."""
    waiting = select.poll()
    waiting.register(theirs, 0)
    waiting.poll()


def _ask_deaf(theirs: socket.socket) -> None:
    theirs.sendall(_frame(FrameKind.CALL, {"operation": "read", "path": "/app/f"}) * 3)
    _be_deaf(theirs)


def _say(*pieces: bytes) -> Play:
    def play(theirs: socket.socket) -> None:
        for piece in pieces:
            theirs.sendall(piece)
        _wait(theirs)

    return play


def _for_ever(piece: bytes) -> Play:
    def play(theirs: socket.socket) -> None:
        while True:
            theirs.sendall(piece)

    return play


BROKEN = {
    "garbage": b"\xff" * 100,
    "text": b"GET / HTTP/1.1\r\n\r\n",
    "a head that is too large": HEADER.pack(FrameKind.DONE, HEAD_BYTES + 1, 0),
    "a body that is too large": HEADER.pack(FrameKind.STDOUT, 0, 2**32 - 1),
    "a head that is no JSON": HEADER.pack(FrameKind.DONE, 4, 0) + b"\xff\xfe{}",
    "a head that is a list": _frame(FrameKind.DONE, []),
    "a head that is a number": _frame(FrameKind.CALL, 1),
    "a head that is nested too deep": HEADER.pack(FrameKind.DONE, 2**20, 0) + b"[" * 2**20,
    "a head of deep objects": HEADER.pack(FrameKind.CALL, 10**6, 0) + b'{"a":' * 200_000,
    "a number that is too long": HEADER.pack(FrameKind.DONE, 10_005, 0) + b'{"a":' + b"9" * 10_000,
    "an order": _frame(FrameKind.RUN, {}),
    "an answer": _frame(FrameKind.ANSWER, {}),
    "that it is ready": _frame(FrameKind.READY, {}),
    "that it failed": _frame(FrameKind.FAILED, {"error": "no"}),
    "no kind": _frame(0, {}),
    "a kind that there is not": _frame(255, {}),
    "a wish for input that it has": _frame(FrameKind.INPUT, {"count": 10}),
    "an end that says nothing": _frame(FrameKind.DONE, {}),
    "an end without a head": _frame(FrameKind.DONE),
    "an exit code that is text": _frame(FrameKind.DONE, {"exit_code": "0"}),
    "an exit code that is a truth": _frame(FrameKind.DONE, {"exit_code": False}),
    "an exit code that is negative": _frame(FrameKind.DONE, {"exit_code": -1}),
    "an exit code that is huge": _frame(FrameKind.DONE, {"exit_code": 10**4000}),
    "a trap that is none": _frame(FrameKind.DONE, {"trapped": ["deadline"]}),
}


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_what_breaks_the_rules_ends_the_process(said: bytes) -> None:
    ending, process = _play(_say(said))
    assert ending.reason is TrapReason.ENGINE
    assert process.was_ended_early


DONE: dict[str, object] = {"exit_code": 0, "trapped": None, "lost": [], "ended": None}
LIES: dict[str, dict[str, object]] = {
    "memory": {"memory_bytes": 10**4000, "fuel_consumed": -1},
    "no numbers": {"memory_bytes": "much", "fuel_consumed": True},
    "lost is text": {"lost": "everything"},
    "lost is an object": {"lost": {"path": "x"}},
    "lost holds numbers": {"lost": [1, None, [], "x"]},
    "truncated": {"stdout_truncated": "yes", "stderr_truncated": 1},
    "unknown keys": {"stdout": "forged", "files_created": ["x"], "success": True},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_an_end_with_wrong_values_leaves_them_out(lie: dict[str, object]) -> None:
    ending, _ = _play(_say(_frame(FrameKind.DONE, DONE | lie)))
    assert ending == RunOutcome(exit_code=0, is_usable=True)


def test_lost_writes_are_told_up_to_a_ceiling() -> None:
    lost: list[object] = [{"path": "x" * 10_000, "error": ["E"]}, {"path": {}}, {}] * 800
    ending, _ = _play(_say(_frame(FrameKind.DONE, DONE | {"lost": lost, "exit_code": 300})))
    assert ending.exit_code == 300 & 0xFF
    assert len(ending.lost) <= 1000
    assert all(len(text) <= 4096 for one in ending.lost for text in one.values())


def test_a_trap_with_a_long_name_is_told_in_part() -> None:
    ending, _ = _play(_say(_frame(FrameKind.DONE, DONE | {"trapped": "x" * 10**6})))
    assert ending.reason is TrapReason.ABORTED
    assert len(ending.detail) <= 4096


FLOODS = {
    "output": (_frame(FrameKind.STDOUT, None, bytes(MIB)), TrapReason.TIMEOUT),
    "output of nothing": (_frame(FrameKind.STDERR), TrapReason.TIMEOUT),
    "output in small pieces": (_frame(FrameKind.STDOUT, None, b"x") * 1000, TrapReason.TIMEOUT),
}


@pytest.mark.parametrize(("said", "reason"), FLOODS.values(), ids=FLOODS)
def test_a_flood_ends_in_time_and_is_not_kept(said: bytes, reason: TrapReason) -> None:
    tracemalloc.start()
    ending, process = _play(_for_ever(said), policy=SHORT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ending.reason is reason
    assert process.was_ended_early
    assert len(ending.stdout) <= POLICY.stdout_max_bytes
    assert peak < 20 * MIB


def test_calls_without_end_are_stopped_by_their_number() -> None:
    def play(theirs: socket.socket) -> None:
        line = FrameSocket(theirs)
        while True:
            line.send(FrameKind.CALL, {"operation": "stat", "path": "/app/f"})
            line.receive()

    ending, process = _play(play)
    assert ending.reason is TrapReason.FILE_OPERATIONS
    assert process.cancelled
    assert process.was_ended_early


@pytest.mark.parametrize("exit_code", [0, 1])
def test_one_that_ends_by_itself_after_too_many_calls_has_passed_the_limit(exit_code: int) -> None:
    def play(theirs: socket.socket) -> None:
        line = FrameSocket(theirs)
        for _ in range(2):
            line.send(FrameKind.CALL, {"operation": "stat", "path": "/app/f"})
            line.receive()
        line.send(FrameKind.DONE, DONE | {"exit_code": exit_code})

    ending, process = _play(play, policy=replace(POLICY, file_operations=1))
    assert (ending.reason, ending.exit_code) == (TrapReason.FILE_OPERATIONS, None)
    assert not process.was_ended_early


STUCK: dict[str, Play] = {
    "says nothing": _wait,
    "half a header": _say(b"\x04\x00"),
    "half a head": _say(HEADER.pack(FrameKind.DONE, 100, 0) + b'{"exit'),
    "half a body": _say(HEADER.pack(FrameKind.STDOUT, 0, 40 * MIB) + b"x" * 1000),
    "asks and does not listen": _ask_deaf,
}


@pytest.mark.parametrize("play", STUCK.values(), ids=STUCK)
def test_one_that_is_stuck_is_ended_after_its_time(play: Play) -> None:
    ending, process = _play(play, policy=SHORT)
    assert ending.reason is TrapReason.TIMEOUT
    assert process.was_ended_early


@pytest.mark.parametrize("play", STUCK.values(), ids=STUCK)
def test_one_that_is_stuck_is_ended_when_it_is_cancelled(play: Play) -> None:
    call = CancellableCall()

    def cancel_and_play(theirs: socket.socket) -> None:
        call.cancel()
        play(theirs)

    ending, process = _play(cancel_and_play, call=call)
    assert ending.reason is TrapReason.CANCELLED
    assert process.was_ended_early


def test_one_that_waited_for_a_slow_answer_has_its_time_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the host takes beyond the time of a script is not held against it, nor against its neighbours."""

    now = [time.monotonic()]
    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: now[0]))

    class SlowFiles(Files):
        def answer(self, head: dict[str, object], body: bytes | bytearray) -> tuple[dict[str, object], bytes]:
            now[0] += 2 * POLICY.timeout_seconds
            return {}, b""

    def play(theirs: socket.socket) -> None:
        line = FrameSocket(theirs)
        line.send(FrameKind.CALL, {"operation": "stat", "path": "/app/f"})
        line.receive()
        line.send(FrameKind.STDOUT, {}, b"late")
        line.send(FrameKind.DONE, {"trapped": "deadline"})

    ending, process = _play(play, files=SlowFiles())
    assert (ending.reason, process.was_ended_early) == (TrapReason.TIMEOUT, False)


def test_one_that_does_not_take_the_script_is_ended_after_its_time() -> None:
    ending, process = _play(_be_deaf, source=bytes(4 * MIB), takes_order=False, policy=SHORT)
    assert ending.reason is TrapReason.TIMEOUT
    assert process.was_ended_early


def test_wishes_for_input_without_end_stop_in_time() -> None:
    play = _for_ever(_frame(FrameKind.INPUT, {"count": 2**40}))
    ending, process = _play(play, stdin=io.BytesIO(bytes(1000)), policy=SHORT)
    assert ending.reason is TrapReason.TIMEOUT
    assert process.was_ended_early


@pytest.mark.parametrize("count", [None, "x", -1, 0, True, 10**30, [1]])
def test_a_wish_for_input_with_a_wrong_number_gets_some(count: object) -> None:
    answers = []

    def play(theirs: socket.socket) -> None:
        theirs.sendall(_frame(FrameKind.INPUT, {"count": count}))
        answers.append(FrameSocket(theirs).receive())
        theirs.sendall(_frame(FrameKind.DONE, DONE))

    ending, _ = _play(play, stdin=io.BytesIO(b"given"))
    assert ending.exit_code == 0
    assert b"given".startswith(bytes(answers[0].body if answers[0] else b"no answer"))


def _cut(after: int) -> Play:
    """Hang up after so many bytes of an honest conversation."""
    said = _frame(FrameKind.STDOUT, None, b"out") + _frame(FrameKind.DONE, DONE)

    def play(theirs: socket.socket) -> None:
        theirs.sendall(said[:after])
        theirs.shutdown(socket.SHUT_RDWR)

    return play


FIRST_FRAME = 12
"""How long the first frame is; before it nothing has begun."""


@pytest.mark.parametrize("after", [0, 1, 8, 9, 10, 12, 13, 20, 21, 30, 60])
def test_one_that_hangs_up_is_a_crash_wherever_it_does(after: int) -> None:
    if after < FIRST_FRAME:
        with pytest.raises(NotStartedError):
            _play(_cut(after))
        return
    ending, process = _play(_cut(after))
    assert ending.reason is TrapReason.ENGINE
    assert ending.stdout == b"out"
    assert process.was_ended_early


def test_one_that_hangs_up_before_the_script_has_not_begun() -> None:
    with pytest.raises(NotStartedError):
        _play(lambda theirs: theirs.shutdown(socket.SHUT_RDWR), takes_order=False, source=bytes(MIB))


def test_an_honest_end_is_believed() -> None:
    ending, process = _play(_say(_frame(FrameKind.STDOUT, None, b"out"), _frame(FrameKind.DONE, DONE)))
    assert (ending.exit_code, ending.reason, ending.stdout) == (0, None, b"out")
    assert not process.cancelled


NEVER_READY = {
    "garbage": (b"\xff" * 100, FrameSocketBroken),
    "a body": (HEADER.pack(FrameKind.READY, 0, 2**31), FrameSocketBroken),
    "deep": (HEADER.pack(FrameKind.READY, 2**20, 0) + b"[" * 2**20, FrameSocketBroken),
    "an end": (_frame(FrameKind.DONE, DONE), SandboxExecutionError),
    "output": (_frame(FrameKind.STDOUT), SandboxExecutionError),
    "a failure": (
        _frame(FrameKind.FAILED, {"error": ["x" * 10**6], "unusable": "yes"}),
        SandboxExecutionError,
    ),
}


@pytest.mark.parametrize(("said", "kind"), NEVER_READY.values(), ids=NEVER_READY)
def test_an_interpreter_that_is_never_ready_is_refused(said: bytes, kind: type[Exception]) -> None:
    ours, theirs = socket.socketpair()
    process = cast("WasmWorker", Process(theirs))
    interpreter = InterpreterHandle(process, 1, FrameSocket(ours, body_bytes=0), metered=False)
    sender = threading.Thread(target=lambda: _send_all(theirs, said))
    sender.start()
    with ours, theirs:
        with pytest.raises(kind) as raised:
            interpreter.require_ready(time.monotonic() + 3600)
        assert type(raised.value) is kind
        assert len(str(raised.value)) < 3000
        theirs.shutdown(socket.SHUT_RDWR)
        sender.join()
        assert not interpreter.is_ready()


@pytest.mark.parametrize("said", [b"", HEADER.pack(FrameKind.READY, 100, 0)], ids=["nothing", "half a frame"])
def test_an_interpreter_that_does_not_say_that_it_is_ready_is_given_up(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(said)
        interpreter = InterpreterHandle(
            cast("WasmWorker", Process(theirs)), 1, FrameSocket(ours, body_bytes=0), metered=False
        )
        with pytest.raises(FrameSocketBroken):
            interpreter.require_ready(time.monotonic())
        assert not interpreter.is_ready()


def _send_all(theirs: socket.socket, said: bytes) -> None:
    with suppress(OSError):
        theirs.sendall(said)
