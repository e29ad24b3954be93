"""`RemoteShell` and `AsyncRemoteShell`: a shell in a session of a service."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from carrel.remote.executions import OnOutput, RemoteExecution, RemoteExecutions, in_thread
from carrel.remote.json_codec import parse
from carrel.remote.run_sync import run_sync
from carrel.remote.transport.api import Transport
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult
from carrel.workspace.workspace import MOUNT

OnStart = Callable[[Callable[[], object]], object]
"""Is given a function that stops the line, from any thread."""


class AsyncRemoteShell:
    """Runs command lines in a session that a service keeps; calls are awaited.

    It remembers where it is from line to line. What the lines may use, and whether they may have pipelines,
    is for the service to say.
    """

    def __init__(self, transport: Transport, session_id: str) -> None:
        """Open a shell; most callers want `AsyncRemoteWorkspace.shell`."""
        self.runs = RemoteExecutions(transport, session_id)
        self.cwd = MOUNT
        """Where it is, as those inside call it."""
        self._name = uuid.uuid4().hex

    async def run(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
    ) -> ShellResult:
        """Run one command line and tell what it printed; one that fails or is refused is a result.

        With *on_output*, output is handed over as it comes instead of being kept. Of *budget*, the time goes
        to the service, which takes no more than its own. A task that is cancelled stops the command first.
        """
        return await self.run_in(self.runs.begin(), command, stdin, on_output, budget)

    arun = run

    async def run_in(
        self,
        run: RemoteExecution,
        command: str,
        stdin: bytes | Iterable[bytes],
        on_output: OnOutput | None,
        budget: Budget | None,
    ) -> ShellResult:
        """Run a command line as *run*, by which it can be stopped."""
        if not isinstance(command, str):
            raise TypeError(f"a command must be str, not {type(command).__name__}")
        work: dict[str, Any] = {"command": command, "shell": self._name}
        if given := stdin if isinstance(stdin, bytes) else b"".join(stdin):
            work["stdin"] = given
        if budget is not None and budget.seconds is not None:
            work["timeout_seconds"] = budget.seconds
        outcome = await self.runs.outcome(run, work, on_output, keep=on_output is None)
        result = parse(outcome.result | {"stdout": "", "stderr": ""}, ShellResult)
        self.cwd = result.cwd
        return replace(result, stdout=outcome.stdout, stderr=outcome.stderr)

    async def cancel(self) -> int:
        """Stop what runs in this shell; how many command lines that were."""
        return await self.runs.cancel()


class RemoteShell:
    """Runs command lines in a session that a service keeps, as `Shell` does in a workspace.

    >>> client.open("a").shell().run("grep -n TODO *.py")
    """

    def __init__(self, far: AsyncRemoteShell) -> None:
        """Use *far*, whose line blocks; most callers want `RemoteWorkspace.shell`."""
        self._far = far

    @property
    def cwd(self) -> str:
        """Where it is, as those inside call it."""
        return self._far.cwd

    def run(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
        on_start: OnStart | None = None,
    ) -> ShellResult:
        """Run one command line and tell what it printed; one that fails or is refused is a result.

        With *on_output*, output is handed over as it comes instead of being kept. What *on_start* is given
        stops this line alone, from any thread.
        """
        run = self._far.runs.begin()
        if on_start is not None:
            on_start(lambda: run_sync(run.cancel()))
        return run_sync(self._far.run_in(run, command, stdin, on_output, budget))

    async def arun(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
    ) -> ShellResult:
        """The same as `run`, awaitable; a task that is cancelled stops the command first."""
        run = self._far.runs.begin()
        return await in_thread(
            run, lambda: run_sync(self._far.run_in(run, command, stdin, on_output, budget))
        )

    def cancel(self) -> int:
        """Stop what runs in this shell, from any thread; how many command lines that were."""
        return run_sync(self._far.cancel())
