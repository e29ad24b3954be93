"""One call from start to end: cancellation, captured output, and the exchange with an interpreter."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from io import UnsupportedOperation
from threading import Lock
from typing import BinaryIO, Protocol

from carrel.policy.execution import MAX_NUMBER, ExecutionPolicy
from carrel.runtimes.frames import Frame, FrameKind, FrameSocketBroken, FrameSocketClosed, can_read
from carrel.runtimes.result import TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.workspace.workspace import MOUNT

OnOutput = Callable[[str, bytes], None]
"""Is given `stdout` or `stderr`, and bytes that the guest wrote there."""

_GRACE_SECONDS = 5.0
"""How long a guest that was told to stop may take before its whole process is ended."""
_SLICE_SECONDS = 0.05
_ROOM_BYTES = 2**20
"""What a frame may hold besides a file."""
_MOST_LOST = 1_000
_TOLD_CHARACTERS = 4_096
"""How much of a text is believed that the guest tells about itself."""
_TRAPS = {
    "deadline": TrapReason.TIMEOUT,
    "cancelled": TrapReason.CANCELLED,
    "out of fuel": TrapReason.FUEL,
    "stack overflow": TrapReason.STACK,
}


class GuestFiles(Protocol):
    """What answers the file operations of a guest."""

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths beneath which there are files, also where they lie in the guest's own `/tmp`."""
        ...

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> tuple[dict[str, object], bytes]:
        """The head and the body of the answer."""
        ...


@dataclass(slots=True, kw_only=True)
class RunOutcome:
    """How a script ended."""

    exit_code: int | None = None
    reason: TrapReason | None = None
    detail: str = ""
    """More about the reason, where there is more."""
    fuel_consumed: int | None = None
    memory_bytes: int | None = None
    lost: list[dict[str, str]] = field(default_factory=list)
    """Writes that were refused where the script could not see it."""
    file_operations: int = 0
    is_usable: bool = False
    """Whether the interpreter can run another script."""
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: frozenset[str] = frozenset()


class Capture:
    """The output of one stream, up to its ceiling, whatever the other side sends."""

    def __init__(self, name: str, most_bytes: int, *, keep: bool = True) -> None:
        self.name = name
        self.most_bytes = most_bytes
        self._keep = keep
        self.is_truncated = False
        self._pieces: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> bytes:
        """Take *data*; what of it is below the ceiling."""
        kept = data[: self.most_bytes - self._size]
        self.is_truncated = self.is_truncated or len(kept) < len(data)
        self._size += len(kept)
        if kept and self._keep:
            self._pieces.append(kept)
        return kept

    @property
    def has_any(self) -> bool:
        """Whether anything came."""
        return self._size > 0

    def content(self) -> bytes:
        """All that was kept."""
        return b"".join(self._pieces)


class NotStartedError(Exception):
    """The process was gone before the script began, so it can be given to another one."""


