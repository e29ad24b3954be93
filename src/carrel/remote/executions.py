"""Commands and code run by the service for this client: output, result and cancellation."""

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
"""Called with `stdout` or `stderr`, and the bytes written to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutcome:
    """The result and output of an execution."""

    result: dict[str, Any]
    """The result as JSON."""
    stdout: bytes
    """Empty unless the output was kept; likewise `stderr`."""
    stderr: bytes


class RemoteExecution:
    """One command line or script run by the service."""

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self._session_id = session_id
        self._execution_id: str | None = None
        self._is_cancelled = False

    async def cancel(self) -> None:
        """Stop the execution, even if it has not begun yet."""
        self._is_cancelled = True
        if self._execution_id is not None:
            # An execution unknown to the service has ended.
            with suppress(UnknownRequestError):
                await self._transport.cancel(self._session_id, self._execution_id)

    async def outcome(
        self, work: Mapping[str, Any], on_output: OnOutput | None, *, keep: bool
    ) -> ExecutionOutcome:
        """Run *work* and wait for its end; output goes to *on_output*, and into the outcome with *keep*.

        Raises:
            UnreachableError: The connection ended before the result arrived.
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
        raise UnreachableError(
            f"the service at {self._transport.address} closed the connection before it sent the result"
        )


class RemoteExecutions:
    """The running executions of one shell or sandbox."""

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self._session_id = session_id
        self._running: set[RemoteExecution] = set()

    def begin(self) -> RemoteExecution:
        """Create an execution, which can be cancelled from now on."""
        return RemoteExecution(self._transport, self._session_id)

    async def outcome(
        self, run: RemoteExecution, work: Mapping[str, Any], on_output: OnOutput | None, *, keep: bool
    ) -> ExecutionOutcome:
        """Run *work* as *run* and wait for its end; an interrupt of the caller cancels it first."""
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
        """Stop all running executions; return their number."""
        running = list(self._running)
        for run in running:
            await run.cancel()
        return len(running)


async def _cancel_quietly(run: RemoteExecution) -> None:
    """Stop *run*; errors are ignored, since the interrupt itself is what gets raised."""
    with suppress(CarrelError):
        await run.cancel()


async def in_thread(run: RemoteExecution, work: Callable[[], Result]) -> Result:
    """Run *work* in a worker thread and return its result; cancelling the task stops *run* first."""
    loop = asyncio.get_running_loop()
    running = loop.run_in_executor(None, copy_context().run, work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.to_thread(lambda: run_sync(_cancel_quietly(run)))
        await asyncio.wait([running])
        running.exception()  # retrieved, so that asyncio does not warn about it
        raise
