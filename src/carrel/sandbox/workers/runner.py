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
    PIECE_BYTES,
    ShellFrameKind,
    parse_ending,
    parse_error,
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
"""How long a line that has to stop may take to do so; then its process is killed."""
CHANGES_BYTES = 64 * MIB
"""Most bytes of records that one line may report."""
_SLICE_SECONDS = 0.25
"""How often to look whether a line is overdue."""
_SIGNAL_STATUS = 128
"""The exit status of a line whose process a signal ended is this and the signal, as in any shell."""


class SessionRunner:
    """Runs command lines of one caller in one session."""

    def __init__(self, workers: ShellWorkers, manager: WorkspaceManager, session_id: str, actor: str) -> None:
        self._workers = workers
        self._tenant = str(manager.root)
        self._place: dict[str, object] = {
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
        """Run *command* in a worker; what passes a limit of the process is told as a limit of the line.

        Raises:
            ClosedError: The workspace was closed; one that is closed meanwhile cancels the line.
            CarrelError: The session cannot be used, or no worker can be had.
            RuntimeError: A mistake of ours, which is in the log.
        """
        gate = resources.workspace.gate
        gate.require_open()
        if gate.within == ():
            # It shows nothing, which no path in a list could say.
            return InProcessRunner().run(command, resources, state, meter, streams, pipelines=pipelines)
        is_watched = gate.is_watched
        job: dict[str, object] = {
            **self._place,
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
                worker = stack.enter_context(self._workers.lent(self._tenant, meter))
                since = gate.position() if is_watched else 0
                exchange = _Exchange(self._workers, worker, resources, state, meter, streams)
                try:
                    return exchange.run(job)
                finally:
                    if is_watched and not worker.is_usable:
                        _recover(resources, str(self._place["actor"]), since, seen)
        except Stopped as stopped:
            return LineOutcome.of(stopped)


class _Exchange:
    """One line in one worker."""

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
        self._input = _pieces(streams.stdin)
        self._calls: dict[object, GuestCall] = {}
        self._changes_bytes = 0
        self._over_since: float | None = None

    def run(self, job: dict[str, object]) -> LineOutcome:
        """Run it to its end."""
        worker, meter = self._worker, self._meter
        serial = worker.new_serial()
        # Not usable for another line before this one has ended as it should.
        worker.is_usable = False
        try:
            self._begin({**job, "serial": serial})
            meter.on_stop(partial(worker.cancel, serial))
            while True:
                ending = self._take(self._next())
                if ending is not None:
                    return ending
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
        job |= {"has_more": has_more, "budget": render_budget(self._meter.budget, self._remaining())}
        self._worker.line.send(ShellFrameKind.RUN, job, first, is_overdue=self._is_overdue)

    def _remaining(self) -> float | None:
        return self._meter.remaining_seconds()

    def _next(self) -> Frame:
        """The next frame of the worker.

        Raises:
            Stopped: The line was to stop, and has not.
        """
        line = self._worker.line
        frame = None
        while frame is None:
            if self._resources.workspace.gate.is_closed:
                self._meter.cancel()
            if self._is_overdue():
                self._meter.check()
            frame = line.receive(time.monotonic() + _SLICE_SECONDS)
        return frame

    def _is_overdue(self) -> bool:
        """Whether the line had to stop a while ago."""
        if self._meter.stopped is None and self._remaining() != 0.0:
            return False
        now = time.monotonic()
        if self._over_since is None:
            self._over_since = now
        return now - self._over_since > GRACE_SECONDS

    def _take(self, frame: Frame) -> LineOutcome | None:
        """Do what a frame says; how the line ended, if it says that."""
        match frame.kind:
            case ShellFrameKind.STDOUT:
                self._streams.stdout.write(bytes(frame.body))
                self._streams.stdout.drain()
            case ShellFrameKind.STDERR:
                self._streams.stderr.write(bytes(frame.body))
                self._streams.stderr.drain()
            case ShellFrameKind.INPUT:
                piece, has_more = next(self._input)
                head: dict[str, object] = {"has_more": has_more}
                self._worker.line.send(ShellFrameKind.ANSWER, head, piece, is_overdue=self._is_overdue)
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
                return self._done(frame.head)
            case ShellFrameKind.FAILED:
                raise self._failure(frame.head)
            case _:
                raise ValueError("no frame of a worker")
        return None

    def _run_python(self, number: object) -> None:
        """Run guest code for the worker."""
        self._calls = {each: call for each, call in self._calls.items() if not call.is_done}
        if len(self._calls) >= MAX_PIPELINE_COMMANDS:
            raise ValueError("too many runs of guest code at one time")
        self._calls[number] = GuestCall(self._worker.handed(), self._resources)

    def _relay(self, body: bytes) -> None:
        """Tell those who watch what the line changed.

        Raises:
            Stopped: It changed more than can be told.
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
                tell = self._workers.logger.log_event
                tell(event, level, **fields)
            case _:
                raise ValueError("no event for the log")

    def _done(self, head: dict[str, object]) -> LineOutcome:
        ending, state = parse_ending(head.get("ending")), parse_state(head.get("state"))
        self._worker.is_usable = head.get("is_worn") is False
        for name in ("cwd", "variables", "exported", "status", "pipefail"):
            setattr(self._state, name, getattr(state, name))
        if ending.error_code == CODE_TIME:
            # The worker was given what was left of the time; what is told is the time that was asked for.
            with suppress(Stopped):
                self._meter.check()
            return ending if self._meter.stopped is None else LineOutcome.of(self._meter.stopped)
        return ending

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
        return RuntimeError("a command line failed by a mistake of ours")

    def _crashed(self, *, hung_up: bool) -> LineOutcome:
        """How a line ended whose process is gone, or makes no sense."""
        how = self._worker.end()
        if self._meter.stopped is not None:
            return LineOutcome.of(self._meter.stopped)
        status, grown_bytes = how or (0, 0)
        number = os.WTERMSIG(status) if hung_up and os.WIFSIGNALED(status) else 0
        if number and (number == signal.SIGKILL or grown_bytes > self._workers.memory_bytes // 2):
            # Killed by a kernel that is short of memory, or by a library that takes no refusal of memory.
            return out_of_memory(self._meter.budget)
        return LineOutcome(
            _SIGNAL_STATUS + number if number else STATUS_LIMIT,
            SandboxExecutionError.code,
            "Command failed: the process that ran it ended unexpectedly",
        )


def _pieces(stdin: InputStream) -> Iterator[tuple[bytes, bool]]:
    """Standard input in pieces that fit into a frame, each with whether there may be more."""
    for piece in stdin:
        for part in split_chunk(piece, PIECE_BYTES):
            yield part, True
    while True:
        yield b"", False


def _recover(resources: ShellResources, actor: str, since: int, seen: list[Event]) -> None:
    """Tell those who watch what a line changed whose process was killed, as the journal has it."""
    workspace = resources.workspace
    with suppress(CarrelError):
        # Settles what was left half done.
        workspace.usage()
        known = set(seen)
        events = (replace(event, sequence=0) for event in workspace.gate.events(since))
        workspace.gate.relay([event for event in events if event.actor == actor and event not in known])
