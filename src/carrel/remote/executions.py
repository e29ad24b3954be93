"""Commands and code that the service runs for this client: their output, result and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from carrel.errors import CarrelError, UnknownRequestError, UnreachableError
from carrel.remote.run_sync import run_sync
from carrel.remote.transport.api import ExecutionEnded, ExecutionOutput, ExecutionStarted, Transport

Result = TypeVar("Result")
OnOutput = Callable[[str, bytes], None]
"""Is given `stdout` or `stderr`, and bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutcome:
    """How something that ran ended."""

    result: dict[str, Any]
    """As JSON says it."""
    stdout: bytes
    """What was printed, if that was to be kept."""
    stderr: bytes


class RemoteExecution:
    """One command or code on its way through the service."""

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self._session_id = session_id
        self._execution_id: str | None = None
        self._is_cancelled = False

    async def cancel(self) -> None:
        """Stop it, also before it has begun."""
        self._is_cancelled = True
        if self._execution_id is not None:
            # One that nobody knows any more has ended.
            with suppress(UnknownRequestError):
                await self._transport.cancel(self._session_id, self._execution_id)

    async def outcome(
        self, work: Mapping[str, Any], on_output: OnOutput | None, *, keep: bool
    ) -> ExecutionOutcome:
        """Run *work* to its end; output is handed over as it comes, and kept if *keep*.

        Raises:
            UnreachableError: The service went away before the end.
        """
        kept: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        async with aclosing(self._transport.execute(self._session_id, work)) as steps:
            async for step in steps:
                match step:
                    case ExecutionStarted():
                        self._execution_id = step.execution_id
                        if self._is_cancelled:
                            await self.cancel()
                    case ExecutionOutput():
                        if on_output is not None:
                            on_output(step.stream, step.data)
                        if keep:
                            kept[step.stream].append(step.data)
                    case ExecutionEnded():
                        return ExecutionOutcome(
                            result=step.result,
                            stdout=b"".join(kept["stdout"]),
                            stderr=b"".join(kept["stderr"]),
                        )
        raise UnreachableError(f"the service at {self._transport.address} did not tell how it ended")


class RemoteExecutions:
    """What one shell or sandbox runs just now."""

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self._session_id = session_id
        self._running: set[RemoteExecution] = set()

    def begin(self) -> RemoteExecution:
        """What is about to run, which can be stopped from now on."""
        return RemoteExecution(self._transport, self._session_id)

    async def outcome(
        self, run: RemoteExecution, work: Mapping[str, Any], on_output: OnOutput | None, *, keep: bool
    ) -> ExecutionOutcome:
        """Run *work* as *run* to its end; whoever is interrupted meanwhile stops it first."""
        self._running.add(run)
        try:
            return await run.outcome(work, on_output, keep=keep)
        except CarrelError:
            raise
        except BaseException:
            await _cancel_quietly(run)
            raise
        finally:
            self._running.discard(run)

    async def cancel(self) -> int:
        """Stop all of it; how many there were."""
        running = list(self._running)
        for run in running:
            await run.cancel()
        return len(running)


async def _cancel_quietly(run: RemoteExecution) -> None:
    """Stop *run* as well as can be; what interrupted it is told, not what goes wrong here."""
    with suppress(CarrelError):
        await run.cancel()


async def in_thread(run: RemoteExecution, work: Callable[[], Result]) -> Result:
    """What *work* gives in a worker thread; a task that is cancelled stops *run* first."""
    loop = asyncio.get_running_loop()
    running = loop.run_in_executor(None, copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.to_thread(lambda: run_sync(_cancel_quietly(run)))
        await asyncio.wait([running])
        running.exception()  # looked at, so that nobody complains that it was not
        raise
