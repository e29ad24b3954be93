"""`python` in a command line of a worker: the host runs the guest and relays its streams."""

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
from carrel.runtimes.frames import Frame, FrameSocket, FrameSocketBroken
from carrel.sandbox.workers.protocol import SOURCE_BYTES, ShellFrameKind, parse_error, render_error
from carrel.shell.api import PythonCall
from carrel.shell.command.context import ShellResources
from carrel.workspace.workspace import Workspace


class HostPython:
    """In the worker: has the host run guest code."""

    def __init__(
        self,
        send_socket: Callable[[socket.socket, int], None],
        send: Callable[[ShellFrameKind, dict[str, object]], None],
        flush: Callable[[], None],
    ) -> None:
        """Send requests with *send_socket*, after sending the changes so far with *flush*."""
        self._send_socket = send_socket
        self._send = send
        self._flush = flush
        self._numbers = count(1)

    def run(self, workspace: Workspace, call: PythonCall) -> int:
        """Run one call and return its exit status.

        Raises:
            CarrelError: The host cannot run it.
        """
        self._flush()
        number = next(self._numbers)
        ours, theirs = socket.socketpair()
        with closing(FrameSocket(ours)) as channel:
            with theirs:
                self._send_socket(theirs, number)
            stop = partial(self._send, ShellFrameKind.STOP_PYTHON, {"number": number})
            try:
                return _serve(channel, call, stop)
            except FrameSocketBroken:
                raise SandboxExecutionError("the guest was stopped") from None
            except CarrelError:
                raise
            except BaseException:
                stop()
                raise


def _serve(channel: FrameSocket, call: PythonCall, stop: Callable[[], object]) -> int:
    """Send the host the call, and serve its streams."""
    head: dict[str, object] = {
        "name": call.name,
        "file": call.file,
        "argv": call.argv,
        "env": dict(call.env),
        "cwd": call.cwd,
        "timeout_seconds": call.timeout_seconds,
    }
    # The host reads a file of the workspace itself.
    channel.send(ShellFrameKind.PYTHON, head, call.source if call.file is None else b"")
    call.on_start(stop)
    chunks = iter(call.stdin)
    while (frame := channel.receive()) is not None:
        match frame.kind:
            case ShellFrameKind.STDOUT:
                call.on_output("stdout", bytes(frame.body))
            case ShellFrameKind.STDERR:
                call.on_output("stderr", bytes(frame.body))
            case ShellFrameKind.INPUT:
                chunk = next(chunks, None)
                channel.send(ShellFrameKind.ANSWER, {"has_more": chunk is not None}, chunk or b"")
            case ShellFrameKind.DONE:
                return int(str(frame.head["status"]))
            case _:
                raise parse_error(frame.head)
    raise FrameSocketBroken("no answer")


class _WorkerGone(BaseException):
    """The worker has closed the socket; ends the run silently."""


class GuestCall:
    """In the host: one run of guest code for a worker, in a separate thread."""

    def __init__(self, connection: socket.socket, resources: ShellResources) -> None:
        """Start to serve *connection*; watchers of this thread see the changes of the run."""
        self._connection = connection
        self._channel = FrameSocket(connection, body_bytes=SOURCE_BYTES)
        self._resources = resources
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
        # Wakes the thread if it waits for input.
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RD)

    @property
    def is_done(self) -> bool:
        """Whether the run has ended."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Wait for the run to end."""
        self._thread.join()

    def _run(self) -> None:
        with closing(self._channel), suppress(FrameSocketBroken, _WorkerGone):
            frame = self._channel.receive()
            if frame is None or self._resources.python is None:
                return
            try:
                status = self._resources.python.run(self._resources.workspace, self._call(frame))
            except CarrelError as error:
                self._channel.send(ShellFrameKind.FAILED, render_error(error))
            else:
                self._channel.send(ShellFrameKind.DONE, {"status": status})

    def _call(self, frame: Frame) -> PythonCall:
        head: dict[str, Any] = frame.head  # Any: validated where it is used, like arguments of a caller
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
            on_start=self._on_start,
        )

    def _on_start(self, stop: Callable[[], object]) -> None:
        with self._lock:
            self._stop = stop
            is_stopped = self._is_stopped
        if is_stopped:
            stop()

    def _print(self, stream: str, data: bytes) -> None:
        try:
            self._channel.send(
                ShellFrameKind.STDOUT if stream == "stdout" else ShellFrameKind.STDERR, None, data
            )
        except FrameSocketBroken:
            raise _WorkerGone from None

    def _input(self) -> Iterator[bytes]:
        while True:
            try:
                self._channel.send(ShellFrameKind.INPUT)
                frame = self._channel.receive()
            except FrameSocketBroken:
                return
            if frame is None or frame.head.get("has_more") is not True:
                return
            yield bytes(frame.body)
