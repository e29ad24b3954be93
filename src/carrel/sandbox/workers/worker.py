"""`ShellWorker`: runs in a worker process; executes command lines of one tenant, one at a time.

It opens the session for each line through the same gate as every other caller, so rules, quota, ledger and
journal apply. It runs only our own code; the separate process limits the damage of a faulty command to its
own memory and time.

Not covered: a worker has the same access to the disk as the service. It does not contain code that breaks
out.
"""

from __future__ import annotations

import logging
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from carrel.audit.counts import RefusalCounts
from carrel.audit.event import Event
from carrel.audit.logger import SandboxLogger, raised_at
from carrel.errors import CarrelError, SessionMissingError
from carrel.policy.rules import AccessMode
from carrel.runtimes.frames import Frame, FrameSocket, FrameSocketBroken
from carrel.sandbox.workers.protocol import (
    CANCEL,
    EVENTS_BYTES,
    SOCKET_SENT,
    ShellFrameKind,
    parse_state,
    render_error,
    render_state,
)
from carrel.sandbox.workers.python_relay import HostPython
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import Budget, Meter
from carrel.shell.command.context import ShellResources
from carrel.shell.command.table import COMMANDS
from carrel.shell.result import LineOutcome, out_of_memory
from carrel.shell.runtime.runner import InProcessRunner
from carrel.shell.state import ShellState
from carrel.shell.streams import CommandStreams, InputStream, OutputCollector, OutputStream
from carrel.values import MIB
from carrel.workspace.workspace import Workspace

WORN_BYTES = 32 * MIB
"""Memory growth above which a worker is not reused."""
_STACK_BYTES = MIB
"""Stack size of the threads of a pipeline, which counts against the memory limit."""
_NO_THREAD = "can't start new thread"
"""Python's error message when a thread gets no memory for its stack."""


class ShellWorker:
    """Executes command lines for the host process."""

    def __init__(self, frames: socket.socket, control: socket.socket) -> None:
        self._frames = FrameSocket(frames)
        self._control = control
        self._sending = threading.Lock()
        self._serial = self._cancelled = 0
        self._meter: Meter | None = None
        self._manager: WorkspaceManager | None = None
        self._described: object = None
        self._wants_events = False
        self.counts = RefusalCounts()
        """What the command line was refused; the host adds it to its own when the line ends."""
        self._first_bytes = _data_bytes()
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=self._handle_cancellations, daemon=True).start()

    def run(self) -> None:
        """Run command lines until the host closes the socket."""
        with suppress(FrameSocketBroken):
            while (frame := self._frames.receive()) is not None:
                self._serve(frame)

    def _handle_cancellations(self) -> None:
        """Stop command lines when the host cancels them."""
        while message := self._control.recv(CANCEL.size):
            (self._cancelled,) = CANCEL.unpack(message)
            if self._cancelled == self._serial and (meter := self._meter) is not None:
                meter.cancel()

    def send(self, kind: ShellFrameKind, head: dict[str, object] | None = None, body: bytes = b"") -> None:
        """Send a frame, from any thread."""
        with self._sending:
            self._frames.send(kind, head, body)

    def send_socket(self, theirs: socket.socket, number: int) -> None:
        """Send the host a socket over which it runs guest code."""
        with self._sending:
            socket.send_fds(self._control, [SOCKET_SENT], [theirs.fileno()])
            self._frames.send(ShellFrameKind.PYTHON, {"number": number})

    def _serve(self, frame: Frame) -> None:
        job: dict[str, Any] = frame.head  # Any: as `SessionRunner` sent it
        budget = Budget(**job["budget"])
        self._meter = meter = Meter(budget)
        self._serial = job["serial"]
        if self._cancelled == self._serial:
            meter.cancel()
        state = parse_state(job["state"])
        is_worn = False
        try:
            outcome = self._run(job, frame.body, state, meter)
        except CarrelError as error:
            self._end(ShellFrameKind.FAILED, render_error(error))
            return
        except Exception as error:
            if not isinstance(error, MemoryError) and _NO_THREAD not in str(error):
                self._end(ShellFrameKind.FAILED, {"error": type(error).__name__, "place": raised_at(error)})
                return
            _open_reserve()
            outcome, is_worn = out_of_memory(budget), True
        finally:
            self._meter = None
        is_worn = is_worn or _data_bytes() - self._first_bytes > WORN_BYTES
        self._end(
            ShellFrameKind.DONE, {"outcome": list(outcome), "state": render_state(state), "is_worn": is_worn}
        )

    def _end(self, kind: ShellFrameKind, head: dict[str, object]) -> None:
        """Send the last frame of a command line."""
        self.send(kind, {**head, "counts": self.counts.take()})

    def _run(
        self, job: dict[str, Any], stdin: bytes | bytearray, state: ShellState, meter: Meter
    ) -> LineOutcome:
        """Run a command line, and send its output and changes as they come."""
        with self._opened(job) as workspace, workspace.gate.watching() as events:
            changes = _Changes(self, events, is_wanted=job["watch"])
            stdout, stderr = (
                OutputCollector(meter, self._sender(changes, kind))
                for kind in (ShellFrameKind.STDOUT, ShellFrameKind.STDERR)
            )
            given = InputStream(self._input(bytes(stdin), has_more=job["has_more"]))
            streams = CommandStreams(given, OutputStream(stdout, meter), OutputStream(stderr, meter))
            python = HostPython(self.send_socket, self.send, changes.flush) if job["python"] else None
            resources = ShellResources(
                _view(workspace, job), python, None, COMMANDS.keys() - set(job["denied"])
            )
            outcome = InProcessRunner().run(
                job["command"], resources, state, meter, streams, pipelines=job["pipelines"]
            )
            changes.flush()
        return outcome._replace(is_truncated=stdout.is_truncated or stderr.is_truncated)

    @contextmanager
    def _opened(self, job: dict[str, Any]) -> Iterator[Workspace]:
        """Open the session of a command line, which must still be the one that the host has open."""
        self._wants_events = job["log"]
        if self._manager is None or self._described != job["manager"]:
            self._described = job["manager"]
            self._manager = WorkspaceManager.from_description(job["manager"], logger=_HostLogger(self))
        with self._manager.open(job["session_id"], actor=job["actor"]) as workspace:
            if workspace.created_ns != job["created_ns"]:
                raise SessionMissingError(f"no such session: {job['session_id']!r}: it was deleted")
            yield workspace

    def _sender(self, changes: _Changes, kind: ShellFrameKind) -> Callable[[bytes], None]:
        def send(data: bytes) -> None:
            changes.flush_many()
            self.send(kind, None, data)

        return send

    def _input(self, first: bytes, *, has_more: bool) -> Iterator[bytes]:
        """Yield standard input as the host sends it in chunks; only one command reads it."""
        if first:
            yield first
        while has_more:
            self.send(ShellFrameKind.INPUT)
            frame = self._frames.receive()
            assert frame is not None  # noqa: S101  # it waits without a timeout
            has_more = frame.head["has_more"] is True
            yield bytes(frame.body)

    @property
    def wants_events(self) -> bool:
        """Whether the host logs events of level INFO and below."""
        return self._wants_events


