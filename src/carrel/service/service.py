"""`Service`: the operations that every front calls, each on behalf of a caller."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import AsyncExitStack, aclosing, suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.errors import CarrelError, LimitError, RequestError, SessionMissingError
from carrel.fs.nonblocking import WouldBlock, run_nonblocking
from carrel.policy.roles import DEFAULT_ROLE, Role
from carrel.sandbox.engines import FindEngine
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.service import journal_stream
from carrel.service.admission import Admission, SingleFlight
from carrel.service.execution_request import ExecutionRequest
from carrel.service.executions import Execution, Executions
from carrel.service.journal_stream import ChangesPage
from carrel.service.operations import OPERATIONS, find_operation
from carrel.service.principal import Principal
from carrel.service.sessions.access import SessionAccess
from carrel.service.sessions.caller_session import CallerSession
from carrel.service.sessions.lifecycle import SessionLifecycle
from carrel.service.sessions.open_sessions import OpenSessions
from carrel.service.tenants import Tenants
from carrel.service.thread_pools import BlockingThreadPool, FairThreadPool, Slots
from carrel.service.upload_limit import UploadLimiter
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.core.deadline import Deadline
from carrel.tools.core.formats import Format, render_tool
from carrel.tools.core.options import ResolvedOptions
from carrel.tools.core.result import ToolResult
from carrel.tools.core.run_location import role_run_location
from carrel.tools.core.spec import Profile, ToolEffect
from carrel.tools.core.table import TOOLS, tools_of
from carrel.tools.toolbox import QUICK_SECONDS
from carrel.values import Usage
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import ExtractLimits

if TYPE_CHECKING:
    from carrel.workspace.archive.extract import Extracted

IDLE_LOOK_SECONDS = 1.0
_THREADS = 64
_WAITING_THREADS = 1024
_SLOTS = 4
"""Threads that execute code at the same time, half of them for one tenant; each slows the event loop down."""
RECOUNT_OPERATION = OPERATIONS["recount"]

T = TypeVar("T")


def _as_it_is(value: Any) -> Any:  # Any: what an operation gives
    return value


Choice = TypeVar("Choice", Format, Profile)


class Service:
    """Sessions for many callers, each with its own, in one event loop.

    >>> async with Service(manager, settings) as service:
    ...     await service.call(caller, "s1", "stat", {"path": "a.txt"})
    """

    def __init__(
        self,
        manager: WorkspaceManager,
        settings: Settings,
        *,
        logger: SandboxLogger | None = None,
        engine: FindEngine | None = None,
        shell_workers: ShellWorkers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Serve the sessions of *manager*, which this closes in the end, and those of the tenants beneath.

        With *shell_workers*, command lines run in those processes, which this closes too; else in this one.
        """
        self.settings = settings
        self.logger = SandboxLogger.of(logger)
        self.tenants = Tenants(manager)
        self.shell_workers = shell_workers
        self.open_sessions = OpenSessions(settings, engine=engine, shell_workers=shell_workers, clock=clock)
        self.executions = Executions(
            most=settings.serve.executions,
            most_per_caller=settings.serve.executions_per_caller,
            resume_seconds=settings.serve.resume_seconds,
        )
        self.admission = Admission(settings.serve.max_requests)
        self._uploads = UploadLimiter(settings.serve.uploads_bytes)
        self._counts = SingleFlight()
        self.session_access = SessionAccess(self.tenants, self.open_sessions, settings.roles)
        self.sessions = SessionLifecycle(
            self.tenants, self.session_access, self.open_sessions, self.executions
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = Slots(_SLOTS)
        self.waiting_threads = BlockingThreadPool(
            min(settings.serve.max_requests, _WAITING_THREADS), self._slots
        )
        """For work that blocks on what a client sends."""

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
        walled: bool = True,
    ) -> Service:
        """As the environment and the configuration file say; *root* goes before both.

        Command lines run in worker processes, as configured, unless *walled* is off: for one local caller.

        Raises:
            ConfigError: A setting cannot be used.
            UnavailableError: The sessions directory cannot be used.
        """
        settings = load(os.environ if environ is None else environ)
        shell = settings.shell
        workers = None
        if walled and shell.workers:
            workers = ShellWorkers(shell.workers, shell.worker_bytes, logger=logger)
        manager = WorkspaceManager.from_env(environ, root=root, logger=logger)
        return cls(manager, settings, logger=logger, shell_workers=workers)

    # Its own life

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_default_executor(FairThreadPool(_THREADS, self._slots))
        self._begin(self._every(IDLE_LOOK_SECONDS, self._close_idle))
        self._begin(self._every(self.settings.serve.sweep_seconds, self._sweep))
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel what runs, close all sessions, and stop looking after them."""
        await self.executions.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.open_sessions.close()
        if self.shell_workers is not None:
            await asyncio.to_thread(self.shell_workers.close)
        self.tenants.close()
        self.waiting_threads.shutdown(wait=False)

    def _begin(self, work: Any) -> None:  # Any: a coroutine that gives nothing
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _every(self, seconds: float, look: Callable[[], Any]) -> None:  # Any: a coroutine or nothing
        """Do something again and again; a failure is logged, and does not end it."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await look()
            except Exception as error:
                self.logger.log_failure("service.upkeep_failed", error)

    async def _close_idle(self) -> None:
        self.open_sessions.close_idle()
        if self.shell_workers is not None:
            await asyncio.to_thread(self.shell_workers.end_idle)

    async def _sweep(self) -> None:
        """Remove the sessions whose time is over, of all tenants."""
        await asyncio.to_thread(lambda: [manager.sweep() for manager in self.tenants.all()])

    # What is in a session

    async def call(
        self,
        caller: Principal,
        session_id: str,
        operation: str,
        arguments: object,
        *,
        role: str | None = None,
        form: Callable[[Any], Any] = _as_it_is,
    ) -> Any:  # Any: what the method gives
        """Do one operation of the table; the answer is what *form* makes of what the method gives.

        That is done in the same thread, since it may take long if there is much.

        Raises:
            UnknownRequestError: There is no such operation.
            RequestError: The arguments do not fit it.
            CarrelError: Whatever the operation itself raises.
        """
        row = find_operation(operation)
        given = row.parse(arguments)
        async with self.session_access.open(caller, session_id, role=role) as desk:
            desk.require(row.tool)

            def work() -> Any:  # Any: as above
                return form(row.run(desk.workspace, given))

            if row.is_quick(given):
                return await self.run_inline(desk, work)
            if row.is_stepwise and desk.workspace.gate.guards_little:
                with suppress(WouldBlock):
                    return run_nonblocking(lambda: self._in_steps(desk, work))
            if row is not RECOUNT_OPERATION:
                return await self.run_in_thread(desk, work)
        return form(
            await self._counts.run((caller.tenant, session_id), lambda: self._recount(caller, session_id))
        )

    async def _recount(self, caller: Principal, session_id: str) -> Usage:
        """Count a session for all who asked for that before it begins."""
        async with self.session_access.open(caller, session_id) as desk:
            return await self.run_in_thread(desk, desk.workspace.recount)

    def _in_steps(self, desk: CallerSession, work: Callable[[], T]) -> T:
        """What *work* gives, if it takes no longer than handing it to a thread would."""
        deadline = Deadline(min(QUICK_SECONDS, self.settings.serve.timeout_seconds))
        try:
            with desk.deadlines.during(deadline):
                return work()
        except LimitError:
            if deadline.is_over:
                raise WouldBlock from None
            raise

    async def run_inline(self, desk: CallerSession, work: Callable[[], T]) -> T:
        """What *work* gives, at once; in a thread if it has to wait for others who use the session.

        Raises:
            LimitError: The time is over.
        """
        with suppress(WouldBlock):
            return run_nonblocking(work)
        return await self.run_in_thread(desk, work)

    async def run_in_thread(
        self, desk: CallerSession, work: Callable[[], T], *, threads: Executor | None = None
    ) -> T:
        """What *work* gives, done in a thread on the files of *desk*; in one of *threads*, if they are given.

        It stops at its next step when its time is over, or when nobody waits for it any more.

        Raises:
            LimitError: The time is over.
        """
        deadline = Deadline(self.settings.serve.timeout_seconds)
        with desk.deadlines.during(deadline):
            call = partial(copy_context().run, work)
            running = asyncio.get_running_loop().run_in_executor(threads, call)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                deadline.stop()
                await asyncio.wait([running])
                if not running.cancelled():
                    running.exception()  # looked at, so that nobody complains that no one did
                raise

    def extract(
        self,
        caller: Principal,
        desk: CallerSession,
        archive: Announced,
        path: str,
        *,
        format: str | None,
        overwrite: bool,
        limits: ExtractLimits | None,
    ) -> Extracted:
        """Make the members of an archive that a caller sends, from a thread that may wait.

        Raises:
            LimitError: A ceiling would be passed, or too much of what the tenant sends is held already.
            CarrelError: Whatever the extraction itself raises.
        """
        with self._uploads.counted(caller.tenant, desk.record.session_id, archive) as counted:
            return desk.workspace.extract(counted, path, format=format, overwrite=overwrite, limits=limits)

    async def changes(
        self, caller: Principal, session_id: str, since: int = 0, *, role: str | None = None
    ) -> ChangesPage:
        """What was changed or refused after the record *since*; a page of it.

        A role that is limited to some paths is given only the records of those.

        Raises:
            SessionMissingError: There is no such session of the caller.
            RotatedError: Some of that is no longer kept.
        """
        within = self._read_within(caller, session_id, role)
        return await journal_stream.changes(
            await self.tenants.open(caller.tenant), session_id, since, within=within
        )

    def follow(
        self, caller: Principal, session_id: str, since: int = 0, *, role: str | None = None
    ) -> AsyncIterator[ChangesPage]:
        """The same, and what comes after it, until the session is deleted.

        An empty page comes now and then, while nothing happens.
        """
        within = self._read_within(caller, session_id, role)
        return self._follow(caller.tenant, session_id, since, within)

    async def _follow(
        self, tenant: str | None, session_id: str, since: int, within: tuple[str, ...]
    ) -> AsyncIterator[ChangesPage]:
        manager = await self.tenants.open(tenant)
        async with aclosing(journal_stream.follow(manager, session_id, since, within=within)) as pages:
            async for page in pages:
                yield page

    def _read_within(self, caller: Principal, session_id: str, role: str | None) -> tuple[str, ...]:
        """The paths that the caller may read in the session; none if that is everything.

        Raises:
            SessionMissingError: There is no such session of the caller.
            RoleDeniedError: Its role may not read.
        """
        caller.require_session(session_id)
        acting = self.session_access.role(caller.acting_as(role))
        if acting is None:
            return ()
        acting.require("file_read")
        return self.settings.files.allowed_paths

    # Tools

    async def tool_role(
        self, caller: Principal, session_id: str | None = None, *, role: str | None = None
    ) -> Role:
        """Whose tools the caller has: its own role, else that of the session, else the default one."""
        acting = caller.acting_as(role)
        session_role = None
        if acting.role is None and session_id is not None:
            with suppress(SessionMissingError):
                session_role = (await self.sessions.status(caller, session_id)).role
        return Role.find(acting.role or session_role or DEFAULT_ROLE, self.settings.roles)

    async def tools(
        self,
        caller: Principal,
        session_id: str | None = None,
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
        format: Format | str = Format.JSON,
    ) -> list[dict[str, Any]]:
        """The tools that the caller has, as a model is told of them.

        Raises:
            RequestError: There is no such profile or format.
        """
        found = await self.tool_role(caller, session_id, role=role)
        shape = _choice(Format, format)
        where = role_run_location(found, ResolvedOptions.of(self.settings, {}))
        tools = tools_of(found, _choice(Profile, profile)).values()
        return [render_tool(tool.load(where), shape) for tool in tools]

    async def call_tool(
        self,
        caller: Principal,
        session_id: str,
        name: str,
        arguments: Any,  # Any: whatever JSON can say; the tool checks it
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
    ) -> ToolResult:
        """Call a tool in a session, which is made if it is missing; its failure is an answer.

        Raises:
            RequestError: There is no such profile.
            LimitError: Too much is running already.
        """
        # Most calls take less time than it takes to prepare for those that have to be waited for.
        result = self.call_tool_inline(caller, session_id, name, arguments, role=role, profile=profile)
        if result is not None:
            return result
        return await self.call_tool_in_thread(caller, session_id, name, arguments, role=role, profile=profile)

    def call_tool_inline(
        self,
        caller: Principal,
        session_id: str,
        name: str,
        arguments: Any,  # Any: as above
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
    ) -> ToolResult | None:
        """What `call_tool` gives, if the session is open and nobody has to wait for it; else `None`.

        Raises:
            RequestError: There is no such profile.
        """
        kind = _choice(Profile, profile)
        desk = self.session_access.get_if_open(caller.acting_as(role), session_id)
        return None if desk is None else desk.toolbox(kind).at_once(name, arguments)

    async def call_tool_in_thread(
        self,
        caller: Principal,
        session_id: str,
        name: str,
        arguments: Any,  # Any: as above
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
    ) -> ToolResult:
        """What `call_tool` gives, of a call that is not done at once.

        Raises:
            RequestError: There is no such profile.
            LimitError: Too much is running already.
        """
        kind = _choice(Profile, profile)
        tool = TOOLS[kind].get(name)
        async with AsyncExitStack() as stack:
            desk = await stack.enter_async_context(
                self.session_access.open(caller, session_id, role=role, make=True)
            )
            toolbox = desk.toolbox(kind)
            if tool is not None and tool.effect is ToolEffect.RUN and name in toolbox.names:
                stack.enter_context(self.executions.slot(caller))
            return await toolbox.in_thread(name, arguments)

    # Commands and code

    async def start(
        self,
        caller: Principal,
        session_id: str,
        work: ExecutionRequest,
        *,
        role: str | None = None,
        make: bool = False,
    ) -> Execution:
        """Begin a command line or code in a session.

        Raises:
            SessionMissingError: There is no such session of the caller, and *make* is off.
            RoleDeniedError: The role may not run this.
            LimitError: Too much is running already.
        """
        async with AsyncExitStack() as stack:
            desk = await stack.enter_async_context(
                self.session_access.open(caller, session_id, role=role, make=make)
            )
            desk.require(work.tool)
            stack.enter_context(self.executions.slot(caller))
            execution = self.executions.start(caller, desk, work)
            self._begin(self._attend(execution, stack.pop_all()))
            return execution

    async def _attend(self, execution: Execution, stack: AsyncExitStack) -> None:
        """Keep the session open until the end of *execution*."""
        async with stack:
            with suppress(CarrelError):
                await execution.ended()
        self.executions.forget(execution)

    def execution(self, caller: Principal, session_id: str, execution_id: str) -> Execution:
        """One that runs, or has just ended.

        Raises:
            UnknownRequestError: There is none of that caller in that session.
        """
        caller.require_session(session_id)
        return self.executions.find(caller, session_id, execution_id)


def _choice(kind: type[Choice], name: str) -> Choice:
    try:
        return kind(name)
    except ValueError:
        known = ", ".join(kind)
        raise RequestError(f"there is no {kind.__name__.lower()} {str(name)!r}; there are: {known}") from None
