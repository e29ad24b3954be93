"""`ContainerRun`: runs one program in a container, and ends everything that it started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from carrel.containers.container import Container
from carrel.containers.docker_errors import start_failure_reason
from carrel.containers.kill import kill_all, kill_leftovers
from carrel.containers.stream import STDERR, STDOUT, ExecStream
from carrel.errors import CarrelError, ContainerError
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.call import CancellableCall, Capture, OnOutput, RunOutcome
from carrel.runtimes.container.command import ContainerCommand
from carrel.runtimes.container.stdin import StdinWriter, has_input
from carrel.runtimes.result import TrapReason

KILLED = 137
"""Exit status of a process killed by SIGKILL."""
NOT_FOUND = 127
NOT_RUNNABLE = 126
_SLICE_SECONDS = 0.05
_DRAIN_SECONDS = 2.0
_LAST_SECONDS = 0.05
"""Time to read remaining output of a program before it is killed."""
_ENGINE_MESSAGE = b"OCI runtime exec failed"
"""Start of the engine's message, in place of output, about a program that it could not start."""
_HELD_BYTES = 2**13
_PROBLEMS = {
    "missing": "not found in the image",
    "unrunnable": "cannot be run",
    "too_long": "its arguments and variables are too long",
}


class RunWatch(Protocol):
    """Watches a program while it runs."""

    problem: str | None
    """Why the program must be ended."""
    may_freeze: bool
    """Whether the program has started; the engine hangs if a container is paused while it starts one."""

    def stop(self) -> None:
        """Stop watching, and leave the container alone."""
        ...


class NoWatch:
    """Watches nothing."""

    problem: str | None = None
    may_freeze = False

    def stop(self) -> None:
        """Do nothing."""


