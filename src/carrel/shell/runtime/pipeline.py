"""Run the commands of a pipeline side by side, each in a thread but the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Thread

from carrel.shell.budget import Stopped
from carrel.shell.result import ExitRequest
from carrel.shell.streams import Pipe


class PipelineStage:
    """One command of a pipeline; closes its pipes when it ends, so that its neighbours notice."""

    def __init__(
        self,
        run: Callable[[], int],
        *,
        stop: Callable[[], object],
        stdin: Pipe | None,
        stdout: Pipe | None,
    ) -> None:
        """Call *run* between two pipes; if it raises, *stop* ends the other stages."""
        self.status = 1
        self.error: BaseException | None = None
        self._run = run
        self._stop = stop
        self._stdin = stdin
        self._stdout = stdout
        # A copy of the line's context: a watcher of the line sees the changes of this command, too.
        self._thread = Thread(
            target=copy_context().run, args=(self.run,), name="carrel-pipeline", daemon=True
        )

    def start(self) -> None:
        """Run in another thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread, if it was started."""
        if self._thread.ident is not None:
            self._thread.join()

    def run(self) -> None:
        """Run to completion; `exit` ends only this command."""
        try:
            self.status = self._run()
        except ExitRequest as request:
            self.status = request.status
        except BaseException as error:  # raised again by `run_stages`
            self.error = error
            # Before the pipes are closed, so that the reader does not take partial data for all of it.
            self._stop()
        finally:
            if self._stdout is not None:
                self._stdout.close()
            if self._stdin is not None:
                self._stdin.close_reader()


def run_stages(stages: Sequence[PipelineStage], stop: Callable[[], object]) -> list[int]:
    """Run all stages at once, the last in the calling thread, and return their exit statuses.

    *stop* ends the stages that are still running if this thread is interrupted.

    Raises:
        BaseException: The error that ended a stage, in preference to the `Stopped` of those it stopped.
    """
    *others, last = stages
    try:
        for stage in others:
            stage.start()
        last.run()
        for stage in others:
            stage.join()
    except BaseException:
        stop()
        for stage in others:
            stage.join()
        raise
    errors = [stage.error for stage in stages if stage.error is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, Stopped)), errors[0])
    return [stage.status for stage in stages]
