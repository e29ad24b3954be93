"""`ContainerRun`: one program in a container from start to end, with everything it started."""

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
"""The status of a process that was ended by signal 9."""
NOT_FOUND = 127
NOT_RUNNABLE = 126
_SLICE_SECONDS = 0.05
_DRAIN_SECONDS = 2.0
_LAST_SECONDS = 0.05
"""So long what has to be ended may still be heard."""
_ENGINE_SAYS = b"OCI runtime exec failed"
"""How the engine begins what it writes to the output of a program that it could not start."""
_HELD_BYTES = 2**13
_PROBLEMS = {
    "missing": "not found in the image",
    "unrunnable": "cannot be run",
    "too_long": "its arguments and variables are too long",
}


class RunWatch(Protocol):
    """Watches a program while it runs."""

    problem: str | None
    """Why it has to end."""
    may_freeze: bool
    """Whether the program has begun; the engine hangs if a container is frozen while it starts one."""

    def stop(self) -> None:
        """Watch no more, and leave the container alone."""
        ...


class NoWatch:
    """Watches nothing."""

    problem: str | None = None
    may_freeze = False

    def stop(self) -> None:
        """There is nothing to stop."""


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
        guard: RunWatch,
    ) -> None:
        """Run *command*, watched by *guard*."""
        self.has_begun = True
        """Whether there was such a program."""
        self._container = container
        self._command = command
        self._policy = policy
        self._call = call
        self._on_output = on_output
        self._guard = guard
        self._held = b""
        self._stop_at = 0.0
        self._streams: Mapping[int, Capture] = {
            STDOUT: Capture("stdout", policy.stdout_max_bytes, keep=command.keep_output),
            STDERR: Capture("stderr", policy.stderr_max_bytes, keep=command.keep_output),
        }

    def run(self, timeout_seconds: float) -> RunOutcome:
        """Run it, at most so long; afterwards nothing that it started is left.

        An exception of the output's taker, or one that reaches this thread, ends everything and is raised.
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
            # Newer engines say it before there is a stream.
            return self._not_begun(error.detail, error)
        try:
            with StdinWriter(stream, self._command) as feeder:
                reason = None
                # A container that is gone is looked for afterwards.
                with suppress(ContainerError):
                    reason = self._follow(stream, feeder)
                return self._ended(stream, reason)
        except BaseException:
            with suppress(CarrelError):
                self._guard.stop()
                kill_all(self._container)
            raise
        finally:
            stream.close()

    # While it runs

    def _follow(self, stream: ExecStream, feeder: StdinWriter) -> TrapReason | None:
        """Take its output until it ends; why it has to be ended, or `None` if it has."""
        while True:
            if reason := self._must_end(feeder):
                return reason
            try:
                piece = stream.receive(min(self._stop_at, time.monotonic() + _SLICE_SECONDS))
            except EOFError:
                return self._wait(stream, feeder)
            if piece is not None:
                self._guard.may_freeze = True
                self._take(*piece)
            elif stream.exit_code() is not None:
                # What it left running holds its output open.
                return self._must_end(feeder)
            elif not self._guard.may_freeze:
                self._guard.may_freeze = stream.has_begun()

    def _wait(self, stream: ExecStream, feeder: StdinWriter) -> TrapReason | None:
        """Wait for one that has closed its output."""
        self._guard.may_freeze = True
        pause = 0.001
        while stream.exit_code() is None:
            if reason := self._must_end(feeder):
                return reason
            time.sleep(pause)
            pause = min(2 * pause, _SLICE_SECONDS)
        return self._must_end(feeder, has_ended=True)

    def _must_end(self, feeder: StdinWriter, *, has_ended: bool = False) -> TrapReason | None:
        if feeder.problem is not None:
            raise feeder.problem
        if self._guard.problem:
            return TrapReason.QUOTA
        if has_ended:
            return None
        if self._call.is_cancelled:
            return TrapReason.CANCELLED
        return TrapReason.TIMEOUT if time.monotonic() >= self._stop_at else None

    def _take(self, number: int, data: bytes) -> None:
        if number == STDOUT and self._may_be_the_engine(data):
            self._held += data
            return
        self._let_go()
        self._give(number, data)

    def _may_be_the_engine(self, data: bytes) -> bool:
        """Whether this could be what the engine says about a program that it could not start."""
        if self._streams[STDOUT].has_any or len(self._held) + len(data) > _HELD_BYTES:
            return False
        return (self._held + data).startswith(_ENGINE_SAYS)

    def _let_go(self) -> None:
        held, self._held = self._held, b""
        if held:
            self._give(STDOUT, held)

    def _give(self, number: int, data: bytes) -> None:
        stream = self._streams.get(number)
        kept = b"" if stream is None else stream.add(data)
        if kept and stream is not None and self._on_output is not None:
            self._on_output(stream.name, kept)

    # Its end

    def _ended(self, stream: ExecStream, reason: TrapReason | None) -> RunOutcome:
        self._guard.stop()
        reason = TrapReason.QUOTA if self._guard.problem else reason
        if reason is not None:
            # The engine does little else for a container while nobody takes what floods out of it.
            self._drain(stream, _LAST_SECONDS)
            stream.end()
            kill_all(self._container)
            self._let_go()
            return self._ending(RunOutcome(reason=reason, detail=self._guard.problem or ""))
        kill_leftovers(self._container)
        code, has_begun = None, True
        with suppress(ContainerError):
            self._drain(stream, _DRAIN_SECONDS)
            code = stream.wait(time.monotonic() + _DRAIN_SECONDS)
            has_begun = code is None or stream.has_begun()
        if not has_begun:
            return self._not_begun(self._held.decode("utf-8", "replace"))
        self._let_go()
        return self._ending(self._own(code))

    def _own(self, code: int | None) -> RunOutcome:
        """How it ended by itself, or with its container."""
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
        """Take what is still on the way, for so long; one that floods is not waited for."""
        deadline = time.monotonic() + seconds
        with suppress(EOFError, CarrelError):
            while time.monotonic() < deadline and (piece := stream.receive(deadline)) is not None:
                self._take(*piece)

    def _not_begun(self, told: str, error: ContainerError | None = None) -> RunOutcome:
        """The ending of a program that could not be started, as a shell has it.

        Raises:
            ContainerError: It is about the container: *error*, or that it has to be started anew.
        """
        why = start_failure_reason(told)
        if why is None:
            raise error or ContainerError("stopped", "the container cannot run that now", detail=told)
        self.has_begun, self._held = False, b""
        self._give(STDERR, f"carrel: {self._command.argv[0][:200]!r}: {_PROBLEMS[why]}\n".encode())
        return self._ending(RunOutcome(exit_code=NOT_FOUND if why == "missing" else NOT_RUNNABLE))

    def _ending(self, ending: RunOutcome) -> RunOutcome:
        out, err = self._streams[STDOUT], self._streams[STDERR]
        ending.stdout, ending.stderr = out.content(), err.content()
        ending.truncated = frozenset(stream.name for stream in (out, err) if stream.is_truncated)
        return ending
