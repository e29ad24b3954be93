"""`Toolbox`: the tools that one role has on one workspace."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

from carrel.config.load import load
from carrel.errors import CarrelError, ConfigError, RoleDeniedError, ToolError
from carrel.fs.nonblocking import WouldBlock, run_nonblocking
from carrel.policy.roles import Role
from carrel.policy.rules import AccessMode
from carrel.tools.core.advice import Adviser
from carrel.tools.core.context import ToolContext
from carrel.tools.core.deadline import Deadline, Deadlines
from carrel.tools.core.formats import Format, render_tool
from carrel.tools.core.options import ResolvedOptions, ToolOptions
from carrel.tools.core.run_location import workspace_run_location
from carrel.tools.core.schema import describe_value
from carrel.tools.core.spec import LoadedTool, Profile, Purpose, Tool, ToolEffect
from carrel.tools.core.table import TOOLS, tools_of
from carrel.tools.results import changes
from carrel.values import ToolOutput, ToolResult
from carrel.workspace.gate import SMALL_ENTRIES
from carrel.workspace.threads import OnOutput, call_threads, pass_output, stream_call, wait_for_end
from carrel.workspace.workspace import Workspace

if TYPE_CHECKING:
    from carrel.config.settings import Settings
    from carrel.tools.remote import RemoteTools

QUICK_SECONDS = 0.001
"""How long a call may run on the event loop, in seconds; handing it to a thread takes about as long."""
SEARCHED_ENTRIES = 100
"""Larger workspaces are searched in a thread at once: within `QUICK_SECONDS` a search rarely gets further."""
_STEPWISE = (Purpose.LIST, Purpose.SEARCH)


class _PreparedCall(NamedTuple):
    """A call that the role may make, with valid arguments."""

    loaded: LoadedTool
    args: Any
    context: ToolContext


class Toolbox:
    """The tools that one role has on one workspace.

    >>> Toolbox(workspace, role="developer").call("file_read", {"path": "a.txt"})

    A tool that the role does not have is neither listed nor callable: calling it gives the same error as
    calling a tool that does not exist. For a role without `file_write`, commands and code get a read-only
    view of the workspace. If the operator lets tools use containers (`containers.tools`), roles that may
    write and run code run commands and code in the session's container; all other roles run them here.

    If a service is given, by *address* or in the configuration (`sandbox.address`), calls go to the session
    with the same id there and follow the configuration of the service. If the service cannot be reached,
    the call fails with `service.unreachable`; it never runs here instead.
    """

    def __init__(
        self,
        workspace: Workspace | None,
        role: str | Role = "developer",
        *,
        profile: Profile | str = Profile.AGENT,
        clock: Callable[[], float] = time.monotonic,
        address: str | None = None,
        key: str | None = None,
        ca: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        here: bool = False,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Offer tools on *workspace*; the caller closes the workspace.

        Args:
            workspace: The files. With a service, `None` or a workspace whose session id is used there.
            role: Role of the caller; a role that is not configured has no tools.
            profile: Set of tool names to offer.
            clock: Monotonic clock that times calls, in seconds.
            address: Service that runs the calls, as `host:port`; the configured one by default.
            key: API key for the service; the configured one by default.
            ca: PEM file with the certificate authorities to trust for the service; the configured one by
                default.
            session_id: Session at the service; that of the workspace by default.
            here: Run the calls in this process, even if a service is configured.
            options: Overrides of the configuration; see `ToolOptions`.

        Raises:
            ConfigError: The configuration is not valid.
            ValueError: The profile does not exist, an option is not valid or cannot be sent to a service,
                or neither a workspace nor a session is given.
        """
        settings = load(os.environ)
        resolved = ResolvedOptions.of(settings, options)
        self.profile = Profile(profile)
        self.role = role if isinstance(role, Role) else Role.find(role, resolved.roles)
        self._remote: RemoteTools | None = None
        if not here and (address or settings.sandbox_address):
            self._remote = self._connect(workspace, settings, address, key, ca, session_id, options)
            return
        if workspace is None:
            raise ValueError("a workspace is needed, or the address of a service that has it")
        self._tools = tools_of(self.role, self.profile)
        self._clock = clock
        self._timeout_seconds = resolved.timeout_ms / 1000
        self._adviser = Adviser(self._tools)
        self._deadlines = Deadlines()
        self._read_context, self._write_context = (
            ToolContext(self._view(workspace, mode, resolved), self.role, resolved, self._deadlines)
            for mode in (AccessMode.READ_ONLY, AccessMode.READ_WRITE)
        )
        self._run_location = self._write_context.run_location = workspace_run_location(
            self._write_context.workspace, self.role, resolved
        )

    def _connect(
        self,
        workspace: Workspace | None,
        settings: Settings,
        address: str | None,
        key: str | None,
        ca: str | os.PathLike[str] | None,
        session_id: str | None,
        options: ToolOptions,
    ) -> RemoteTools:
        # `engine` and `runner` only say how calls run in this process; any other option would be lost.
        if lost := options.keys() - {"engine", "runner"}:
            raise ValueError(f"option {min(lost)!r} cannot be set: the calls go to a service")
        session_id = session_id or (None if workspace is None else workspace.session_id)
        if session_id is None:
            raise ValueError("session_id is required: the calls go to a service")
        try:
            from carrel.tools.remote import RemoteTools
        except ModuleNotFoundError as error:
            raise ConfigError(f"calls to a service need {error.name}: pip install 'carrel[client]'") from None
        return RemoteTools(
            address or settings.sandbox_address or "",
            session_id,
            role=self.role.name,
            profile=self.profile,
            key=key or settings.sandbox_key,
            ca=ca or settings.sandbox_ca,
        )

    def _view(self, workspace: Workspace, mode: AccessMode, resolved: ResolvedOptions) -> Workspace:
        return workspace.narrowed(mode=mode, within=resolved.allowed_paths, check=self._deadlines.check)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop running calls and refuse new ones; the workspace stays open."""
        if self._remote is not None:
            self._remote.close()
            return
        for context in (self._read_context, self._write_context):
            context.close()
        self._deadlines.stop()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tools that may be called.

        Raises:
            UnreachableError: The tools are at a service that does not answer.
        """
        return tuple(self._tools) if self._remote is None else self._remote.names

    def tools(self) -> tuple[Tool, ...]:
        """Return the rows of the tools that may be called."""
        if self._remote is not None:
            known = TOOLS[self.profile]
            return tuple(known[name] for name in self._remote.names if name in known)
        return tuple(self._tools.values())

    def schemas(self, format: Format | str = Format.JSON) -> list[dict[str, Any]]:
        """Return the tool definitions for a model, as JSON Schema or in the format of a client."""
        if self._remote is not None:
            return self._remote.schemas(format)
        facts = self._write_context.options.facts(self._run_location)
        loaded = (tool.load(self._run_location) for tool in self._tools.values())
        return [render_tool(each, Format(format), facts) for each in loaded]

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; every failure is a result, not an exception."""
        if self._remote is not None:
            return self._remote.call(name, arguments)
        call = self._prepare(name, arguments)
        return call if isinstance(call, ToolResult) else self._run(call, self._deadline(call.loaded.tool))

    async def acall(
        self, name: str, arguments: Any = None, *, on_output: OnOutput | None = None
    ) -> ToolResult:
        """Call a tool without blocking the event loop; cancelling the task stops the work first.

        *on_output* receives `stdout` or `stderr` and bytes, in the event loop, as commands and code write
        them; it may be a coroutine function. An exception that it raises stops the work and is passed on.
        """
        if on_output is not None:
            return await pass_output(self.astream(name, arguments), on_output)
        if self._remote is not None:
            return await self._remote.acall(name, arguments)
        call = self._prepare(name, arguments)
        if isinstance(call, ToolResult):
            return call
        result = self._run_inline(call)
        return await self._run_in_thread(call) if result is None else result

    def astream(self, name: str, arguments: Any = None) -> AsyncGenerator[ToolOutput | ToolResult]:
        """Call a tool, and iterate over the output of commands and code as it arrives, then the result.

        The result holds the output as well. Closing the iterator stops the work first; a `break` alone leaves
        that to the event loop, so use `contextlib.aclosing`.
        """
        return stream_call(partial(self.in_thread, name, arguments))

    def at_once(self, name: str, arguments: Any = None) -> ToolResult | None:
        """Call a tool on this thread if that takes no longer than handing it to another one; else `None`.

        `None` means that nothing was changed. Commands and code always give `None`, as do calls that go to
        a service and calls that would wait for a lock.
        """
        if self._remote is not None:
            return None
        call = self._prepare(name, arguments)
        return call if isinstance(call, ToolResult) else self._run_inline(call)

    async def in_thread(
        self, name: str, arguments: Any = None, on_output: Callable[[str, bytes], None] | None = None
    ) -> ToolResult:
        """Call a tool in a thread, without trying `at_once` first; *on_output* is called in that thread."""
        if self._remote is not None:
            return await self._remote.acall(name, arguments, on_output)
        call = self._prepare(name, arguments)
        return call if isinstance(call, ToolResult) else await self._run_in_thread(call, on_output)

    def _prepare(self, name: object, arguments: Any) -> _PreparedCall | ToolResult:
        """Check a call against the role and the schema of the tool; no call runs without this.

        The result of a call that is refused says why.
        """
        tool = self._tools.get(name) if isinstance(name, str) else None
        try:
            if tool is None:
                raise self._unknown_tool(name, arguments)
            loaded = tool.load(self._run_location)
            return _PreparedCall(loaded, loaded.parameters.parse(arguments), self._context(tool))
        except ToolError as error:
            return self._adviser.failure(error, tool)

    def _unknown_tool(self, name: object, arguments: Any) -> ToolError:
        """Return the error for a tool that the role does not have, and record the attempt if it exists."""
        if any(name == each for each in TOOLS[self.profile]):
            path = arguments.get("path") if isinstance(arguments, Mapping) else None
            denied = RoleDeniedError(f"no {name!r}", path=path if isinstance(path, str) else None)
            self._read_context.workspace.gate.record_refusal(str(name), denied)
        tools = f"The tools are: {', '.join(self._tools)}."
        if not self._tools:
            tools = f"The role {self.role.name!r} has no tools."
        return ToolError(
            "unknown", f"There is no tool {describe_value(name).removeprefix('the text ')}. {tools}"
        )

    def _context(self, tool: Tool) -> ToolContext:
        """Return what *tool* may reach: it can write only if the role may write or names this very tool."""
        if self.role.may_write or (tool.effect is ToolEffect.WRITE and tool.name in self.role.tools):
            return self._write_context
        return self._read_context

    def _deadline(self, tool: Tool, on_output: Callable[[str, bytes], None] | None = None) -> Deadline:
        """Start the time limit of a file operation; commands and code have limits of their own."""
        seconds = None if tool.effect is ToolEffect.RUN else self._timeout_seconds
        return Deadline(seconds, self._clock, on_output)

    def _run_inline(self, call: _PreparedCall) -> ToolResult | None:
        """Run a call on this thread if it takes no longer than handing it to another one; else `None`."""
        if call.loaded.tool.effect is ToolEffect.RUN:
            return None
        with suppress(WouldBlock):
            return run_nonblocking(partial(self._try_quickly, call))
        return None

    def _is_quick(self, call: _PreparedCall) -> bool:
        """Whether a call takes no longer than handing it to a thread would."""
        tool, is_quick = call.loaded.tool, call.loaded.is_quick
        if tool.quick or is_quick is None:
            return tool.quick
        try:
            return is_quick(self._read_context, call.args)
        except Exception:
            # The call itself fails the same way and reports it.
            return True

    def _try_quickly(self, call: _PreparedCall) -> ToolResult | None:
        """Run a quick call, or list or search for at most `QUICK_SECONDS`; `None` if that was not enough.

        A listing or a search checks its deadline often and changes nothing, so it can be abandoned and
        repeated.
        """
        tool = call.loaded.tool
        if self._is_quick(call):
            return self._run(call, self._deadline(tool))
        if tool.effect is not ToolEffect.READ or tool.purpose not in _STEPWISE:
            return None
        max_entries = SEARCHED_ENTRIES if tool.purpose is Purpose.SEARCH else SMALL_ENTRIES
        gate = self._read_context.workspace.gate
        if not call.loaded.is_stepwise and not gate.has_at_most(max_entries):
            return None
        deadline = Deadline(QUICK_SECONDS, self._clock)
        result = self._run(call, deadline)
        return None if deadline.is_over else result

    async def _run_in_thread(
        self, call: _PreparedCall, on_output: Callable[[str, bytes], None] | None = None
    ) -> ToolResult:
        tool = call.loaded.tool
        deadline = self._deadline(tool, on_output)
        started = Event()

        def run() -> ToolResult:
            started.set()
            if deadline.is_stopped:
                # The caller was cancelled before a thread was free.
                return self._adviser.failure(deadline.error())
            return self._run(call, deadline)

        # In the context of the caller, who may watch for changes.
        future = asyncio.get_running_loop().run_in_executor(_executor(tool), copy_context().run, run)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            deadline.stop()
            # A call that waits for a thread ends as soon as it gets one.
            if started.is_set():
                await wait_for_end(future)
            raise

    def _run(self, call: _PreparedCall, deadline: Deadline) -> ToolResult:
        """Run a call within *deadline* and add what it changed to the metadata."""
        context = call.context
        with self._deadlines.during(deadline):
            if call.loaded.tool.effect is ToolEffect.READ:
                return self._invoke(call)
            with context.workspace.gate.watching() as events:
                result = self._invoke(call)
            if changed := changes.changes_metadata(events, context.display_path):
                result = replace(result, metadata={**result.metadata, **changed})
                if call.loaded.tool.effect is ToolEffect.RUN:
                    read = context.workspace.read
                    return changes.with_images(
                        result, changed["changes"], lambda path, length: read(path, length=length)
                    )
            return result

    def _invoke(self, call: _PreparedCall) -> ToolResult:
        loaded, args, context = call
        try:
            context.require_open()
            return loaded.run(context, args)
        except CarrelError as error:
            return self._adviser.failure(error, loaded.tool)
        except Exception as error:
            # A bug: the agent cannot do anything about it, and the details belong in the log.
            context.workspace.gate.log_failure(loaded.tool.name, error)
            return self._adviser.failure(
                ToolError("failed", f"The tool {loaded.tool.name} failed unexpectedly")
            )


def _executor(tool: Tool) -> Executor | None:
    """Return the threads for a tool: commands and code have their own, so they never hold up others."""
    return call_threads() if tool.effect is ToolEffect.RUN else None
