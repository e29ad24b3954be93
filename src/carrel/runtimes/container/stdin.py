"""`StdinWriter`: sends a program in a container its standard input as fast as the program reads it."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread

from carrel.containers.stream import ExecStream
from carrel.errors import CarrelError
from carrel.runtimes.call import read_some
from carrel.runtimes.container.command import ContainerCommand

_PIECE_BYTES = 2**16
_SLICE_SECONDS = 0.05
_JOIN_SECONDS = 2.0


class StdinWriter:
    """Sends from a thread of its own, so that a program that does not read can still write."""

    def __init__(self, stream: ExecStream, command: ContainerCommand) -> None:
        """Send what *command* has for *stream*."""
        self.problem: Exception | None = None
        """Why the input could not be read."""
        self._stream = stream
        self._command = command
        self._over = Event()
        self._thread = Thread(target=self._feed, name="carrel-input", daemon=True)

    def __enter__(self) -> StdinWriter:
        if has_input(self._command):
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            # One that waits for a source without a descriptor is left alone: it sends nothing any more.
            self._thread.join(_JOIN_SECONDS)

    def _feed(self) -> None:
        stdin = self._command.stdin
        first = self._command.preface + (stdin if isinstance(stdin, bytes) else b"")
        is_taken = self._send(first) and (isinstance(stdin, bytes) or self._send_rest())
        if is_taken and not self._over.is_set():
            # One that reads no further has nothing to end.
            with suppress(CarrelError, OSError, ValueError):
                self._stream.close_input()

    def _send_rest(self) -> bool:
        """Send what can be read, until its end; whether all was taken."""
        while not self._over.is_set():
            piece = self._read()
            if piece is not None and not (piece and self._send(piece)):
                return not piece
        return False

    def _read(self) -> bytes | None:
        """The next piece, none at the end, or `None` if there is none yet."""
        try:
            return read_some(self._command.stdin, _PIECE_BYTES, time.monotonic() + _SLICE_SECONDS)
        except Exception as error:  # whatever the caller's own object raises
            self.problem = error
            self._over.set()
            return None

    def _send(self, data: bytes) -> bool:
        """Whether the program took it; one that is gone, or reads no further, does not."""
        view = memoryview(data)
        try:
            while view and not self._over.is_set():
                piece = view[:_PIECE_BYTES]
                view = view[self._stream.send_some(piece, deadline=time.monotonic() + _SLICE_SECONDS) :]
        except (CarrelError, OSError, ValueError):
            return False
        return not view


def has_input(command: ContainerCommand) -> bool:
    """Whether there is anything to send."""
    return bool(command.preface) or not isinstance(command.stdin, bytes) or bool(command.stdin)
