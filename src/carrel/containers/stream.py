"""`ExecStream`: a program that runs in a container by `exec`, with its streams."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from carrel.containers.hijack import Line
from carrel.containers.trouble import translated

if TYPE_CHECKING:
    from carrel.containers.engine import Engine

STDOUT = 1
STDERR = 2
_HEAD_BYTES = 8
_SLICE_SECONDS = 0.002


class ExecStream:
    """Both directions of one program; the engine marks which stream every piece of output is from."""

    def __init__(self, engine: Engine, exec_id: str, line: Line) -> None:
        self._engine = engine
        self._id = exec_id
        self._line = line
        self._buffer = b""
        self._stream = STDOUT
        self._left = 0
        """How much of the piece that is being received is still to come."""

    def send(self, data: bytes, *, deadline: float) -> None:
        """Write to its standard input.

        Raises:
            EngineError: It was not taken before *deadline*, by the monotonic clock, or the engine is gone.
        """
        with translated("sending to a program"):
            self._line.send(data, deadline)

    def send_some(self, data: bytes | memoryview, *, deadline: float) -> int:
        """Write the beginning of *data* to its standard input; how much was taken before *deadline*.

        Raises:
            EngineError: The program or the engine is gone.
        """
        with translated("sending to a program"):
            return self._line.send_some(data, deadline)

    def close_input(self) -> None:
        """End its standard input."""
        with translated("sending to a program"):
            self._line.end_input()

    def receive(self, deadline: float) -> tuple[int, bytes] | None:
        """What it wrote next, and whether to `STDOUT` or `STDERR`; `None` if nothing came until *deadline*.

        Raises:
            EOFError: Nothing more will come.
            EngineError: The engine is gone.
        """
        while True:
            if self._left and self._buffer:
                piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
                self._left -= len(piece)
                return self._stream, piece
            if not self._left and len(self._buffer) >= _HEAD_BYTES:
                head, self._buffer = self._buffer[:_HEAD_BYTES], self._buffer[_HEAD_BYTES:]
                self._stream, self._left = head[0], int.from_bytes(head[4:], "big")
                continue
            with translated("receiving from a program"):
                received = self._line.receive(deadline)
            if received is None:
                return None
            if not received:
                raise EOFError
            self._buffer = self._buffer + received if self._buffer else received

    def exit_code(self) -> int | None:
        """The status it ended with; `None` while it runs."""
        with translated("asking how a program ended"):
            found = self._engine.api.exec_inspect(self._id)
        return None if found.get("Running") else found.get("ExitCode")

    def has_begun(self) -> bool:
        """Whether there ever was a process; of one that has ended, whether it could be started."""
        with translated("asking how a program began"):
            return bool(self._engine.api.exec_inspect(self._id).get("Pid"))

    def wait(self, deadline: float) -> int | None:
        """The status it ends with; `None` if it still runs at *deadline*."""
        while (code := self.exit_code()) is None and time.monotonic() < deadline:
            time.sleep(_SLICE_SECONDS)
        return code

    def end(self) -> None:
        """Take no more of its output, and let the engine know; what runs goes on."""
        self._line.end()

    def close(self) -> None:
        """Let go of the connection; what runs goes on."""
        self._line.close()