class _Changes:
    """Sends the host the changes of a command line."""

    def __init__(self, worker: ShellWorker, events: list[Event], *, is_wanted: bool) -> None:
        self._worker = worker
        self._events = events
        self._is_wanted = is_wanted

    def flush_many(self) -> None:
        """Send the pending changes if there are many."""
        if len(self._events) > 1000:
            self.flush()

    def flush(self) -> None:
        """Send the pending changes."""
        events = self._events[:]
        # Other threads may add events at the same time; those are sent next time.
        del self._events[: len(events)]
        if not self._is_wanted:
            return
        lines, size = [], 0
        for event in events:
            text = event.render()
            lines.append(text)
            size += len(text) + 1
            if size > EVENTS_BYTES:
                self._worker.send(ShellFrameKind.EVENTS, None, b"\n".join(lines))
                lines, size = [], 0
        if lines:
            self._worker.send(ShellFrameKind.EVENTS, None, b"\n".join(lines))


class _HostLogger(SandboxLogger):
    """Sends log events to the host."""

    def __init__(self, worker: ShellWorker) -> None:
        super().__init__()
        self.counts = worker.counts
        self._worker = worker

    def _log(self, event: str, level: int, fields: dict[str, object]) -> None:
        if level > logging.INFO or self.wants_events():
            plain = {name: value for name, value in fields.items() if value is not None}
            self._worker.send(ShellFrameKind.LOG, {"event": event, "level": level, "fields": plain})

    def wants_events(self) -> bool:
        return self._worker.wants_events


def _view(workspace: Workspace, job: dict[str, Any]) -> Workspace:
    """Return the workspace narrowed to the view of the host."""
    return workspace.narrowed(
        mode=AccessMode.READ_ONLY if job["read_only"] else AccessMode.READ_WRITE,
        within=["/".join(names) for names in job["within"] or ()],
    )


def _open_reserve() -> None:
    """Raise the memory limit of this process so that it can report having reached it."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _data_bytes() -> int:
    """Return the memory that counts against the limit."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read(100).split()[5]) * resource.getpagesize()
