"""`SessionRunner`: runs the command lines of one session in worker processes."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from carrel.audit.event import Event
from carrel.errors import CarrelError, SandboxExecutionError
from carrel.policy.rules import AccessMode
from carrel.runtimes.frames import Frame, FrameSocketBroken, FrameSocketClosed
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.sandbox.workers.process import WorkerProcess
from carrel.sandbox.workers.protocol import (
    CHUNK_BYTES,
    ShellFrameKind,
    parse_counts,
    parse_error,
    parse_outcome,
    parse_state,
    render_budget,
    render_state,
)
from carrel.sandbox.workers.python_relay import GuestCall
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import CODE_TIME, STATUS_LIMIT, Meter, Stopped
from carrel.shell.command.context import ShellResources
from carrel.shell.command.table import COMMANDS
from carrel.shell.language.parser import MAX_PIPELINE_COMMANDS
from carrel.shell.result import LineOutcome, out_of_memory
from carrel.shell.runtime.runner import InProcessRunner
from carrel.shell.state import ShellState
from carrel.shell.streams import CommandStreams, InputStream
from carrel.shell.text.records import split_chunk
from carrel.values import MIB

GRACE_SECONDS = 2.0
"""Time that a command line has to stop before its process is killed."""
CHANGES_BYTES = 64 * MIB
"""Maximum bytes of journal records that one command line may report."""
_SLICE_SECONDS = 0.25
"""Interval at which to check whether a command line is overdue."""
_SIGNAL_STATUS = 128
"""Added to the signal number for the exit status of a killed process, as in any shell."""


class SessionRunner:
    """Runs command lines of one caller in one session."""

    def __init__(self, workers: ShellWorkers, manager: WorkspaceManager, session_id: str, actor: str) -> None:
        self._workers = workers
        self._tenant = str(manager.root)
        self._session: dict[str, object] = {
            "manager": manager.description(),
            "session_id": session_id,
            "actor": actor,
        }

    def run(
        self,
        command: str,
        resources: ShellResources,
        state: ShellState,
        meter: Meter,
        streams: CommandStreams,
        *,
        pipelines: bool,
    ) -> LineOutcome:
        """Run *command* in a worker; exceeding a process limit is reported as exceeding a limit of the line.

        Raises:
            ClosedError: The workspace is closed; closing it later cancels the line.
            CarrelError: The session cannot be used, or no worker can be started.
            RuntimeError: An internal error, which is logged.
        """
        gate = resources.workspace.gate
        gate.require_open()
        if gate.within == ():
            # The view is empty, which the list of paths in a job cannot express.
            return InProcessRunner().run(command, resources, state, meter, streams, pipelines=pipelines)
        is_watched = gate.is_watched
        job: dict[str, object] = {
            **self._session,
            "created_ns": resources.workspace.created_ns,
            "command": command,
            "pipelines": pipelines,
            "state": render_state(state),
            "read_only": gate.policy.most is AccessMode.READ_ONLY,
            "within": gate.within,
            "denied": [name for name in COMMANDS if name not in resources.allowed],
            "python": resources.python is not None,
            "watch": is_watched,
            "log": self._workers.logger.wants_events(),
        }
        try:
            with ExitStack() as stack:
                seen = stack.enter_context(gate.watching()) if is_watched else []
                worker = stack.enter_context(self._workers.lease(self._tenant, meter))
                since = gate.position() if is_watched else 0
                exchange = _Exchange(self._workers, worker, resources, state, meter, streams)
                try:
                    return exchange.run(job)
                finally:
                    if is_watched and not worker.is_usable:
                        _recover(resources, str(self._session["actor"]), since, seen)
        except Stopped as stopped:
            return LineOutcome.of(stopped)


class _Exchange:
    """The exchange of frames for one command line in one worker."""

    def __init__(
        self,
        workers: ShellWorkers,
        worker: WorkerProcess,
        resources: ShellResources,
        state: ShellState,
        meter: Meter,
        streams: CommandStreams,
    ) -> None:
        self._workers = workers
        self._worker = worker
        self._resources = resources
        self._state = state
        self._meter = meter
        self._streams = streams
        self._input = _chunks(streams.stdin)
        self._calls: dict[object, GuestCall] = {}
        self._changes_bytes = 0
        self._over_since: float | None = None

    def run(self, job: dict[str, object]) -> LineOutcome:
        """Run the command line and return its outcome."""
        worker, meter = self._worker, self._meter
        serial = worker.new_serial()
        # Not usable for another line until this one has ended normally.
        worker.is_usable = False
        try:
            self._begin({**job, "serial": serial})
            meter.on_stop(partial(worker.cancel, serial))
            while True:
                outcome = self._handle(self._next())
                if outcome is not None:
                    return outcome
        except Stopped as stopped:
            worker.end()
            return LineOutcome.of(stopped)
        except CarrelError:
            raise
        except (FrameSocketBroken, ValueError, OSError) as error:
            return self._crashed(hung_up=isinstance(error, FrameSocketClosed))
        finally:
            for call in self._calls.values():
                call.stop()
            for call in self._calls.values():
                call.join()

    def _begin(self, job: dict[str, object]) -> None:
        first, has_more = next(self._input)
        budget = render_budget(self._meter.budget, self._meter.remaining_seconds())
        job |= {"has_more": has_more, "budget": budget}
        self._worker.frames.send(ShellFrameKind.RUN, job, first, is_overdue=self._is_overdue)

    def _next(self) -> Frame:
        """Return the next frame of the worker.

        Raises:
            Stopped: The command line did not stop in time.
        """
        frames = self._worker.frames
        frame = None
        while frame is None:
            if self._resources.workspace.gate.is_closed:
                self._meter.cancel()
            if self._is_overdue():
                self._meter.check()
            frame = frames.receive(time.monotonic() + _SLICE_SECONDS)
        return frame

    def _is_overdue(self) -> bool:
        """Whether the command line failed to stop within the grace period."""
        if self._meter.stopped is None and self._meter.remaining_seconds() != 0.0:
            return False
        now = time.monotonic()
        if self._over_since is None:
            self._over_since = now
        return now - self._over_since > GRACE_SECONDS

    def _handle(self, frame: Frame) -> LineOutcome | None:
        """Handle a frame; return the outcome if the command line has ended."""
        match frame.kind:
            case ShellFrameKind.STDOUT:
                self._streams.stdout.write(bytes(frame.body))
                self._streams.stdout.drain()
            case ShellFrameKind.STDERR:
                self._streams.stderr.write(bytes(frame.body))
                self._streams.stderr.drain()
            case ShellFrameKind.INPUT:
                chunk, has_more = next(self._input)
                head: dict[str, object] = {"has_more": has_more}
                self._worker.frames.send(ShellFrameKind.ANSWER, head, chunk, is_overdue=self._is_overdue)
            case ShellFrameKind.EVENTS:
                self._relay(bytes(frame.body))
            case ShellFrameKind.LOG:
                self._log(frame.head)
            case ShellFrameKind.PYTHON:
                self._run_python(frame.head.get("number"))
            case ShellFrameKind.STOP_PYTHON:
                if (call := self._calls.get(frame.head.get("number"))) is not None:
                    call.stop()
            case ShellFrameKind.DONE:
                self._add_counts(frame.head)
                return self._done(frame.head)
            case ShellFrameKind.FAILED:
                self._add_counts(frame.head)
                raise self._failure(frame.head)
            case _:
                raise ValueError("not a frame of a worker")
        return None

    def _run_python(self, number: object) -> None:
        """Run guest code for the worker."""
        self._calls = {each: call for each, call in self._calls.items() if not call.is_done}
        if len(self._calls) >= MAX_PIPELINE_COMMANDS:
            raise ValueError("too many concurrent runs of guest code")
        self._calls[number] = GuestCall(self._worker.receive_socket(), self._resources)

    def _relay(self, body: bytes) -> None:
        """Pass the changes of the command line on to the watchers.

        Raises:
            Stopped: It changed more than it may report.
        """
        self._changes_bytes += len(body)
        if self._changes_bytes > CHANGES_BYTES:
            message = f"Command reports more than {CHANGES_BYTES} bytes of changes, the limit"
            raise Stopped("limit.memory_bytes", message, STATUS_LIMIT)
        events = [Event.parse(line, 0) for line in body.split(b"\n")]
        self._resources.workspace.gate.relay([event for event in events if event is not None])

    def _log(self, head: dict[str, object]) -> None:
        match head:
            case {"event": str(event), "level": int(level), "fields": dict(fields)}:
                relay = self._workers.logger.log_event
                relay(event, level, **fields)
            case _:
                raise ValueError("not a log event")

    def _add_counts(self, head: dict[str, object]) -> None:
        self._workers.logger.counts.add_all(parse_counts(head.get("counts")))

    def _done(self, head: dict[str, object]) -> LineOutcome:
        outcome, state = parse_outcome(head.get("outcome")), parse_state(head.get("state"))
        self._worker.is_usable = head.get("is_worn") is False
        for name in ("cwd", "variables", "exported", "status", "pipefail"):
            setattr(self._state, name, getattr(state, name))
        if outcome.error_code == CODE_TIME:
            # The worker knows only the remaining time; the message names the requested timeout.
            with suppress(Stopped):
                self._meter.check()
            return outcome if self._meter.stopped is None else LineOutcome.of(self._meter.stopped)
        return outcome

    def _failure(self, head: dict[str, object]) -> Exception:
        if "code" in head:
            error = parse_error(head)
            self._worker.is_usable = True
            return error
        self._workers.logger.log_event(
            "shell.failed",
            logging.ERROR,
            session_id=self._resources.workspace.session_id,
            error=head.get("error"),
            place=head.get("place"),
        )
        return RuntimeError("a command line failed with an internal error")

    def _crashed(self, *, hung_up: bool) -> LineOutcome:
        """Return the outcome after the process died or broke the protocol."""
        result = self._worker.end()
        if self._meter.stopped is not None:
            return LineOutcome.of(self._meter.stopped)
        status, grown_bytes = result or (0, 0)
        number = os.WTERMSIG(status) if hung_up and os.WIFSIGNALED(status) else 0
        if number and (number == signal.SIGKILL or grown_bytes > self._workers.memory_bytes // 2):
            # Killed by the OOM killer, or aborted by a library that cannot handle a failed allocation.
            return out_of_memory(self._meter.budget)
        return LineOutcome(
            _SIGNAL_STATUS + number if number else STATUS_LIMIT,
            SandboxExecutionError.code,
            "Command failed: the process that ran it ended unexpectedly",
        )


def _chunks(stdin: InputStream) -> Iterator[tuple[bytes, bool]]:
    """Yield standard input in chunks that fit into a frame, each with whether more may follow."""
    for chunk in stdin:
        for part in split_chunk(chunk, CHUNK_BYTES):
            yield part, True
    while True:
        yield b"", False


def _recover(resources: ShellResources, actor: str, since: int, seen: list[Event]) -> None:
    """Report the changes of a command line whose process was killed to the watchers, from the journal."""
    workspace = resources.workspace
    with suppress(CarrelError):
        # Completes or undoes interrupted changes.
        workspace.usage()
        known = set(seen)
        events = (replace(event, sequence=0) for event in workspace.gate.events(since))
        workspace.gate.relay([event for event in events if event.actor == actor and event not in known])
