"""One command of a pipeline, which may run in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import Thread

from carrel.shell.result import ExitRequest
from carrel.shell.streams import Pipe


class PipelineStage:
    """Runs a command, and lets its neighbours know when it has ended."""

    def __init__(
        self,
        run: Callable[[], int],
        *,
        stop: Callable[[], object],
        reads: Pipe | None,
        writes: Pipe | None,
    ) -> None:
        """Run *run* between two pipes; if it cannot go on, *stop* ends the others."""
        self.status = 1
        self.error: BaseException | None = None
        self._run = run
        self._stop = stop
        self._reads = reads
        self._writes = writes
        # In the context of the line, so that whoever watches what it changes sees this command's part.
        self._thread = Thread(
            target=copy_context().run, args=(self.run,), name="carrel-pipeline", daemon=True
        )

    def start(self) -> None:
        """Run in another thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end, if it began."""
        if self._thread.ident is not None:
            self._thread.join()

    def run(self) -> None:
        """Run to the end; an `exit` ends only this command."""
        try:
            self.status = self._run()
        except ExitRequest as asked:
            self.status = asked.status
        except BaseException as error:  # raised again in the thread that waits
            self.error = error
            # Before the pipes are closed, so that nobody takes what came so far for all.
            self._stop()
        finally:
            if self._writes is not None:
                self._writes.close()
            if self._reads is not None:
                self._reads.stop_reading()