class ContainerRun:
    """A program while it runs."""

    def __init__(
        self,
        container: Container,
        command: ContainerCommand,
        policy: ExecutionPolicy,
        *,
        call: CancellableCall,
        on_output: OnOutput | None,
        watch: RunWatch,
    ) -> None:
        """Prepare to run *command*, watched by *watch*."""
        self.has_started = True
        """Whether the program exists and was started."""
        self._container = container
        self._command = command
        self._policy = policy
        self._call = call
        self._on_output = on_output
        self._watch = watch
        self._held = b""
        self._stop_at = 0.0
        self._streams: Mapping[int, Capture] = {
            STDOUT: Capture("stdout", policy.stdout_max_bytes, keep=command.keep_output),
            STDERR: Capture("stderr", policy.stderr_max_bytes, keep=command.keep_output),
        }

    def run(self, timeout_seconds: float) -> RunOutcome:
        """Run the program with a timeout; afterwards, nothing that it started is left.

        An exception in `on_output`, or one that is raised in this thread, kills everything and propagates.
        """
        self._stop_at = time.monotonic() + timeout_seconds
        try:
            stream = self._container.exec(
                self._command.argv,
                env=self._policy.env,
                cwd=self._command.cwd,
                stdin=has_input(self._command),
            )
        except ContainerError as error:
            # Newer engines report it before there is a stream.
            return self._not_started(error.detail, error)
        try:
            with StdinWriter(stream, self._command) as stdin:
                reason = None
                # Whether the container is gone is checked afterwards.
                with suppress(ContainerError):
                    reason = self._follow(stream, stdin)
                return self._finish(stream, reason)
        except BaseException:
            with suppress(CarrelError):
                self._watch.stop()
                kill_all(self._container)
            raise
        finally:
            stream.close()

    # While the program runs

    def _follow(self, stream: ExecStream, stdin: StdinWriter) -> TrapReason | None:
        """Collect output until the program ends; return why it must be ended, `None` if it has ended."""
        while True:
            if reason := self._must_end(stdin):
                return reason
            try:
                chunk = stream.receive(min(self._stop_at, time.monotonic() + _SLICE_SECONDS))
            except EOFError:
                return self._wait(stream, stdin)
            if chunk is not None:
                self._watch.may_freeze = True
                self._receive(*chunk)
            elif stream.exit_code() is not None:
                # Processes that it left running hold its output open.
                return self._must_end(stdin)
            elif not self._watch.may_freeze:
                self._watch.may_freeze = stream.has_started()

    def _wait(self, stream: ExecStream, stdin: StdinWriter) -> TrapReason | None:
        """Wait for a program that has closed its output."""
        self._watch.may_freeze = True
        pause = 0.001
        while stream.exit_code() is None:
            if reason := self._must_end(stdin):
                return reason
            time.sleep(pause)
            pause = min(2 * pause, _SLICE_SECONDS)
        return self._must_end(stdin, has_ended=True)

    def _must_end(self, stdin: StdinWriter, *, has_ended: bool = False) -> TrapReason | None:
        if stdin.problem is not None:
            raise stdin.problem
        if self._watch.problem:
            return TrapReason.QUOTA
        if has_ended:
            return None
        if self._call.is_cancelled:
            return TrapReason.CANCELLED
        return TrapReason.TIMEOUT if time.monotonic() >= self._stop_at else None

    def _receive(self, number: int, data: bytes) -> None:
        if number == STDOUT and self._may_be_engine_message(data):
            self._held += data
            return
        self._release_held()
        self._emit(number, data)

    def _may_be_engine_message(self, data: bytes) -> bool:
        """Whether this could be the engine's message about a program that it could not start."""
        if self._streams[STDOUT].has_any or len(self._held) + len(data) > _HELD_BYTES:
            return False
        return (self._held + data).startswith(_ENGINE_MESSAGE)

    def _release_held(self) -> None:
        held, self._held = self._held, b""
        if held:
            self._emit(STDOUT, held)

    def _emit(self, number: int, data: bytes) -> None:
        stream = self._streams.get(number)
        kept = b"" if stream is None else stream.add(data)
        if kept and stream is not None and self._on_output is not None:
            self._on_output(stream.name, kept)

    # After the program has ended

    def _finish(self, stream: ExecStream, reason: TrapReason | None) -> RunOutcome:
        self._watch.stop()
        reason = TrapReason.QUOTA if self._watch.problem else reason
        if reason is not None:
            # The engine is slow to serve a container whose output is not read.
            self._drain(stream, _LAST_SECONDS)
            stream.end()
            kill_all(self._container)
            self._release_held()
            return self._with_output(RunOutcome(reason=reason, detail=self._watch.problem or ""))
        kill_leftovers(self._container)
        code, has_started = None, True
        with suppress(ContainerError):
            self._drain(stream, _DRAIN_SECONDS)
            code = stream.wait(time.monotonic() + _DRAIN_SECONDS)
            has_started = code is None or stream.has_started()
        if not has_started:
            return self._not_started(self._held.decode("utf-8", "replace"))
        self._release_held()
        return self._with_output(self._own_outcome(code))

    def _own_outcome(self, code: int | None) -> RunOutcome:
        """Return the outcome of a program that ended by itself or with its container."""
        if code is not None and code != KILLED:
            return RunOutcome(exit_code=code & 0xFF)
        try:
            state = self._container.state()
        except ContainerError as error:
            if error.problem != "missing":
                raise
            return RunOutcome(reason=TrapReason.ENGINE, detail="its container was removed")
        if state.running and code is not None:
            return RunOutcome(exit_code=code)
        if state.oom_killed:
            return RunOutcome(reason=TrapReason.MEMORY)
        return RunOutcome(reason=TrapReason.ENGINE, detail="its container stopped")

    def _drain(self, stream: ExecStream, seconds: float) -> None:
        """Collect output that is still arriving, for a limited time."""
        deadline = time.monotonic() + seconds
        with suppress(EOFError, CarrelError):
            while time.monotonic() < deadline and (chunk := stream.receive(deadline)) is not None:
                self._receive(*chunk)

    def _not_started(self, message: str, error: ContainerError | None = None) -> RunOutcome:
        """Return the outcome of a program that could not be started, as in a shell.

        Raises:
            ContainerError: The container failed: *error*, or it must be restarted.
        """
        why = start_failure_reason(message)
        if why is None:
            raise error or ContainerError(
                "stopped", "the container cannot run the program now", detail=message
            )
        self.has_started, self._held = False, b""
        self._emit(STDERR, f"carrel: {self._command.argv[0][:200]!r}: {_PROBLEMS[why]}\n".encode())
        return self._with_output(RunOutcome(exit_code=NOT_FOUND if why == "missing" else NOT_RUNNABLE))

    def _with_output(self, outcome: RunOutcome) -> RunOutcome:
        out, err = self._streams[STDOUT], self._streams[STDERR]
        outcome.stdout, outcome.stderr = out.content(), err.content()
        outcome.truncated = frozenset(stream.name for stream in (out, err) if stream.is_truncated)
        return outcome
