"""`python` in a command line of a worker: the service runs the guest, over a socket for each run."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import Any

from carrel.errors import CarrelError, SandboxExecutionError
from carrel.runtimes.line import Frame, Line, LineBroken
from carrel.sandbox.workers.wire import SOURCE_BYTES, Kind, error_head, error_of
from carrel.shell.api import PythonCall
from carrel.shell.context import Shared
from carrel.workspace.workspace import Workspace


class HostPython:
    """In a worker: lets the host run guest code."""

    def __init__(
        self,
        hand_over: Callable[[socket.socket, int], None],
        send: Callable[[Kind, dict[str, object]], None],
        flush: Callable[[], None],
    ) -> None:
        """Ask by *hand_over*, after what was changed so far was told by *flush*."""
        self._hand_over = hand_over
        self._send = send
        self._flush = flush
        self._numbers = count(1)

    def run(self, workspace: Workspace, call: PythonCall) -> int:
        """Run one call to its end, and return its exit status.

        Raises:
            CarrelError: The host cannot run it.
        """
        self._flush()
        number = next(self._numbers)
        ours, theirs = socket.socketpair()
        with closing(Line(ours)) as channel:
            with theirs:
                self._hand_over(theirs, number)
            stop = partial(self._send, Kind.STOP_PYTHON, {"number": number})
            try:
                return _attend(channel, call, stop)
            except LineBroken:
                raise SandboxExecutionError("the guest was stopped") from None
            except CarrelError:
                raise
            except BaseException:
                stop()
                raise


def _attend(channel: Line, call: PythonCall, stop: Callable[[], object]) -> int:
    """Tell the host what to run, and serve its streams."""
    head: dict[str, object] = {
        "name": call.name,
        "file": call.file,
        "argv": call.argv,
        "env": dict(call.env),
        "cwd": call.cwd,
        "timeout_seconds": call.timeout_seconds,
    }
    # A file of the workspace is read by who runs it.
    channel.send(Kind.PYTHON, head, call.source if call.file is None else b"")
    call.on_start(stop)
    pieces = iter(call.stdin)
    while (frame := channel.receive()) is not None:
        match frame.kind:
            case Kind.STDOUT:
                call.on_output("stdout", bytes(frame.body))
            case Kind.STDERR:
                call.on_output("stderr", bytes(frame.body))
            case Kind.INPUT:
                piece = next(pieces, None)
                channel.send(Kind.ANSWER, {"has_more": piece is not None}, piece or b"")
            case Kind.DONE:
                return int(str(frame.head["status"]))
            case _:
                raise error_of(frame.head)
    raise LineBroken("no answer")


class _Gone(BaseException):
    """Nobody in the worker wants the run any more; ends it quietly."""


class GuestCall:
    """In the host: one run of guest code for a worker, in a thread of its own."""

    def __init__(self, connection: socket.socket, shared: Shared) -> None:
        """Begin to serve *connection*; the run is recorded and watched as a part of what this thread does."""
        self._connection = connection
        self._channel = Line(connection, body_bytes=SOURCE_BYTES)
        self._shared = shared
        self._lock = threading.Lock()
        self._is_stopped = False
        self._stop: Callable[[], object] | None = None
        run = partial(copy_context().run, self._run)
        self._thread = threading.Thread(target=run, name="carrel-shell-python", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the run, from any thread."""
        with self._lock:
            self._is_stopped = True
            stop = self._stop
        if stop is not None:
            stop()
        # Wakes it if it waits for input.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def _run(self) -> None:
        with closing(self._channel), suppress(LineBroken, _Gone):
            frame = self._channel.receive()
            if frame is None or self._shared.python is None:
                return
            try:
                status = self._shared.python.run(self._shared.workspace, self._call(frame))
            except CarrelError as error:
                self._channel.send(Kind.FAILED, error_head(error))
            else:
                self._channel.send(Kind.DONE, {"status": status})

    def _call(self, frame: Frame) -> PythonCall:
        head: dict[str, Any] = frame.head  # Any: checked where it is used, as what a caller gave
        return PythonCall(
            source=bytes(frame.body),
            name=head["name"],
            file=head["file"],
            argv=tuple(head["argv"]),
            env=head["env"],
            cwd=head["cwd"],
            stdin=self._input(),
            timeout_seconds=head["timeout_seconds"],
            on_output=self._print,
            on_start=self._begun,
        )

    def _begun(self, stop: Callable[[], object]) -> None:
        with self._lock:
            self._stop = stop
            is_late = self._is_stopped
        if is_late:
            stop()

    def _print(self, stream: str, data: bytes) -> None:
        try:
            self._channel.send(Kind.STDOUT if stream == "stdout" else Kind.STDERR, None, data)
        except LineBroken:
            raise _Gone from None

    def _input(self) -> Iterator[bytes]:
        while True:
            try:
                self._channel.send(Kind.INPUT)
                frame = self._channel.receive()
            except LineBroken:
                return
            if frame is None or frame.head.get("has_more") is not True:
                return
            yield bytes(frame.body)
