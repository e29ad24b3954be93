"""`InterpreterHandle`: an interpreter in a worker process, as the host sees it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from carrel.errors import SandboxExecutionError
from carrel.runtimes.frames import Frame, FrameKind, FrameSocket, FrameSocketBroken

if TYPE_CHECKING:
    from carrel.runtimes.wasm.worker_process import WasmWorker


_TOLD_CHARACTERS = 2_000


class NotCompiledError(SandboxExecutionError):
    """The compiled guest does not load here and has to be compiled again."""


class InterpreterHandle:
    """One guest, for one session."""

    def __init__(self, worker: WasmWorker, number: int, line: FrameSocket, *, metered: bool) -> None:
        self.worker = worker
        self.line = line
        self.metered = metered
        self.scripts = 0
        """How many it was given."""
        self.versions: dict[tuple[bool, str], str] = {}
        """What the files were when it last saw them; it may have some open from one script to the next."""
        self._number = number
        self._is_ready = False

    @property
    def is_closed(self) -> bool:
        """Whether it was ended."""
        return self.line.fileno() < 0

    def is_ready(self) -> bool:
        """Whether it can begin at once; one that failed is found out when it is used."""
        if not self._is_ready:
            try:
                self._take_ready(self.line.receive(time.monotonic()))
            except (FrameSocketBroken, SandboxExecutionError):
                return False
        return self._is_ready

    def require_ready(self, until: float) -> None:
        """Wait until it can begin.

        Raises:
            LineBroken: Its process is gone, or takes too long.
            SandboxExecutionError: The engine cannot make an interpreter.
        """
        if not self._is_ready:
            self._take_ready(self.line.receive(until))
        if not self._is_ready:
            raise FrameSocketBroken("the interpreter does not come up")

    def _take_ready(self, frame: Frame | None) -> None:
        if frame is None:
            return
        if frame.kind != FrameKind.READY:
            kind = NotCompiledError if frame.head.get("unusable") is True else SandboxExecutionError
            raise kind(f"no interpreter could be opened: {str(frame.head.get('error'))[:_TOLD_CHARACTERS]}")
        self._is_ready = True

    def begin(self, head: dict[str, object], body: bytes, *, is_overdue: Callable[[], bool]) -> None:
        """Give it a script.

        Raises:
            LineBroken: Its process is gone, or does not take it in time.
        """
        self.scripts += 1
        self.line.send(FrameKind.RUN, {**head, "serial": self.scripts}, body, is_overdue=is_overdue)

    def cancel(self) -> None:
        """Stop the script that it was given last."""
        self.worker.cancel(self._number, self.scripts)

    def close(self) -> None:
        """End it."""
        self.line.close()
