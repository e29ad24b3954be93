"""`Service`: the operations that every front calls, each on behalf of a caller."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
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
from carrel.tools.core.run_location import role_run_location
from carrel.tools.core.spec import Profile, Tool, ToolEffect
from carrel.tools.core.table import TOOLS, tools_of
from carrel.tools.toolbox import QUICK_SECONDS
from carrel.values import ToolOutput, ToolResult, Usage
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.threads import stream_call

if TYPE_CHECKING:
    from carrel.workspace.archive.extract import Extracted

IDLE_CHECK_SECONDS = 1.0
"""Interval at which idle sessions and worker processes are closed."""
_THREADS = 64
_WAITING_THREADS = 1024
_SLOTS = 4
"""Threads that execute code at the same time, half of them for one tenant; each slows the event loop down."""
RECOUNT_OPERATION = OPERATIONS["recount"]

T = TypeVar("T")


def _unchanged(result: Any) -> Any:  # Any: the result of an operation
    return result


Choice = TypeVar("Choice", Format, Profile)


class Service:
    """Serves the sessions of many callers from one event loop.

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
        """Serve the sessions of *manager* and of the tenants beneath it; takes ownership of *manager*.

        Command lines run in the processes of *shell_workers*, also owned by the service, or else in this one.
        """
        self.settings = settings
        self.logger = manager.logger if logger is None else logger
        self.tenants = Tenants(manager)
        self.shell_workers = shell_workers
        self.open_sessions = OpenSessions(settings, engine=engine, shell_workers=shell_workers, clock=clock)
        self.executions = Executions(
            max_running=settings.serve.executions,
            max_per_caller=settings.serve.executions_per_caller,
            resume_seconds=settings.serve.resume_seconds,
        )
        self.admission = Admission(settings.serve.max_requests)
        self._uploads = UploadLimiter(settings.serve.uploads_bytes)
        self._recounts = SingleFlight()
        self.session_access = SessionAccess(self.tenants, self.open_sessions, settings.roles)
        self.sessions = SessionLifecycle(
            self.tenants, self.session_access, self.open_sessions, self.executions
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = Slots(_SLOTS)
        self.waiting_threads = BlockingThreadPool(
            min(settings.serve.max_requests, _WAITING_THREADS), self._slots
        )
        """Threads for work that blocks on what a client sends."""

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
        walled: bool = True,
    ) -> Service:
        """Create a service from the environment and the configuration file; *root* overrides both.

        Command lines run in worker processes as configured; *walled* turns that off, for one local caller.

        Raises:
            ConfigError: A setting is invalid.
            UnavailableError: The sessions directory cannot be used.
        """
        settings = load(os.environ if environ is None else environ)
        # One for all, since it counts the refusals.
        logger = SandboxLogger.of(logger)
        shell = settings.shell
        workers = None
        if walled and shell.workers:
            workers = ShellWorkers(shell.workers, shell.worker_bytes, logger=logger)
        manager = WorkspaceManager.from_env(environ, root=root, logger=logger)
        return cls(manager, settings, logger=logger, shell_workers=workers)

    # Start and stop

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_default_executor(FairThreadPool(_THREADS, self._slots))
        self._start_task(self._repeat(IDLE_CHECK_SECONDS, self._close_idle))
        self._start_task(self._repeat(self.settings.serve.sweep_seconds, self._sweep))
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel everything that runs, and close all sessions."""
        await self.executions.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.open_sessions.close()
        if self.shell_workers is not None:
            await asyncio.to_thread(self.shell_workers.close)
        self.tenants.close()
        self.waiting_threads.shutdown(wait=False)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Run *work* at an interval; log its failures and continue."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except Exception as error:
                self.logger.log_failure("service.upkeep_failed", error)

    async def _close_idle(self) -> None:
        self.open_sessions.close_idle()
        if self.shell_workers is not None:
            await asyncio.to_thread(self.shell_workers.end_idle)

    async def _sweep(self) -> None:
        """Delete the expired sessions of all tenants."""
        await asyncio.to_thread(lambda: [manager.sweep() for manager in self.tenants.all()])

    # Workspace operations

    async def call(
        self,
        caller: Principal,
        session_id: str,
        operation: str,
        arguments: object,
        *,
        role: str | None = None,
        render: Callable[[Any], Any] = _unchanged,
    ) -> Any:  # Any: the rendered result of the method
        """Run one operation of the table, and return its result as *render* turns it into an answer.

        *render* is called in the thread of the operation, since rendering a large result takes long.

        Raises:
            UnknownRequestError: There is no such operation.
            RequestError: The arguments are invalid.
            CarrelError: Any error of the operation itself.
        """
        row = find_operation(operation)
        parsed = row.parse(arguments)
        async with self.session_access.open(caller, session_id, role=role) as session:
            session.require(row.tool)

            def work() -> Any:  # Any: as above
                return render(row.run(session.workspace, parsed))

            if row.is_quick(parsed):
                return await self.run_inline(session, work)
            if row.is_stepwise and session.workspace.gate.is_small:
                with suppress(WouldBlock):
                    return run_nonblocking(lambda: self._run_briefly(session, work))
            if row is not RECOUNT_OPERATION:
                return await self.run_in_thread(session, work)
        return render(
            await self._recounts.run((caller.tenant, session_id), lambda: self._recount(caller, session_id))
        )

    async def _recount(self, caller: Principal, session_id: str) -> Usage:
        """Recount the usage of a session, for all callers that requested it before this begins."""
        async with self.session_access.open(caller, session_id) as session:
            return await self.run_in_thread(session, session.workspace.recount)

    def _run_briefly(self, session: CallerSession, work: Callable[[], T]) -> T:
        """Return the result of *work* if it takes no longer than handing it to a thread.

        Raises:
            WouldBlock: It takes longer, and was aborted.
        """
        deadline = Deadline(min(QUICK_SECONDS, self.settings.serve.timeout_seconds))
        try:
            with session.deadlines.during(deadline):
                return work()
        except LimitError:
            if deadline.is_over:
                raise WouldBlock from None
            raise

    async def run_inline(self, session: CallerSession, work: Callable[[], T]) -> T:
        """Return the result of *work*, run inline, or in a thread if it has to wait for a lock.

        Raises:
            LimitError: It took too long.
        """
        with suppress(WouldBlock):
            return run_nonblocking(work)
        return await self.run_in_thread(session, work)

    async def run_in_thread(
        self, session: CallerSession, work: Callable[[], T], *, threads: Executor | None = None
    ) -> T:
        """Return the result of *work* on *session*, run in a thread, of the pool *threads* if given.

        The work is aborted at its next step when the timeout passes or this task is cancelled.

        Raises:
            LimitError: It took too long.
        """
        deadline = Deadline(self.settings.serve.timeout_seconds)
        with session.deadlines.during(deadline):
            call = partial(copy_context().run, work)
            running = asyncio.get_running_loop().run_in_executor(threads, call)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                deadline.stop()
                await asyncio.wait([running])
                if not running.cancelled():
                    running.exception()  # retrieved, or asyncio logs it
                raise

    def extract(
        self,
        caller: Principal,
        session: CallerSession,
        archive: Announced,
        path: str,
        *,
        format: str | None,
        overwrite: bool,
        limits: ExtractLimits | None,
    ) -> Extracted:
        """Extract an archive that a caller uploads, in a thread that may block.

        Raises:
            LimitError: A limit would be exceeded, also of all uploads of the tenant.
            CarrelError: Any error of the extraction itself.
        """
        with self._uploads.counted(caller.tenant, session.record.session_id, archive) as counted:
            return session.workspace.extract(counted, path, format=format, overwrite=overwrite, limits=limits)

    async def changes(
        self, caller: Principal, session_id: str, since: int = 0, *, role: str | None = None
    ) -> ChangesPage:
        """Return a page of journal records after the sequence number *since*.

        A role that is limited to some paths gets only the records of these.

        Raises:
            SessionMissingError: The caller has no such session.
            RotatedError: Some of these records are no longer kept.
        """
        within = self._readable_paths(caller, session_id, role)
        return await journal_stream.changes(
            await self.tenants.open(caller.tenant), session_id, since, within=within
        )

    def follow(
        self, caller: Principal, session_id: str, since: int = 0, *, role: str | None = None
    ) -> AsyncIterator[ChangesPage]:
        """Yield the same records and then new ones, until the session is deleted.

        Without new records, an empty page comes now and then.
        """
        within = self._readable_paths(caller, session_id, role)
        return self._follow(caller.tenant, session_id, since, within)

    async def _follow(
        self, tenant: str | None, session_id: str, since: int, within: tuple[str, ...]
    ) -> AsyncIterator[ChangesPage]:
        manager = await self.tenants.open(tenant)
        async with aclosing(journal_stream.follow(manager, session_id, since, within=within)) as pages:
            async for page in pages:
                yield page

    def _readable_paths(self, caller: Principal, session_id: str, role: str | None) -> tuple[str, ...]:
        """Return the paths that the caller may read in the session; empty for all.

        Raises:
            SessionMissingError: The caller is bound to another session.
            RoleDeniedError: The role may not read.
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
        """Return the role whose tools apply: the caller's, else the session's, else the default one."""
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
        """Return the descriptions of the caller's tools, in the *format* of some model interface.

        Raises:
            RequestError: The profile or format does not exist.
        """
        found = await self.tool_role(caller, session_id, role=role)
        shape = _parse_choice(Format, format)
        options = ResolvedOptions.of(self.settings, {})
        facts = options.facts(role_run_location(found, options))
        tools = tools_of(found, _parse_choice(Profile, profile)).values()
        return [render_tool(tool.load(facts.run_location), shape, facts) for tool in tools]

    async def call_tool(
        self,
        caller: Principal,
        session_id: str,
        name: str,
        arguments: Any,  # Any: any JSON; the tool validates it
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
    ) -> ToolResult:
        """Call a tool in a session, created if it is missing; a failure of the tool is a result.

        Raises:
            RequestError: The profile does not exist.
            LimitError: Too many executions are running.
        """
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
        """Call a tool without waiting, or return `None` if that is not possible and nothing was done.

        That is so for commands and code, if the session is not open, and if the call would block. Most other
        calls take less time than preparing for one that has to be awaited.

        Raises:
            RequestError: The profile does not exist.
        """
        kind = _parse_choice(Profile, profile)
        if _is_run(TOOLS[kind].get(name)):
            return None
        session = self.session_access.get_if_open(caller.acting_as(role), session_id)
        return None if session is None else session.toolbox(kind).at_once(name, arguments)

    async def call_tool_in_thread(
        self,
        caller: Principal,
        session_id: str,
        name: str,
        arguments: Any,  # Any: as above
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> ToolResult:
        """Call a tool for which `call_tool_inline` returned `None`.

        *on_output* receives the output of commands and code as it arrives, in the thread of the call.

        Raises:
            RequestError: The profile does not exist.
            LimitError: Too many executions are running.
        """
        kind = _parse_choice(Profile, profile)
        async with self.session_access.open(caller, session_id, role=role, create=True) as session:
            toolbox = session.toolbox(kind)
            if not _is_run(TOOLS[kind].get(name)) or name not in toolbox.names:
                return await toolbox.in_thread(name, arguments)
            with self.executions.slot(caller):
                return await toolbox.in_thread(name, arguments, on_output)

    def stream_tool(
        self,
        caller: Principal,
        session_id: str,
        name: str,
        arguments: Any,  # Any: as above
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
    ) -> AsyncGenerator[ToolOutput | ToolResult]:
        """Call a tool, and yield the output of commands and code as it arrives, then the result.

        Closing the iterator stops the call. The errors are those of `call_tool`.
        """
        call = partial(
            self.call_tool_in_thread, caller, session_id, name, arguments, role=role, profile=profile
        )
        return stream_call(lambda on_output: call(on_output=on_output))

    # Commands and code

    async def start(
        self,
        caller: Principal,
        session_id: str,
        request: ExecutionRequest,
        *,
        role: str | None = None,
        create: bool = False,
    ) -> Execution:
        """Start a command line or code in a session.

        Raises:
            SessionMissingError: The caller has no such session, and *create* is off.
            RoleDeniedError: The role may not run this.
            LimitError: Too many executions are running.
        """
        async with AsyncExitStack() as stack:
            session = await stack.enter_async_context(
                self.session_access.open(caller, session_id, role=role, create=create)
            )
            session.require(request.tool)
            stack.enter_context(self.executions.slot(caller))
            execution = self.executions.start(caller, session, request)
            self._start_task(self._keep_open(execution, stack.pop_all()))
            return execution

    async def _keep_open(self, execution: Execution, stack: AsyncExitStack) -> None:
        """Keep the session open until the execution ends, then retire it."""
        async with stack:
            with suppress(CarrelError):
                await execution.wait()
        self.executions.retire(execution)

    def execution(self, caller: Principal, session_id: str, execution_id: str) -> Execution:
        """Return an execution that runs or has recently ended.

        Raises:
            UnknownRequestError: The caller has no such execution in the session.
        """
        caller.require_session(session_id)
        return self.executions.find(caller, session_id, execution_id)


def _is_run(tool: Tool | None) -> bool:
    return tool is not None and tool.effect is ToolEffect.RUN


def _parse_choice(kind: type[Choice], name: str) -> Choice:
    try:
        return kind(name)
    except ValueError:
        known = ", ".join(kind)
        raise RequestError(f"there is no {kind.__name__.lower()} {str(name)!r}; there are: {known}") from None
