"""Run a script in an interpreter: hand it over, answer its file operations, collect its output."""

from __future__ import annotations

import time
from typing import Protocol

from carrel.policy.execution import MAX_NUMBER, ExecutionPolicy
from carrel.runtimes.call import CancellableCall, Capture, OnOutput, RunOutcome, read_some
from carrel.runtimes.frames import Frame, FrameKind, FrameSocketBroken, FrameSocketClosed
from carrel.runtimes.host_tools import RunningCall, no_such_tool
from carrel.runtimes.result import TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.workspace.workspace import MOUNT

_GRACE_SECONDS = 5.0
"""Time that a guest has to stop before its whole process is killed."""
_SLICE_SECONDS = 0.05
_EXTRA_BYTES = 2**20
"""Maximum size of a frame beyond a file, and of one read of standard input."""
_MAX_LOST = 1_000
_MAX_DETAIL_CHARACTERS = 4_096
"""Maximum length of a text that the guest reports about itself."""
_TRAPS = {
    "deadline": TrapReason.TIMEOUT,
    "cancelled": TrapReason.CANCELLED,
    "out of fuel": TrapReason.FUEL,
    "stack overflow": TrapReason.STACK,
}


class GuestFiles(Protocol):
    """Answers the file operations of a guest."""

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths beneath which there are files, also where they lie in the guest's own `/tmp`."""
        ...

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> tuple[dict[str, object], bytes]:
        """Return the head and the body of the answer."""
        ...


class NotStartedError(Exception):
    """The process died before the script started, so the script can run in another one."""


def run_script(
    call: CancellableCall,
    interpreter: InterpreterHandle,
    script: Script,
    policy: ExecutionPolicy,
    files: GuestFiles,
    *,
    timeout_seconds: float | None = None,
    is_last: bool = True,
    is_check: bool = False,
    on_output: OnOutput | None = None,
) -> RunOutcome:
    """Run *script* in *interpreter*, and answer its file operations until it ends.

    An exception in *on_output*, or one that is raised in this thread, stops the guest and propagates.

    Raises:
        NotStartedError: The process died before the script started.
    """
    exchange = _Exchange(call, interpreter, script, policy, files, on_output)
    try:
        with call.stopped_by(interpreter.cancel):
            seconds = policy.timeout_seconds if timeout_seconds is None else timeout_seconds
            exchange.begin(seconds, is_last=is_last, is_check=is_check)
            if call.is_cancelled:
                interpreter.cancel()
            while exchange.outcome is None:
                exchange.step()
            return exchange.outcome
    except BaseException:
        interpreter.cancel()
        interpreter.close()
        raise


