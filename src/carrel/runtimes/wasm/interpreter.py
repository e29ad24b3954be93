"""`InterpreterHandle`: the host's handle for an interpreter in a worker process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from carrel.errors import SandboxExecutionError
from carrel.runtimes.frames import Frame, FrameKind, FrameSocket, FrameSocketBroken

if TYPE_CHECKING:
    from carrel.runtimes.wasm.worker_process import WasmWorker


_MAX_ERROR_CHARACTERS = 2_000


class NotCompiledError(SandboxExecutionError):
    """The compiled guest does not load and must be compiled again."""


class InterpreterHandle:
    """One interpreter, which serves one session."""

    def __init__(self, worker: WasmWorker, number: int, frames: FrameSocket, *, metered: bool) -> None:
        self.worker = worker
        self.frames = frames
        self.metered = metered
        self.scripts = 0
        """How many scripts it has received."""
        self.versions: dict[tuple[bool, str], str] = {}
        """Versions of the files when it last saw them; it may keep files open between scripts."""
        self._number = number
        self._is_ready = False

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self.frames.fileno() < 0

    def is_ready(self) -> bool:
        """Return whether it can run a script at once; a failure surfaces when it is used."""
        if not self._is_ready:
            try:
                self._take_ready(self.frames.receive(time.monotonic()))
            except (FrameSocketBroken, SandboxExecutionError):
                return False
        return self._is_ready

    def require_ready(self, until: float) -> None:
        """Wait until it can run a script.

        Raises:
            FrameSocketBroken: Its process is gone, or takes too long.
            SandboxExecutionError: The engine cannot open an interpreter.
        """
        if not self._is_ready:
            self._take_ready(self.frames.receive(until))
        if not self._is_ready:
            raise FrameSocketBroken("the interpreter did not start in time")

    def _take_ready(self, frame: Frame | None) -> None:
        if frame is None:
            return
        if frame.kind != FrameKind.READY:
            kind = NotCompiledError if frame.head.get("unusable") is True else SandboxExecutionError
            raise kind(
                f"no interpreter could be opened: {str(frame.head.get('error'))[:_MAX_ERROR_CHARACTERS]}"
            )
        self._is_ready = True

    def begin(self, head: dict[str, object], body: bytes, *, is_overdue: Callable[[], bool]) -> None:
        """Send it a script.

        Raises:
            FrameSocketBroken: Its process is gone, or does not read the script in time.
        """
        self.scripts += 1
        self.frames.send(FrameKind.RUN, {**head, "serial": self.scripts}, body, is_overdue=is_overdue)

    def cancel(self) -> None:
        """Stop the script that it received last."""
        self.worker.cancel(self._number, self.scripts)

    def close(self) -> None:
        """Close its socket, which ends it."""
        self.frames.close()