class CancellableCall:
    """A script that may be stopped by another thread, before it begins or while it runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._interpreter: InterpreterHandle | None = None
        self.cancelled_at: float | None = None
        """When somebody wanted it to end, by the monotonic clock."""

    @property
    def is_cancelled(self) -> bool:
        """Whether somebody wants it to end."""
        return self.cancelled_at is not None

    def cancel(self) -> None:
        """End it soon."""
        with self._lock:
            if self.cancelled_at is None:
                self.cancelled_at = time.monotonic()
            interpreter = self._interpreter
        if interpreter is not None:
            interpreter.cancel()

    def run(
        self,
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
        """Run *script* in *interpreter*, and answer its calls until it ends.

        An exception of *on_output*, or one that reaches this thread, stops the guest and is raised again.

        Raises:
            NotBegunError: The process was gone before.
        """
        run = _Run(self, interpreter, script, policy, files, on_output)
        try:
            with self._lock:
                self._interpreter = interpreter
            seconds = policy.timeout_seconds if timeout_seconds is None else timeout_seconds
            run.begin(seconds, is_last=is_last, is_check=is_check)
            if self.is_cancelled:
                interpreter.cancel()
            while run.ending is None:
                run.step()
            return run.ending
        except BaseException:
            interpreter.cancel()
            interpreter.close()
            raise
        finally:
            with self._lock:
                self._interpreter = None


class _Run:
    """The state of a script while it runs."""

    def __init__(
        self,
        call: CancellableCall,
        interpreter: InterpreterHandle,
        script: Script,
        policy: ExecutionPolicy,
        files: GuestFiles,
        on_output: OnOutput | None,
    ) -> None:
        self.ending: RunOutcome | None = None
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
        self._has_begun = False
        self._operations = 0
        self._wanted_bytes = 0
        self._reason: TrapReason | None = None
        self._stop_at = 0.0
        self._waits_from = 0.0

    def begin(self, timeout_seconds: float, *, is_last: bool, is_check: bool) -> None:
        """Hand the script over."""
        policy, script = self._policy, self._script
        given = script.stdin if isinstance(script.stdin, bytes) else b""
        self._stop_at = time.monotonic() + timeout_seconds
        self._interpreter.line.body_bytes = policy.memory_bytes + _ROOM_BYTES
        order = script.order() | {
            "env": dict(policy.env),
            "paths": [path for path in policy.env.get("PYTHONPATH", "").split(":") if path],
            "fresh": not self._interpreter.scripts,
            "last": is_last,
            "check": is_check,
            "input": bool(given) or not isinstance(script.stdin, bytes),
        }
        head: dict[str, object] = {
            "order": order,
            "source_bytes": len(script.source),
            "start": script.cwd if script.cwd in (MOUNT, policy.guest_mount_path) else None,
            "roots": self._files.roots,
            "asks_input": not isinstance(script.stdin, bytes),
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
        """Take the next frame, if one comes soon."""
        was_early = time.monotonic() < self._told_at()
        try:
            if self._wanted_bytes:
                self._give_input()
            elif (frame := self._interpreter.line.receive(time.monotonic() + _SLICE_SECONDS)) is not None:
                self._has_begun = True
                self._take(frame)
        except FrameSocketBroken as error:
            self._crashed(error)
        if was_early:
            # How long we took to answer is not the guest's fault.
            self._waits_from = time.monotonic()
        elif self.ending is None and self._is_overdue():
            self._crashed()

    def _take(self, frame: Frame) -> None:
        if frame.kind in self._streams:
            kept = self._streams[frame.kind].add(bytes(frame.body))
            if kept and self._on_output is not None:
                self._on_output(self._streams[frame.kind].name, kept)
        elif frame.kind == FrameKind.CALL:
            self._send(*self._answer(frame))
        elif frame.kind == FrameKind.INPUT and not isinstance(self._script.stdin, bytes):
            asked = _number(frame.head.get("count"))
            self._wanted_bytes = min(max(asked or 1, 1), _ROOM_BYTES)
        elif frame.kind == FrameKind.DONE:
            self._done(frame.head)
        elif frame.kind == FrameKind.BEGUN:
            return
        else:
            raise FrameSocketBroken("the worker sent something that it should not")

    def _send(self, head: dict[str, object], body: bytes) -> None:
        self._interpreter.line.send(FrameKind.ANSWER, head, body, is_overdue=self._is_overdue)

    def _answer(self, frame: Frame) -> tuple[dict[str, object], bytes]:
        self._operations += 1
        if self._operations > self._policy.file_operations:
            if self._reason is None:
                self._reason = TrapReason.FILE_OPERATIONS
                self._stop_at = time.monotonic()
                self._interpreter.cancel()
            return {"error": "EIO"}, b""
        return self._files.answer(frame.head, frame.body)

    def _give_input(self) -> None:
        """Answer the guest that wants to read, once there is something or it has to stop."""
        now = time.monotonic()
        data = read_some(self._script.stdin, self._wanted_bytes, min(self._stop_at, now + _SLICE_SECONDS))
        if data is None and now < self._stop_at and not self._call.is_cancelled:
            return
        self._wanted_bytes = 0
        if data is None and not self._call.is_cancelled:
            self._reason = TrapReason.TIMEOUT
        self._send({"stop": True} if data is None else {}, data or b"")

    def _told_at(self) -> float:
        """When the guest is told to stop."""
        cancelled_at = self._call.cancelled_at
        return self._stop_at if cancelled_at is None else min(self._stop_at, cancelled_at)

    def _is_overdue(self) -> bool:
        """Whether the guest was told to stop and does not, whatever else it sends."""
        return time.monotonic() >= max(self._told_at(), self._waits_from) + _GRACE_SECONDS

    def _crashed(self, error: FrameSocketBroken | None = None) -> None:
        """End the process of a guest that does not stop though it should, or does not keep to the rules."""
        if self._is_overdue():
            self._interpreter.worker.end()
            reason = TrapReason.CANCELLED if self._call.is_cancelled else TrapReason.TIMEOUT
            self._end(RunOutcome(reason=self._reason or reason))
        elif isinstance(error, FrameSocketClosed) and not self._has_begun:
            raise NotStartedError(self._interpreter.worker.cause())
        else:
            self._end(RunOutcome(reason=TrapReason.ENGINE, detail=self._interpreter.worker.cause()))

    def _done(self, head: dict[str, object]) -> None:
        code, lost = _number(head.get("exit_code")), head.get("lost")
        if code is None and not isinstance(head.get("trapped"), str):
            raise FrameSocketBroken("the worker does not say how the script ended")
        ending = RunOutcome(
            exit_code=None if code is None else code & 0xFF,
            fuel_consumed=_number(head.get("fuel_consumed")),
            memory_bytes=_number(head.get("memory_bytes")),
            lost=_lost(lost) if isinstance(lost, list) else [],
            is_usable=head.get("ended") is None,
        )
        ending.reason, ending.detail = self._why(head, ending)
        if ending.reason is not None and (head.get("trapped") is not None or self._reason is not None):
            ending.exit_code = None
        for stream in self._streams.values():
            stream.is_truncated = stream.is_truncated or head.get(f"{stream.name}_truncated") is True
        self._end(ending)

    def _why(self, head: dict[str, object], ending: RunOutcome) -> tuple[TrapReason | None, str]:
        trapped = head.get("trapped")
        if self._reason is not None and trapped in (None, "cancelled"):
            # The script may also end by itself, by the error of its last operation, before it is stopped.
            return self._reason, ""
        if isinstance(trapped, str):
            known = _TRAPS.get(trapped)
            if known is not None:
                return known, ""
            is_memory = head.get("out_of_memory") is True
            return (TrapReason.MEMORY if is_memory else TrapReason.ABORTED), trapped[:_TOLD_CHARACTERS]
        if ending.exit_code != 0 and head.get("out_of_memory") is True:
            return TrapReason.MEMORY, ""
        if ending.lost:
            return TrapReason.LOST_WRITE, ""
        return None, ""

    def _end(self, ending: RunOutcome) -> None:
        ending.file_operations = self._operations
        out, err = self._streams.values()
        ending.stdout, ending.stderr = out.content(), err.content()
        ending.truncated = frozenset(stream.name for stream in (out, err) if stream.is_truncated)
        self.ending = ending


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= MAX_NUMBER else None


def _lost(told: list[object]) -> list[dict[str, str]]:
    return [
        {key: str(one.get(key))[:_TOLD_CHARACTERS] for key in ("path", "error")}
        for one in told[:_MOST_LOST]
        if isinstance(one, dict)
    ]


def read_some(source: bytes | BinaryIO, count: int, until: float) -> bytes | None:
    """Up to *count* bytes of *source*; `None` if there are none *until* then."""
    if isinstance(source, bytes):
        return b""
    try:
        fd = source.fileno()
    except (AttributeError, OSError, UnsupportedOperation):
        return source.read(count)
    return os.read(fd, count) if can_read(fd, until - time.monotonic()) else None
