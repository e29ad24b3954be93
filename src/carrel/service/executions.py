"""Command lines and code that run in sessions, and what they print meanwhile.

What one prints is kept until it is forgotten, so that a reader whose connection broke can go on where it was.
It is bounded, since the shell and the policy of the guest bound it.
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
from carrel.service.desk import Desk
from carrel.service.principal import Principal
from carrel.service.work import Work
from carrel.shell.result import ShellResult
from carrel.workspace.sessions import new_id
from carrel.workspace.threads import call_threads

PIECE_BYTES = 2**14
"""Output that came in smaller pieces is told in one of this size, if nobody was quick enough to see them."""
KEPT = 256
"""So many executions that ended are remembered for readers who come back."""
RETRY_SECONDS = 1
"""When somebody may try again who came while too much was running."""

Result = ShellResult | SandboxResult


@dataclass(frozen=True, slots=True)
class Output:
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
        self._running: asyncio.Task[Result] | None = None
        self._stop: Callable[[], object] | None = None
        self._is_cancelled = False
        self._arrived: deque[tuple[str, bytes]] = deque()
        self._pieces: list[Output] = []
        self._more = asyncio.Event()
        self._readers = 0
        self._unread: asyncio.TimerHandle | None = None
        """Cancels it if nobody comes back."""

    # For those who started it

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._running is not None and self._running.done()

    async def result(self) -> Result:
        """How it ended; whoever waits for this may go away without ending it.

        Raises:
            CarrelError: It could not be run at all.
        """
        assert self._running is not None  # noqa: S101  # it was begun before anybody could ask
        return await asyncio.shield(self._running)

    async def events(self, after: int = 0) -> AsyncIterator[Output]:
        """What it prints beyond the offset *after*, until it ends."""
        number = 0
        while True:
            is_done, more = self.is_done, self._more
            while number < len(self._pieces):
                piece = self._pieces[number]
                number += 1
                if piece.offset > after:
                    new = min(len(piece.data), piece.offset - after)
                    yield replace(piece, data=piece.data[-new:])
            if is_done:
                return
            await more.wait()

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

    def begin(self, run: Callable[[], Awaitable[Result]]) -> None:
        """Let it run as a task of its own."""
        self._running = asyncio.ensure_future(self._run(run))
        self._running.add_done_callback(self._ended)

    async def _run(self, run: Callable[[], Awaitable[Result]]) -> Result:
        result = await run()
        self._take()
        if isinstance(result, ShellResult):
            return replace(result, stdout=self._printed("stdout"), stderr=self._printed("stderr"))
        return result

    def _ended(self, running: asyncio.Task[Result]) -> None:
        if not running.cancelled():
            running.exception()  # looked at, so that nobody complains if no one asks for it
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
                self._pieces.append(Output(stream, joined, end))
                joined = b""
            stream, joined = name, joined + data
        if joined:
            self._pieces.append(Output(stream, joined, end + len(joined)))
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

    def start(self, caller: Principal, desk: Desk, work: Work) -> Execution:
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
            raise UnknownRequestError(f"there is no execution {execution_id!r}")
        return execution

    def of_session(self, session_id: str, tenant: str | None) -> list[Execution]:
        """Those that are known in one session."""
        known = self._known.values()
        return [one for owner, one in known if (owner.tenant, one.session_id) == (tenant, session_id)]

    def forget(self, execution: Execution) -> None:
        """Remember it for a while, and then no more."""
        loop = asyncio.get_running_loop()
        loop.call_later(self._resume_seconds, self._known.pop, execution.id, None)
        for each in list(self._known)[:-KEPT]:
            if self._known[each][1].is_done:
                del self._known[each]

    async def stop(self) -> None:
        """Cancel everything, and wait until it has ended."""
        running = [one for _, one in self._known.values() if not one.is_done]
        for one in running:
            one.cancel()
        await asyncio.gather(*(one.result() for one in running), return_exceptions=True)