class _Exchange:
    """The exchange of frames with an interpreter while a script runs."""

    def __init__(
        self,
        call: CancellableCall,
        interpreter: InterpreterHandle,
        script: Script,
        policy: ExecutionPolicy,
        files: GuestFiles,
        on_output: OnOutput | None,
    ) -> None:
        self.outcome: RunOutcome | None = None
        """How the script ended; `None` while it runs."""
        self._call = call
        self._interpreter = interpreter
        self._script = script
        self._policy = policy
        self._files = files
        self._on_output = on_output
        self._streams = {
            int(FrameKind.STDOUT): Capture("stdout", policy.stdout_max_bytes, keep=script.keep_output),
            int(FrameKind.STDERR): Capture("stderr", policy.stderr_max_bytes, keep=script.keep_output),
        }
        self._has_started = False
        self._operations = 0
        self._wanted_bytes = 0
        self._tool_call: RunningCall | None = None
        """The function of the host that the guest waits for."""
        self._reason: TrapReason | None = None
        self._stop_at = 0.0
        self._grace_from = 0.0

    def begin(self, timeout_seconds: float, *, is_last: bool, is_check: bool) -> None:
        """Send the script to the interpreter."""
        policy, script = self._policy, self._script
        given = script.stdin if isinstance(script.stdin, bytes) else b""
        self._stop_at = time.monotonic() + timeout_seconds
        self._interpreter.frames.body_bytes = policy.memory_bytes + _EXTRA_BYTES
        request = script.guest_request() | {
            "env": dict(policy.env),
            "paths": [path for path in policy.env.get("PYTHONPATH", "").split(":") if path],
            "fresh": not self._interpreter.scripts,
            "last": is_last,
            "check": is_check,
            "input": bool(given) or not isinstance(script.stdin, bytes),
        }
        head: dict[str, object] = {
            "request": request,
            "source_bytes": len(script.source),
            "start": script.cwd if script.cwd in (MOUNT, policy.guest_mount_path) else None,
            "roots": self._files.roots,
            "requests_input": not isinstance(script.stdin, bytes),
            "timeout_seconds": timeout_seconds,
            "memory_bytes": policy.memory_bytes,
            "fuel_budget": policy.fuel_budget,
            "stdout_max_bytes": policy.stdout_max_bytes,
            "stderr_max_bytes": policy.stderr_max_bytes,
            "tmp_bytes": policy.tmp_bytes,
            "open_files": policy.open_files,
        }
        try:
            self._interpreter.begin(head, script.source + given, is_overdue=self._is_overdue)
        except FrameSocketBroken as error:
            self._crashed(error)

    def step(self) -> None:
        """Handle the next frame, if one arrives soon."""
        was_early = time.monotonic() < self._stop_requested_at()
        try:
            if self._wanted_bytes:
                self._send_input()
            elif self._tool_call is not None:
                self._send_tool_answer(self._tool_call)
            elif (frame := self._interpreter.frames.receive(time.monotonic() + _SLICE_SECONDS)) is not None:
                self._has_started = True
                self._handle(frame)
        except FrameSocketBroken as error:
            self._crashed(error)
        if was_early:
            # The time spent on answering does not count against the guest.
            self._grace_from = time.monotonic()
        elif self.outcome is None and self._is_overdue():
            self._crashed()

    def _handle(self, frame: Frame) -> None:
        if frame.kind in self._streams:
            kept = self._streams[frame.kind].add(bytes(frame.body))
            if kept and self._on_output is not None:
                self._on_output(self._streams[frame.kind].name, kept)
        elif frame.kind == FrameKind.CALL:
            self._send(*self._answer(frame))
        elif frame.kind == FrameKind.INPUT and not isinstance(self._script.stdin, bytes):
            count = _number(frame.head.get("count"))
            self._wanted_bytes = min(max(count or 1, 1), _EXTRA_BYTES)
        elif frame.kind == FrameKind.TOOL:
            self._start_tool(bytes(frame.body))
        elif frame.kind == FrameKind.DONE:
            self._done(frame.head)
        elif frame.kind == FrameKind.BEGUN:
            return
        else:
            raise FrameSocketBroken("the worker sent an unexpected frame")

    def _send(self, head: dict[str, object], body: bytes) -> None:
        self._interpreter.frames.send(FrameKind.ANSWER, head, body, is_overdue=self._is_overdue)

    def _answer(self, frame: Frame) -> tuple[dict[str, object], bytes]:
        self._operations += 1
        if self._operations > self._policy.file_operations:
            if self._reason is None:
                self._reason = TrapReason.FILE_OPERATIONS
                self._stop_at = time.monotonic()
                self._interpreter.cancel()
            return {"error": "EIO"}, b""
        return self._files.answer(frame.head, frame.body)

    def _send_input(self) -> None:
        """Answer a read of standard input, once there is data or the guest has to stop."""
        now = time.monotonic()
        data = read_some(self._script.stdin, self._wanted_bytes, min(self._stop_at, now + _SLICE_SECONDS))
        if data is None and now < self._stop_at and not self._call.is_cancelled:
            return
        self._wanted_bytes = 0
        self._send_or_stop(data)

    def _start_tool(self, request: bytes) -> None:
        if self._script.tools is None:
            self._send({}, no_such_tool())
        else:
            self._tool_call = self._script.tools.start(request)

    def _send_tool_answer(self, running: RunningCall) -> None:
        """Answer a call of a function, once it has returned or the guest has to stop."""
        answer = running.wait(min(_SLICE_SECONDS, self._stop_at - time.monotonic()))
        if answer is None and time.monotonic() < self._stop_at and not self._call.is_cancelled:
            return
        self._tool_call = None
        if answer is None:
            running.abandon()
        self._send_or_stop(answer)

    def _send_or_stop(self, answer: bytes | None) -> None:
        """Answer the guest, or stop it if there is no answer in time."""
        if answer is None and not self._call.is_cancelled:
            self._reason = TrapReason.TIMEOUT
        self._send({"stop": True} if answer is None else {}, answer or b"")

    def _stop_requested_at(self) -> float:
        """Return when the guest is or was requested to stop."""
        cancelled_at = self._call.cancelled_at
        return self._stop_at if cancelled_at is None else min(self._stop_at, cancelled_at)

    def _is_overdue(self) -> bool:
        """Whether the guest has not stopped within the grace period, whatever else it sends."""
        return time.monotonic() >= max(self._stop_requested_at(), self._grace_from) + _GRACE_SECONDS

    def _crashed(self, error: FrameSocketBroken | None = None) -> None:
        """End the run of a guest that does not stop in time, breaks the protocol or has died."""
        if self._is_overdue():
            self._interpreter.worker.end()
            reason = TrapReason.CANCELLED if self._call.is_cancelled else TrapReason.TIMEOUT
            self._end(RunOutcome(reason=self._reason or reason))
        elif isinstance(error, FrameSocketClosed) and not self._has_started:
            raise NotStartedError(self._interpreter.worker.cause())
        else:
            self._end(RunOutcome(reason=TrapReason.ENGINE, detail=self._interpreter.worker.cause()))

    def _done(self, head: dict[str, object]) -> None:
        code, lost = _number(head.get("exit_code")), head.get("lost")
        if code is None and not isinstance(head.get("trapped"), str):
            raise FrameSocketBroken("the worker did not report how the script ended")
        outcome = RunOutcome(
            exit_code=None if code is None else code & 0xFF,
            fuel_consumed=_number(head.get("fuel_consumed")),
            memory_bytes=_number(head.get("memory_bytes")),
            lost=_lost(lost) if isinstance(lost, list) else [],
            is_usable=head.get("ended") is None,
        )
        outcome.reason, outcome.detail = self._reason_of(head, outcome)
        if outcome.reason is not None and (head.get("trapped") is not None or self._reason is not None):
            outcome.exit_code = None
        for stream in self._streams.values():
            stream.is_truncated = stream.is_truncated or head.get(f"{stream.name}_truncated") is True
        self._end(outcome)

    def _reason_of(self, head: dict[str, object], outcome: RunOutcome) -> tuple[TrapReason | None, str]:
        trapped = head.get("trapped")
        if self._reason is not None and trapped in (None, "cancelled"):
            # The script may also end by the error of its last operation, before it is stopped.
            return self._reason, ""
        if isinstance(trapped, str):
            known = _TRAPS.get(trapped)
            if known is not None:
                return known, ""
            is_memory = head.get("out_of_memory") is True
            return (TrapReason.MEMORY if is_memory else TrapReason.ABORTED), trapped[:_MAX_DETAIL_CHARACTERS]
        if outcome.exit_code != 0 and head.get("out_of_memory") is True:
            return TrapReason.MEMORY, ""
        if outcome.lost:
            return TrapReason.LOST_WRITE, ""
        return None, ""

    def _end(self, outcome: RunOutcome) -> None:
        outcome.file_operations = self._operations
        out, err = self._streams.values()
        outcome.stdout, outcome.stderr = out.content(), err.content()
        outcome.truncated = frozenset(stream.name for stream in (out, err) if stream.is_truncated)
        self.outcome = outcome


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_NUMBER else None


def _lost(reported: list[object]) -> list[dict[str, str]]:
    return [
        {key: str(one.get(key))[:_MAX_DETAIL_CHARACTERS] for key in ("path", "error")}
        for one in reported[:_MAX_LOST]
        if isinstance(one, dict)
    ]
