"""`RemoteShell` and `AsyncRemoteShell`: a shell in a session at a service."""

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
"""Called with a function that stops the command line, from any thread."""


class AsyncRemoteShell:
    """Runs command lines in a session at a service; calls are awaited.

    The working directory is kept from line to line. The service decides about budgets and pipelines.
    """

    def __init__(self, transport: Transport, session_id: str, *, budget: Budget | None = None) -> None:
        """Open a shell; most callers use `AsyncRemoteWorkspace.shell`."""
        self.budget = budget
        """Limits of command lines that are given none; `None` for those of the service."""
        self.runs = RemoteExecutions(transport, session_id)
        self.cwd = MOUNT
        """Working directory as the session sees it."""
        self._name = uuid.uuid4().hex

    async def run(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
    ) -> ShellResult:
        """Run one command line; a command that fails or is refused is a result, not an exception.

        With *on_output*, output is passed on as it arrives instead of being kept. Only the time of *budget*
        is sent, and limited to that of the service. Cancelling the task stops the command first.
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
        """Run a command line as *run*, which can be cancelled."""
        if not isinstance(command, str):
            raise TypeError(f"a command must be str, not {type(command).__name__}")
        work: dict[str, Any] = {"command": command, "shell": self._name}
        if data := stdin if isinstance(stdin, bytes) else b"".join(stdin):
            work["stdin"] = data
        budget = budget or self.budget
        if budget is not None and budget.seconds is not None:
            work["timeout_seconds"] = budget.seconds
        outcome = await self.runs.outcome(run, work, on_output, keep=on_output is None)
        result = parse(outcome.result | {"stdout": "", "stderr": ""}, ShellResult)
        self.cwd = result.cwd
        return replace(result, stdout=outcome.stdout, stderr=outcome.stderr)

    async def cancel(self) -> int:
        """Stop all running command lines of this shell; return their number."""
        return await self.runs.cancel()


class RemoteShell:
    """Runs command lines in a session at a service, as `Shell` does in a workspace.

    >>> client.open("a").shell().run("grep -n TODO *.py")
    """

    def __init__(self, async_shell: AsyncRemoteShell) -> None:
        """Wrap *async_shell*, whose connection blocks; most callers use `RemoteWorkspace.shell`."""
        self._async_shell = async_shell

    @property
    def budget(self) -> Budget | None:
        """Limits of command lines that are given none; `None` for those of the service."""
        return self._async_shell.budget

    @property
    def cwd(self) -> str:
        """Working directory as the session sees it."""
        return self._async_shell.cwd

    def run(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
        on_start: OnStart | None = None,
    ) -> ShellResult:
        """Run one command line; a command that fails or is refused is a result, not an exception.

        With *on_output*, output is passed on as it arrives instead of being kept. *on_start* is called with a
        function that stops this line only, from any thread.
        """
        run = self._async_shell.runs.begin()
        if on_start is not None:
            on_start(lambda: run_sync(run.cancel()))
        return run_sync(self._async_shell.run_in(run, command, stdin, on_output, budget))

    async def arun(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
    ) -> ShellResult:
        """Run a command line as `run` does; cancelling the task stops the command first."""
        run = self._async_shell.runs.begin()
        return await in_thread(
            run, lambda: run_sync(self._async_shell.run_in(run, command, stdin, on_output, budget))
        )

    def cancel(self) -> int:
        """Stop all running command lines of this shell, from any thread; return their number."""
        return run_sync(self._async_shell.cancel())
