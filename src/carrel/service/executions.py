"""Command lines and code that run: their output, readers, cancellation and limits.

The output of an execution is buffered, so that a reader whose connection broke can resume where it stopped.
While the execution runs, the shell or the guest's policy bounds its output; afterwards, the buffers are
bounded per caller and in total. A reader that resumes too late gets an error, never partial output that looks
complete.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial

from carrel.config.key import Key
from carrel.config.serve_keys import EXECUTIONS, EXECUTIONS_PER_CALLER
from carrel.errors import LimitError, UnknownRequestError
from carrel.runtimes.result import SandboxResult
from carrel.service.execution_request import ExecutionRequest
from carrel.service.principal import Principal
from carrel.service.sessions.caller_session import CallerSession
from carrel.sessions.manager import new_id
from carrel.shell.result import ShellResult
from carrel.values import MIB
from carrel.workspace.threads import call_threads

CHUNK_BYTES = 2**14
"""Smaller pieces of output that have not been read yet are joined up to this size."""
MAX_KEPT = 256
"""Maximum number of executions that are kept, including ended ones whose readers may resume."""
KEPT_BYTES = 256 * MIB
"""Maximum buffered output of ended executions; the last one to end is always kept."""
KEPT_BYTES_OF_CALLER = 64 * MIB
"""Maximum share of one caller in that."""
RETRY_SECONDS = 1
"""Suggested wait, in seconds, before a rejected execution is retried."""

ExecutionResult = ShellResult | SandboxResult


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """A chunk of output."""

    stream: str
    """`stdout` or `stderr`."""
    data: bytes
    offset: int
    """End of the chunk in the output of both streams together; a reader resumes after the last one it saw."""


class Execution:
    """A command line or code that runs or has recently ended."""

    def __init__(self, session_id: str, *, resume_seconds: float) -> None:
        self.id = new_id()
        self.session_id = session_id
        self._resume_seconds = resume_seconds
        self._loop = asyncio.get_running_loop()
        self._running: asyncio.Task[None] | None = None
        self._result: ExecutionResult | None = None
        """The result; the output of a command is only in the chunks."""
        self._is_dropped = False
        self._stop: Callable[[], object] | None = None
        self._is_cancelled = False
        self._arrived: deque[tuple[str, bytes]] = deque()
        self._chunks: list[OutputChunk] = []
        self._changed = asyncio.Event()
        self._readers = 0
        self._cancel_timer: asyncio.TimerHandle | None = None
        """Cancels the execution if no reader resumes."""

    # For its readers

    @property
    def is_done(self) -> bool:
        """Whether the execution has ended."""
        return self._running is not None and self._running.done()

    @property
    def has_readers(self) -> bool:
        """Whether a reader is attached."""
        return self._readers > 0

    @property
    def kept_bytes(self) -> int:
        """Size of the buffered output."""
        kept = self._chunks[-1].offset if self._chunks else 0
        if isinstance(self._result, SandboxResult):
            kept += len(self._result.stdout) + len(self._result.stderr)
        return kept

    async def result(self) -> ExecutionResult:
        """Wait for the end and return the result; cancelling the wait does not stop the execution.

        Raises:
            CarrelError: The execution could not be started.
            UnknownRequestError: The output is no longer buffered.
        """
        await self.wait()
        result = self._result
        if result is None:
            raise self._dropped_error()
        if isinstance(result, ShellResult):
            return replace(result, stdout=self._output("stdout"), stderr=self._output("stderr"))
        return result

    async def wait(self) -> None:
        """Wait for the end; cancelling the wait does not stop the execution.

        Raises:
            CarrelError: The execution could not be started.
        """
        assert self._running is not None  # noqa: S101  # `begin` is called before anything else
        await asyncio.shield(self._running)

    async def events(self, after: int = 0) -> AsyncIterator[OutputChunk]:
        """Yield the output beyond the offset *after*, until the execution ends.

        Raises:
            UnknownRequestError: The output is no longer buffered.
        """
        number = 0
        while True:
            is_done, changed = self.is_done, self._changed
            if self._is_dropped:
                raise self._dropped_error()
            while number < len(self._chunks):
                chunk = self._chunks[number]
                number += 1
                if chunk.offset > after:
                    new = min(len(chunk.data), chunk.offset - after)
                    yield replace(chunk, data=chunk.data[-new:])
            if is_done and not self._is_dropped:
                return
            await changed.wait()

    def drop(self) -> None:
        """Drop the buffered output; readers that are still attached get an error."""
        self._is_dropped = True
        self._result = None
        self._chunks.clear()
        self._notify()

    def _dropped_error(self) -> UnknownRequestError:
        return UnknownRequestError(f"the output of the execution {self.id!r} is no longer kept")

    def cancel(self) -> None:
        """Stop the execution; its result says that it was cancelled."""
        self._is_cancelled = True
        if self._stop is not None:
            self._stop()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Attach a reader for the block; without readers, the execution is cancelled after a while."""
        self._readers += 1
        if self._cancel_timer is not None:
            self._cancel_timer.cancel()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers and not self.is_done:
                self._cancel_timer = self._loop.call_later(self._resume_seconds, self._cancel_unread)

    def _cancel_unread(self) -> None:
        if not self.is_done:
            self.cancel()

    # For the task and the thread in which it runs

    def begin(self, run: Callable[[], Awaitable[ExecutionResult]]) -> None:
        """Start *run* in a task."""
        self._running = asyncio.ensure_future(self._run(run))
        self._running.add_done_callback(self._finish)

    async def _run(self, run: Callable[[], Awaitable[ExecutionResult]]) -> None:
        self._result = await run()
        self._collect()

    def _finish(self, running: asyncio.Task[None]) -> None:
        if not running.cancelled():
            running.exception()  # retrieved, or asyncio logs it if nobody waits for the result
        # Break the reference cycles through these two.
        self._stop = None
        if self._cancel_timer is not None:
            self._cancel_timer.cancel()
            self._cancel_timer = None
        self._notify()

    def on_start(self, stop: Callable[[], object]) -> None:
        """Receive the function that stops the execution; called in its thread."""
        self._stop = stop
        if self._is_cancelled:
            stop()

    def on_output(self, stream: str, data: bytes) -> None:
        """Receive output; called in the thread of the execution."""
        self._arrived.append((stream, data))
        if len(self._arrived) == 1:
            self._loop.call_soon_threadsafe(self._collect)

    def _collect(self) -> None:
        """Join the output that has arrived into chunks, and wake the readers."""
        end = self._chunks[-1].offset if self._chunks else 0
        stream, joined = "", b""
        while self._arrived:
            name, data = self._arrived.popleft()
            if joined and (name != stream or len(joined) + len(data) > CHUNK_BYTES):
                end += len(joined)
                self._chunks.append(OutputChunk(stream, joined, end))
                joined = b""
            stream, joined = name, joined + data
        if joined:
            self._chunks.append(OutputChunk(stream, joined, end + len(joined)))
        self._notify()

    def _output(self, stream: str) -> bytes:
        return b"".join(chunk.data for chunk in self._chunks if chunk.stream == stream)

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


