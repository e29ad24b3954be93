"""`ShellWorker`: runs in a worker process; executes command lines of one tenant, one at a time.

It opens the session for each line through the same gate as everybody, so rules, quota, ledger and journal
hold. What it runs is our own code; the process is there so that a mistake in a command costs its own memory
and time, not those of the service.

Not covered: a worker can reach on the disk what the service can. It is no wall against code that breaks out.
"""

from __future__ import annotations

import logging
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from carrel.audit.event import Event
from carrel.audit.logger import SandboxLogger, raised_at
from carrel.errors import CarrelError, SessionMissingError
from carrel.policy.rules import AccessMode
from carrel.runtimes.frames import Frame, FrameSocket, FrameSocketBroken
from carrel.sandbox.workers.protocol import (
    CANCEL,
    EVENTS_BYTES,
    HANDED,
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
"""A worker that has grown by so much is not used again."""
_STACK_BYTES = MIB
"""Of the threads of a pipeline; they count for the memory limit."""
_NO_THREAD = "can't start new thread"
"""What Python says where a thread finds no memory for its stack."""


class ShellWorker:
    """Serves one host."""

    def __init__(self, line: socket.socket, control: socket.socket) -> None:
        self._line = FrameSocket(line)
        self._control = control
        self._sending = threading.Lock()
        self._serial = self._cancelled = 0
        self._meter: Meter | None = None
        self._manager: WorkspaceManager | None = None
        self._described: object = None
        self._wants_events = False
        self._first_bytes = _data_bytes()
        threading.stack_size(_STACK_BYTES)
        threading.Thread(target=self._obey, daemon=True).start()

    def run(self) -> None:
        """Run lines, until the host hangs up."""
        with suppress(FrameSocketBroken):
            while (frame := self._line.receive()) is not None:
                self._serve(frame)

    def _obey(self) -> None:
        """Stop lines as the host says."""
        while order := self._control.recv(CANCEL.size):
            (self._cancelled,) = CANCEL.unpack(order)
            if self._cancelled == self._serial and (meter := self._meter) is not None:
                meter.cancel()

    def send(self, kind: ShellFrameKind, head: dict[str, object] | None = None, body: bytes = b"") -> None:
        """Send a frame, from any thread."""
        with self._sending:
            self._line.send(kind, head, body)

    def hand_over(self, theirs: socket.socket, number: int) -> None:
        """Give the host a socket, over which it is to run guest code."""
        with self._sending:
            socket.send_fds(self._control, [HANDED], [theirs.fileno()])
            self._line.send(ShellFrameKind.PYTHON, {"number": number})

    def _serve(self, frame: Frame) -> None:
        job: dict[str, Any] = frame.head  # Any: as `SessionRunner` made it
        budget = Budget(**job["budget"])
        self._meter = meter = Meter(budget)
        self._serial = job["serial"]
        if self._cancelled == self._serial:
            meter.cancel()
        state = parse_state(job["state"])
        is_worn = False
        try:
            ending = self._ended(job, frame.body, state, meter)
        except CarrelError as error:
            self.send(ShellFrameKind.FAILED, render_error(error))
            return
        except Exception as error:
            if not isinstance(error, MemoryError) and _NO_THREAD not in str(error):
                self.send(ShellFrameKind.FAILED, {"error": type(error).__name__, "place": raised_at(error)})
                return
            _open_reserve()
            ending, is_worn = out_of_memory(budget), True
        finally:
            self._meter = None
        is_worn = is_worn or _data_bytes() - self._first_bytes > WORN_BYTES
        self.send(
            ShellFrameKind.DONE, {"ending": list(ending), "state": render_state(state), "is_worn": is_worn}
        )

    def _ended(
        self, job: dict[str, Any], stdin: bytes | bytearray, state: ShellState, meter: Meter
    ) -> LineOutcome:
        """Run a line, and tell meanwhile what it prints and changes."""
        with self._opened(job) as workspace, workspace.gate.watching() as events:
            changes = _Changes(self, events, is_wanted=job["watch"])
            stdout, stderr = (
                OutputCollector(meter, self._teller(changes, kind))
                for kind in (ShellFrameKind.STDOUT, ShellFrameKind.STDERR)
            )
            given = InputStream(self._input(bytes(stdin), has_more=job["has_more"]))
            streams = CommandStreams(given, OutputStream(stdout, meter), OutputStream(stderr, meter))
            python = HostPython(self.hand_over, self.send, changes.flush) if job["python"] else None
            resources = ShellResources(
                _view(workspace, job), python, None, COMMANDS.keys() - set(job["denied"])
            )
            ending = InProcessRunner().run(
                job["command"], resources, state, meter, streams, pipelines=job["pipelines"]
            )
            changes.flush()
        return ending._replace(is_truncated=stdout.is_truncated or stderr.is_truncated)

    @contextmanager
    def _opened(self, job: dict[str, Any]) -> Iterator[Workspace]:
        """The session of a line, which must still be the one that the host has open."""
        self._wants_events = job["log"]
        if self._manager is None or self._described != job["manager"]:
            self._described = job["manager"]
            self._manager = WorkspaceManager.from_description(job["manager"], logger=_HostLogger(self))
        with self._manager.open(job["session_id"], actor=job["actor"]) as workspace:
            if workspace.created_ns != job["created_ns"]:
                raise SessionMissingError(f"no such session: {job['session_id']!r}: it was deleted")
            yield workspace

    def _teller(self, changes: _Changes, kind: ShellFrameKind) -> Callable[[bytes], None]:
        def tell(data: bytes) -> None:
            changes.flush_many()
            self.send(kind, None, data)

        return tell

    def _input(self, first: bytes, *, has_more: bool) -> Iterator[bytes]:
        """The standard input of the line, which the host gives piece by piece; only one command reads it."""
        if first:
            yield first
        while has_more:
            self.send(ShellFrameKind.INPUT)
            frame = self._line.receive()
            assert frame is not None  # noqa: S101  # it waits for ever
            has_more = frame.head["has_more"] is True
            yield bytes(frame.body)

    @property
    def wants_events(self) -> bool:
        """Whether the log of the host takes ordinary events."""
        return self._wants_events


class _Changes:
    """Tells the host what a line has changed."""

    def __init__(self, worker: ShellWorker, events: list[Event], *, is_wanted: bool) -> None:
        self._worker = worker
        self._events = events
        self._is_wanted = is_wanted

    def flush_many(self) -> None:
        """Tell what was changed, if that has become much."""
        if len(self._events) > 1000:
            self.flush()

    def flush(self) -> None:
        """Tell what was changed since the last time."""
        events = self._events[:]
        # Others may add some meanwhile, which are for the next time.
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
    """Lets the host log."""

    def __init__(self, worker: ShellWorker) -> None:
        super().__init__()
        self._worker = worker

    def _log(self, event: str, level: int, fields: dict[str, object]) -> None:
        if level > logging.INFO or self.wants_events():
            plain = {name: value for name, value in fields.items() if value is not None}
            self._worker.send(ShellFrameKind.LOG, {"event": event, "level": level, "fields": plain})

    def wants_events(self) -> bool:
        return self._worker.wants_events


def _view(workspace: Workspace, job: dict[str, Any]) -> Workspace:
    """The workspace, narrowed as the host has it."""
    return workspace.narrowed(
        mode=AccessMode.READ_ONLY if job["read_only"] else AccessMode.READ_WRITE,
        within=["/".join(names) for names in job["within"] or ()],
    )


def _open_reserve() -> None:
    """Let this process take a little more than its limit, to say that it met it."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _data_bytes() -> int:
    """The memory that counts for the limit."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read(100).split()[5]) * resource.getpagesize()
