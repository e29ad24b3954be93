"""`Toolbox`: the tools that one role has on one workspace."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

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
from carrel.tools.core.result import ToolResult
from carrel.tools.core.run_location import workspace_run_location
from carrel.tools.core.schema import describe_value
from carrel.tools.core.spec import LoadedTool, Profile, Purpose, Tool, ToolEffect
from carrel.tools.core.table import TOOLS, tools_of
from carrel.tools.results import changes
from carrel.workspace.gate import SMALL_ENTRIES
from carrel.workspace.workspace import Workspace

if TYPE_CHECKING:
    from carrel.config.settings import Settings
    from carrel.tools.remote import RemoteTools

QUICK_SECONDS = 0.001
"""So long an awaited call may keep others waiting; to hand it to a thread takes a good part of that."""
SEARCHED_ENTRIES = 100
"""So many can be searched in that time as a rule; with more, to try it would only take time."""
_STEPWISE = (Purpose.LIST, Purpose.SEARCH)


class Toolbox:
    """The tools that one role has on one workspace.

    >>> Toolbox(workspace, role="developer").call("file_read", {"path": "a.txt"})

    A tool that the role does not have is neither listed nor callable: it answers like one that does not
    exist. A role without `file_write` changes nothing by a command or by code, since both work on a read-only
    view of the workspace. Where the operator lets tools work in containers (`containers.tools`), the commands
    and the code of a role that may write and run code do; all others run here.

    Where a service is named, by *address* or in the configuration (`sandbox.address`), the calls go to the
    session of the same id there, and its configuration holds. One that cannot be reached is an error of the
    code `service.unreachable`; nothing is done here instead.
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
        """Offer tools on *workspace*, which stays the caller's to close.

        Args:
            workspace: The files; of those that a service keeps, `None` or what tells the id of the session.
            role: Who calls; one that is not configured has no tools.
            profile: Under which names the tools are offered.
            clock: Tells how long a call has taken, in seconds.
            address: The service that runs the calls, as `host:port`; the configured one by default.
            key: Tells the service who calls; the configured one by default.
            ca: A PEM file with the authorities that may vouch for it; the configured one by default.
            session_id: The session of the service; that of the workspace by default.
            here: Run the calls here, whatever is configured.
            options: What is different from the configuration; see `ToolOptions`.

        Raises:
            ConfigError: The configuration cannot be used.
            ValueError: There is no such profile, an option makes no sense or is not one that a service can be
                told, or it is not said which files are meant.
        """
        settings = load(os.environ)
        chosen = ResolvedOptions.of(settings, options)
        self.profile = Profile(profile)
        self.role = role if isinstance(role, Role) else Role.find(role, chosen.roles)
        self._afar: RemoteTools | None = None
        if not here and (address or settings.sandbox_address):
            self._afar = self._remote(workspace, settings, address, key, ca, session_id, options)
            return
        if workspace is None:
            raise ValueError("a workspace is needed, or the address of a service that has it")
        self._tools = tools_of(self.role, self.profile)
        self._clock = clock
        self._timeout_seconds = chosen.timeout_ms / 1000
        self._adviser = Adviser(self._tools)
        self._deadlines = Deadlines()
        self._reading, self._writing = (
            ToolContext(self._view(workspace, mode, chosen), self.role, chosen, self._deadlines)
            for mode in (AccessMode.READ_ONLY, AccessMode.READ_WRITE)
        )
        self._where = self._writing.where = workspace_run_location(self._writing.workspace, self.role, chosen)

    def _remote(
        self,
        workspace: Workspace | None,
        settings: Settings,
        address: str | None,
        key: str | None,
        ca: str | os.PathLike[str] | None,
        session_id: str | None,
        options: ToolOptions,
    ) -> RemoteTools:
        # These only say how the calls run here; all else would be lost.
        if lost := options.keys() - {"engine", "runner"}:
            raise ValueError(f"{min(lost)} cannot be chosen here: the calls go to a service")
        session_id = session_id or (None if workspace is None else workspace.session_id)
        if session_id is None:
            raise ValueError("session_id is needed: the calls go to a service, and no session is named")
        try:
            from carrel.tools.remote import RemoteTools
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"calls cannot go to a service without {error.name}: pip install 'carrel[client]'"
            ) from None
        return RemoteTools(
            address or settings.sandbox_address or "",
            session_id,
            role=self.role.name,
            profile=self.profile,
            key=key or settings.sandbox_key,
            ca=ca or settings.sandbox_ca,
        )

    def _view(self, workspace: Workspace, mode: AccessMode, chosen: ResolvedOptions) -> Workspace:
        return workspace.narrowed(mode=mode, within=chosen.allowed_paths, check=self._deadlines.check)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop what runs, and end all use; the workspace stays open."""
        if self._afar is not None:
            self._afar.close()
            return
        for context in (self._reading, self._writing):
            context.close()
        self._deadlines.stop()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that may be called.

        Raises:
            UnreachableError: A service has them, and does not answer.
        """
        return tuple(self._tools) if self._afar is None else self._afar.names

    def tools(self) -> tuple[Tool, ...]:
        """What is known about them."""
        if self._afar is not None:
            known = TOOLS[self.profile]
            return tuple(known[name] for name in self._afar.names if name in known)
        return tuple(self._tools.values())

    def schemas(self, format: Format | str = Format.JSON) -> list[dict[str, Any]]:
        """The tools as a model is told of them: as JSON Schema, or in the shape that some client takes."""
        if self._afar is not None:
            return self._afar.schemas(format)
        return [render_tool(tool.load(self._where), Format(format)) for tool in self._tools.values()]

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; whatever goes wrong is an answer, not an exception."""
        if self._afar is not None:
            return self._afar.call(name, arguments)
        return self._call(name, arguments, self._deadline(name))

    async def acall(self, name: str, arguments: Any = None) -> ToolResult:
        """The same as `call`, awaitable; a task that is cancelled stops the work first."""
        if self._afar is not None:
            return await self._afar.acall(name, arguments)
        result = self.at_once(name, arguments)
        return await self.in_thread(name, arguments) if result is None else result

    def at_once(self, name: str, arguments: Any = None) -> ToolResult | None:
        """The same, if it takes no longer than handing it to a thread would; else `None`.

        What is not done at once has changed nothing. Commands and code never are, nor what a service does or
        what has to wait for others who use the session.
        """
        if self._afar is not None:
            return None
        try:
            loaded, args = self._asked(name, arguments)
        except ToolError as error:
            return self._adviser.failure(error, self._find(name))
        with suppress(WouldBlock):
            return run_nonblocking(lambda: self._done(loaded, args))
        return None

    def _done(self, loaded: LoadedTool, args: Any) -> ToolResult | None:
        if self._is_quick(loaded, args):
            return self._called(loaded, args, self._deadline(loaded.tool.name))
        return self._tried(loaded, args)

    async def in_thread(self, name: str, arguments: Any = None) -> ToolResult:
        """The same as `acall` for a call that is not done at once."""
        if self._afar is not None:
            return await self._afar.acall(name, arguments)
        deadline = self._deadline(name)
        begun = Event()
        # In the context of the caller, who may watch what is changed.
        call = partial(copy_context().run, self._begin, begun, name, arguments, deadline)
        running = asyncio.get_running_loop().run_in_executor(self._threads(name), call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            deadline.stop()
            # Whoever waits for a thread finds out then that there is nothing to do any more.
            if begun.is_set():
                await _ended(running)
            raise

    def _begin(self, begun: Event, name: str, arguments: Any, deadline: Deadline) -> ToolResult:
        """Call a tool, unless nobody wants the answer any more."""
        begun.set()
        if deadline.is_stopped:
            return self._adviser.failure(deadline.error())
        return self._call(name, arguments, deadline)

    def _deadline(self, name: object) -> Deadline:
        """The time that files are given; commands and code have limits of their own."""
        return Deadline(None if self._is_run(name) else self._timeout_seconds, self._clock)

    def _threads(self, name: object) -> Executor | None:
        """Where an awaited call waits: commands and code hold up nothing else, however long they take."""
        if not self._is_run(name):
            return None
        from carrel.workspace.threads import call_threads

        return call_threads()

    def _is_run(self, name: object) -> bool:
        tool = self._find(name)
        return tool is not None and tool.effect is ToolEffect.RUN

    def _find(self, name: object) -> Tool | None:
        """The tool, if the role has it."""
        return self._tools.get(name) if isinstance(name, str) else None

    def _is_quick(self, loaded: LoadedTool, args: Any) -> bool:
        """Whether a call takes no longer than handing it to a thread would."""
        if loaded.tool.quick or loaded.is_quick is None:
            return loaded.tool.quick
        try:
            return loaded.is_quick(self._reading, args)
        except Exception:
            # Whatever is wrong is told by the call itself.
            return True

    def _tried(self, loaded: LoadedTool, args: Any) -> ToolResult | None:
        """The answer of a call that looks through files, if it takes no longer than handing it to a thread.

        Such a call goes in small steps and changes nothing, so that it can be given up and begun anew.
        """
        tool = loaded.tool
        if tool.effect is not ToolEffect.READ or tool.purpose not in _STEPWISE:
            return None
        most = SEARCHED_ENTRIES if tool.purpose is Purpose.SEARCH else SMALL_ENTRIES
        if not loaded.is_stepwise and not self._reading.workspace.gate.guards_at_most(most):
            return None
        deadline = Deadline(QUICK_SECONDS, self._clock)
        result = self._called(loaded, args, deadline)
        return None if deadline.is_over else result

    def _context(self, tool: Tool) -> ToolContext:
        """What *tool* may reach: it changes something only if the role may write, or has just this tool."""
        if self.role.may_write or (tool.effect is ToolEffect.WRITE and tool.name in self.role.tools):
            return self._writing
        return self._reading

    def _call(self, name: str, arguments: Any, deadline: Deadline) -> ToolResult:
        try:
            loaded, args = self._asked(name, arguments)
        except ToolError as error:
            return self._adviser.failure(error, self._find(name))
        return self._called(loaded, args, deadline)

    def _asked(self, name: str, arguments: Any) -> tuple[LoadedTool, Any]:
        """The tool and what it is asked: the one place where a call is judged by its role and arguments.

        Raises:
            ToolError: The role has no such tool, or the arguments do not fit it.
        """
        tool = self._find(name)
        if tool is None:
            if any(name == each for each in TOOLS[self.profile]):
                self._deny(name, arguments)
            raise self._unknown(name)
        loaded = tool.load(self._where)
        return loaded, loaded.parameters.read(arguments)

    def _deny(self, name: str, arguments: Any) -> None:
        """Record that the role has no tool *name*, with the path that it was asked about."""
        path = arguments.get("path") if isinstance(arguments, Mapping) else None
        error = RoleDeniedError(f"no {name!r}", path=path if isinstance(path, str) else None)
        self._reading.workspace.gate.refused(name, error)

    def _called(self, loaded: LoadedTool, args: Any, deadline: Deadline) -> ToolResult:
        """The answer, or that its time was over."""
        context = self._context(loaded.tool)
        with self._deadlines.during(deadline):
            if loaded.tool.effect is ToolEffect.READ:
                return self._run(loaded, context, args)
            with context.workspace.gate.watching() as events:
                result = self._run(loaded, context, args)
            return _with_changes(result, changes.changes_metadata(events, context.shown))

    def _run(self, loaded: LoadedTool, context: ToolContext, args: Any) -> ToolResult:
        try:
            context.require_open()
            return loaded.run(context, args)
        except CarrelError as error:
            return self._adviser.failure(error, loaded.tool)
        except Exception as error:
            # A mistake of ours, which no agent can do anything about; what it was is for the log.
            context.workspace.gate.log_failure(loaded.tool.name, error)
            return self._adviser.failure(
                ToolError("failed", f"The tool {loaded.tool.name} failed unexpectedly")
            )

    def _unknown(self, name: object) -> ToolError:
        listed = f"The tools are: {', '.join(self._tools)}."
        if not self._tools:
            listed = f"The role {self.role.name!r} has no tools."
        return ToolError(
            "unknown", f"There is no tool {describe_value(name).removeprefix('the text ')}. {listed}"
        )


async def _ended(running: asyncio.Future[ToolResult]) -> None:
    """Wait for the end of what was told to stop, however often the task that waits is cancelled."""
    while not running.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([running])


def _with_changes(result: ToolResult, told: dict[str, Any]) -> ToolResult:
    """The same answer, with what was changed."""
    return replace(result, metadata={**result.metadata, **told}) if told else result
