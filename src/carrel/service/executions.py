"""Running command lines and code: their output, their readers, cancellation and limits.

What one prints is kept once until it is forgotten, so that a reader whose connection broke can go on where it
was. While it runs that is bounded by the shell or the policy of the guest; of what has ended only so much is
kept of each caller and of all. A reader that comes too late is told so, and never given a part as if it were
all.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial

from carrel.errors import LimitError, UnknownRequestError
from carrel.runtimes.result import SandboxResult
from carrel.service.execution_request import ExecutionRequest
from carrel.service.principal import Principal
from carrel.service.sessions.caller_session import CallerSession
from carrel.sessions.manager import new_id
from carrel.shell.result import ShellResult
from carrel.values import MIB
from carrel.workspace.threads import call_threads

PIECE_BYTES = 2**14
"""Output that came in smaller pieces is told in one of this size, if nobody was quick enough to see them."""
KEPT = 256
"""So many executions that ended are remembered for readers who come back."""
KEPT_BYTES = 256 * MIB
"""Most output of executions that ended, but for the last one's."""
KEPT_BYTES_OF_CALLER = 64 * MIB
"""Of those, the part of one caller."""
RETRY_SECONDS = 1
"""When somebody may try again who came while too much was running."""

ExecutionResult = ShellResult | SandboxResult


@dataclass(frozen=True, slots=True)
class OutputChunk:
    """A piece of what was printed."""

    stream: str
    """`stdout` or `stderr`."""
    data: bytes
    offset: int
    """Where it ends in all that was printed to both; a reader that comes back names the last one it saw."""


