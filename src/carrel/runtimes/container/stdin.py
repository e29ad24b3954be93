"""`StdinWriter`: sends a program in a container its standard input as fast as the program reads it."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread

from carrel.containers.stream import ExecStream
from carrel.errors import CarrelError
from carrel.runtimes.call import read_some
from carrel.runtimes.container.command import ContainerCommand

_CHUNK_BYTES = 2**16
_SLICE_SECONDS = 0.05
_JOIN_SECONDS = 2.0


class StdinWriter:
    """Sends from a separate thread, so that a program that does not read can still write."""

    def __init__(self, stream: ExecStream, command: ContainerCommand) -> None:
        """Send the input of *command* to *stream*."""
        self.problem: Exception | None = None
        """Why the input could not be read."""
        self._stream = stream
        self._command = command
        self._stopped = Event()
        self._thread = Thread(target=self._feed, name="carrel-input", daemon=True)

    def __enter__(self) -> StdinWriter:
        if has_input(self._command):
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            # A thread that waits for a source without a descriptor is abandoned: it sends nothing more.
            self._thread.join(_JOIN_SECONDS)

    def _feed(self) -> None:
        stdin = self._command.stdin
        first = self._command.preface + (stdin if isinstance(stdin, bytes) else b"")
        is_sent = self._send(first) and (isinstance(stdin, bytes) or self._send_rest())
        if is_sent and not self._stopped.is_set():
            # The program may have closed its input already.
            with suppress(CarrelError, OSError, ValueError):
                self._stream.close_input()

    def _send_rest(self) -> bool:
        """Send the rest of the source; return whether the program read all of it."""
        while not self._stopped.is_set():
            chunk = self._read()
            if chunk is not None and not (chunk and self._send(chunk)):
                return not chunk
        return False

    def _read(self) -> bytes | None:
        """Return the next chunk, empty at the end; `None` if no data is available yet."""
        try:
            return read_some(self._command.stdin, _CHUNK_BYTES, time.monotonic() + _SLICE_SECONDS)
        except Exception as error:  # whatever the caller's object raises
            self.problem = error
            self._stopped.set()
            return None

    def _send(self, data: bytes) -> bool:
        """Send *data*; return whether the program read all of it."""
        view = memoryview(data)
        try:
            while view and not self._stopped.is_set():
                chunk = view[:_CHUNK_BYTES]
                view = view[self._stream.send_some(chunk, deadline=time.monotonic() + _SLICE_SECONDS) :]
        except (CarrelError, OSError, ValueError):
            return False
        return not view


def has_input(command: ContainerCommand) -> bool:
    """Whether the command has any input."""
    return bool(command.preface) or not isinstance(command.stdin, bytes) or bool(command.stdin)