class Executions:
    """The executions of a service, and their limits."""

    def __init__(self, *, max_running: int, max_per_caller: int, resume_seconds: float) -> None:
        self._max_running = max_running
        self._max_per_caller = max_per_caller
        self._resume_seconds = resume_seconds
        self._running: Counter[tuple[str | None, str]] = Counter()
        self._kept: dict[str, tuple[Principal, Execution]] = {}

    def __len__(self) -> int:
        return self._running.total()

    @contextmanager
    def slot(self, caller: Principal) -> Iterator[None]:
        """Count one more execution of *caller* during the block.

        Raises:
            LimitError: Too many are running.
        """
        key = (caller.tenant, caller.name)
        _require_room(self._running[key], self._max_per_caller, "of yours ", EXECUTIONS_PER_CALLER)
        _require_room(self._running.total(), self._max_running, "", EXECUTIONS)
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]

    def start(self, caller: Principal, session: CallerSession, request: ExecutionRequest) -> Execution:
        """Start *request* in *session*; the caller of this method holds a `slot` for it."""
        execution = Execution(session.record.session_id, resume_seconds=self._resume_seconds)
        call = partial(copy_context().run, session.run, request, execution.on_output, execution.on_start)
        execution.begin(lambda: asyncio.get_running_loop().run_in_executor(call_threads(), call))
        self._kept[execution.id] = caller, execution
        return execution

    def find(self, caller: Principal, session_id: str, execution_id: str) -> Execution:
        """Return an execution that runs or has recently ended.

        Raises:
            UnknownRequestError: The caller has no such execution in the session.
        """
        owner, execution = self._kept.get(execution_id, (None, None))
        if (
            owner is None
            or execution is None
            or (owner.tenant, owner.name, execution.session_id) != (caller.tenant, caller.name, session_id)
        ):
            raise UnknownRequestError(f"there is no execution {execution_id!r}, or it is no longer kept")
        return execution

    def in_session(self, session_id: str, tenant: str | None) -> list[Execution]:
        """Return the executions in one session."""
        kept = self._kept.values()
        return [one for owner, one in kept if (owner.tenant, one.session_id) == (tenant, session_id)]

    def retire(self, execution: Execution) -> None:
        """Keep an ended execution for a while, and drop older ones that exceed the limits."""
        owner, _ = self._kept.get(execution.id, (None, None))
        if owner is None:
            return
        self._drop_later(execution.id)
        ended = [(caller, one) for caller, one in self._kept.values() if one.is_done and one is not execution]
        # Those without readers go first, the oldest before the others.
        ended.sort(key=lambda each: each[1].has_readers)
        of_caller = [
            one for caller, one in ended if (caller.tenant, caller.name) == (owner.tenant, owner.name)
        ]
        self._drop_beyond(of_caller, KEPT_BYTES_OF_CALLER - execution.kept_bytes)
        kept = [one for _, one in ended if one.id in self._kept]
        self._drop_beyond(kept, KEPT_BYTES - execution.kept_bytes)
        for one in [one for one in kept if one.id in self._kept][: max(0, len(self._kept) - MAX_KEPT)]:
            self._drop(one.id)

    def _drop_beyond(self, ended: list[Execution], max_bytes: int) -> None:
        """Drop executions from the front until the output of the rest is at most *max_bytes*."""
        size = sum(one.kept_bytes for one in ended)
        for one in ended:
            if size <= max_bytes:
                return
            size -= one.kept_bytes
            self._drop(one.id)

    def _drop(self, execution_id: str) -> None:
        _, execution = self._kept.pop(execution_id, (None, None))
        if execution is not None:
            execution.drop()

    def _drop_later(self, execution_id: str) -> None:
        """Drop the execution when its readers can no longer resume, and none is attached."""
        asyncio.get_running_loop().call_later(self._resume_seconds, self._drop_unread, execution_id)

    def _drop_unread(self, execution_id: str) -> None:
        _, execution = self._kept.get(execution_id, (None, None))
        if execution is not None and execution.has_readers:
            self._drop_later(execution_id)
        else:
            self._drop(execution_id)

    async def stop(self) -> None:
        """Cancel all executions, and wait until they have ended."""
        running = [one for _, one in self._kept.values() if not one.is_done]
        for one in running:
            one.cancel()
        await asyncio.gather(*(one.wait() for one in running), return_exceptions=True)


def _require_room(running: int, limit: int, whose: str, setting: Key[int]) -> None:
    if running >= limit:
        raise LimitError(
            "executions",
            limit=limit,
            asked=running + 1,
            message=f"{running} executions {whose}are running, and {setting.name} allows no more;"
            " try again in a moment",
            retry_after_seconds=RETRY_SECONDS,
        )