class Execution:
    """One command line or piece of code that runs, or did a moment ago."""

    def __init__(self, session_id: str, *, resume_seconds: float) -> None:
        self.id = new_id()
        self.session_id = session_id
        self._resume_seconds = resume_seconds
        self._loop = asyncio.get_running_loop()
        self._running: asyncio.Task[None] | None = None
        self._result: ExecutionResult | None = None
        """How it ended; what a command printed is only in the pieces."""
        self._is_dropped = False
        self._stop: Callable[[], object] | None = None
        self._is_cancelled = False
        self._arrived: deque[tuple[str, bytes]] = deque()
        self._pieces: list[OutputChunk] = []
        self._more = asyncio.Event()
        self._readers = 0
        self._unread: asyncio.TimerHandle | None = None
        """Cancels it if nobody comes back."""

    # For those who started it

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._running is not None and self._running.done()

    @property
    def has_readers(self) -> bool:
        """Whether anybody reads it now."""
        return self._readers > 0

    @property
    def kept_bytes(self) -> int:
        """How much of what it printed is kept."""
        kept = self._pieces[-1].offset if self._pieces else 0
        if isinstance(self._result, SandboxResult):
            kept += len(self._result.stdout) + len(self._result.stderr)
        return kept

    async def result(self) -> ExecutionResult:
        """How it ended; whoever waits for this may go away without ending it.

        Raises:
            CarrelError: It could not be run at all.
            UnknownRequestError: Its output is no longer kept.
        """
        await self.ended()
        result = self._result
        if result is None:
            raise self._dropped()
        if isinstance(result, ShellResult):
            return replace(result, stdout=self._printed("stdout"), stderr=self._printed("stderr"))
        return result

    async def ended(self) -> None:
        """Wait for its end.

        Raises:
            CarrelError: It could not be run at all.
        """
        assert self._running is not None  # noqa: S101  # it was begun before anybody could ask
        await asyncio.shield(self._running)

    async def events(self, after: int = 0) -> AsyncIterator[OutputChunk]:
        """What it prints beyond the offset *after*, until it ends.

        Raises:
            UnknownRequestError: Its output is no longer kept.
        """
        number = 0
        while True:
            is_done, more = self.is_done, self._more
            if self._is_dropped:
                raise self._dropped()
            while number < len(self._pieces):
                piece = self._pieces[number]
                number += 1
                if piece.offset > after:
                    new = min(len(piece.data), piece.offset - after)
                    yield replace(piece, data=piece.data[-new:])
            if is_done and not self._is_dropped:
                return
            await more.wait()

    def drop(self) -> None:
        """Let go of what it printed, also for those who still read it: they are told."""
        self._is_dropped = True
        self._result = None
        self._pieces.clear()
        self._wake()

    def _dropped(self) -> UnknownRequestError:
        return UnknownRequestError(f"the output of the execution {self.id!r} is no longer kept")

    def cancel(self) -> None:
        """Stop it; it ends as something that was cancelled."""
        self._is_cancelled = True
        if self._stop is not None:
            self._stop()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Read it meanwhile; what nobody reads any more is cancelled, unless somebody soon comes back."""
        self._readers += 1
        if self._unread is not None:
            self._unread.cancel()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers and not self.is_done:
                self._unread = self._loop.call_later(self._resume_seconds, self._cancel_unread)

    def _cancel_unread(self) -> None:
        if not self.is_done:
            self.cancel()

    # For the thread in which it runs

    def begin(self, run: Callable[[], Awaitable[ExecutionResult]]) -> None:
        """Let it run as a task of its own."""
        self._running = asyncio.ensure_future(self._run(run))
        self._running.add_done_callback(self._ended)

    async def _run(self, run: Callable[[], Awaitable[ExecutionResult]]) -> None:
        self._result = await run()
        self._take()

    def _ended(self, running: asyncio.Task[None]) -> None:
        if not running.cancelled():
            running.exception()  # looked at, so that nobody complains if no one asks for it
        # Both refer to this in turn.
        self._stop = None
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        self._wake()

    def on_start(self, stop: Callable[[], object]) -> None:
        """Be told how to stop it, in the thread in which it runs."""
        self._stop = stop
        if self._is_cancelled:
            stop()

    def on_output(self, stream: str, data: bytes) -> None:
        """Be told what it prints, in the thread in which it runs."""
        self._arrived.append((stream, data))
        if len(self._arrived) == 1:
            self._loop.call_soon_threadsafe(self._take)

    def _take(self) -> None:
        """Keep what has arrived, joined into larger pieces."""
        end = self._pieces[-1].offset if self._pieces else 0
        stream, joined = "", b""
        while self._arrived:
            name, data = self._arrived.popleft()
            if joined and (name != stream or len(joined) + len(data) > PIECE_BYTES):
                end += len(joined)
                self._pieces.append(OutputChunk(stream, joined, end))
                joined = b""
            stream, joined = name, joined + data
        if joined:
            self._pieces.append(OutputChunk(stream, joined, end + len(joined)))
        self._wake()

    def _printed(self, stream: str) -> bytes:
        return b"".join(piece.data for piece in self._pieces if piece.stream == stream)

    def _wake(self) -> None:
        more, self._more = self._more, asyncio.Event()
        more.set()


class Executions:
    """All that run, and how many may."""

    def __init__(self, *, most: int, most_per_caller: int, resume_seconds: float) -> None:
        self._most = most
        self._most_per_caller = most_per_caller
        self._resume_seconds = resume_seconds
        self._running: Counter[tuple[str | None, str]] = Counter()
        self._known: dict[str, tuple[Principal, Execution]] = {}

    def __len__(self) -> int:
        return self._running.total()

    @contextmanager
    def slot(self, caller: Principal) -> Iterator[None]:
        """Let one more thing run for *caller* meanwhile.

        Raises:
            LimitError: There are too many already.
        """
        who = (caller.tenant, caller.name)
        self._require_room(self._running[who], self._most_per_caller, "of yours ")
        self._require_room(self._running.total(), self._most, "")
        self._running[who] += 1
        try:
            yield
        finally:
            self._running[who] -= 1
            if not self._running[who]:
                del self._running[who]

    @staticmethod
    def _require_room(running: int, most: int, whose: str) -> None:
        if running < most:
            return
        error = LimitError(
            "executions",
            limit=most,
            asked=running + 1,
            message=f"{running} executions {whose}are running, and no more may; try again in a moment",
        )
        error.retry_after_seconds = RETRY_SECONDS
        raise error

    def start(self, caller: Principal, desk: CallerSession, work: ExecutionRequest) -> Execution:
        """Let *work* run on *desk*, for which the caller of this has found a slot."""
        execution = Execution(desk.record.session_id, resume_seconds=self._resume_seconds)
        call = partial(copy_context().run, desk.run, work, execution.on_output, execution.on_start)
        execution.begin(lambda: asyncio.get_running_loop().run_in_executor(call_threads(), call))
        self._known[execution.id] = caller, execution
        return execution

    def find(self, caller: Principal, session_id: str, execution_id: str) -> Execution:
        """One that runs, or has just ended.

        Raises:
            UnknownRequestError: There is none of that caller in that session.
        """
        owner, execution = self._known.get(execution_id, (None, None))
        if (
            owner is None
            or execution is None
            or (owner.tenant, owner.name, execution.session_id) != (caller.tenant, caller.name, session_id)
        ):
            raise UnknownRequestError(f"there is no execution {execution_id!r}, or it is no longer kept")
        return execution

    def of_session(self, session_id: str, tenant: str | None) -> list[Execution]:
        """Those that are known in one session."""
        known = self._known.values()
        return [one for owner, one in known if (owner.tenant, one.session_id) == (tenant, session_id)]

    def forget(self, execution: Execution) -> None:
        """Remember it for a while, and then no more; let go of others if there are too many."""
        owner, _ = self._known.get(execution.id, (None, None))
        if owner is None:
            return
        self._drop_later(execution.id)
        ended = [(who, one) for who, one in self._known.values() if one.is_done and one is not execution]
        # Those whom nobody reads go first, and of them the oldest.
        ended.sort(key=lambda each: each[1].has_readers)
        of_caller = [one for who, one in ended if (who.tenant, who.name) == (owner.tenant, owner.name)]
        self._drop_beyond(of_caller, KEPT_BYTES_OF_CALLER - execution.kept_bytes)
        kept = [one for _, one in ended if one.id in self._known]
        self._drop_beyond(kept, KEPT_BYTES - execution.kept_bytes)
        for one in [one for one in kept if one.id in self._known][: max(0, len(self._known) - KEPT)]:
            self._drop(one.id)

    def _drop_beyond(self, ended: list[Execution], most_bytes: int) -> None:
        """Drop the first of them until what the rest has printed is not more than that."""
        size = sum(one.kept_bytes for one in ended)
        for one in ended:
            if size <= most_bytes:
                return
            size -= one.kept_bytes
            self._drop(one.id)

    def _drop(self, execution_id: str) -> None:
        _, execution = self._known.pop(execution_id, (None, None))
        if execution is not None:
            execution.drop()

    def _drop_later(self, execution_id: str) -> None:
        """Drop it when its time is over, or when those who read it then have ended."""
        asyncio.get_running_loop().call_later(self._resume_seconds, self._drop_unread, execution_id)

    def _drop_unread(self, execution_id: str) -> None:
        _, execution = self._known.get(execution_id, (None, None))
        if execution is not None and execution.has_readers:
            self._drop_later(execution_id)
        else:
            self._drop(execution_id)

    async def stop(self) -> None:
        """Cancel everything, and wait until it has ended."""
        running = [one for _, one in self._known.values() if not one.is_done]
        for one in running:
            one.cancel()
        await asyncio.gather(*(one.ended() for one in running), return_exceptions=True)
