"""`Toolbox`: the tools that one role has on one workspace."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Event
from types import TracebackType
from typing import Any, Self, Unpack

from carrel.config.load import load
from carrel.errors import CarrelError, ToolError
from carrel.policy.roles import Role
from carrel.policy.rules import AccessMode
from carrel.tools import changes
from carrel.tools.advice import Adviser
from carrel.tools.context import Context
from carrel.tools.deadline import Deadline, Deadlines
from carrel.tools.formats import Format, render
from carrel.tools.kind import shown
from carrel.tools.options import Chosen, ToolOptions
from carrel.tools.result import ToolResult
from carrel.tools.spec import Effect, Loaded, Profile, Tool
from carrel.tools.table import tools_of
from carrel.workspace.workspace import Workspace


class Toolbox:
    """The tools that one role has on one workspace.

    >>> Toolbox(workspace, role="developer").call("file_read", {"path": "a.txt"})

    A tool that the role does not have is neither listed nor callable: it answers like one that does not
    exist. A role without `file_write` changes nothing by a command or by code, since both work on a read-only
    view of the workspace.
    """

    def __init__(
        self,
        workspace: Workspace,
        role: str | Role = "developer",
        *,
        profile: Profile | str = Profile.AGENT,
        clock: Callable[[], float] = time.monotonic,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Offer tools on *workspace*, which stays the caller's to close.

        Args:
            workspace: The files.
            role: Who calls; one that is not configured has no tools.
            profile: Under which names the tools are offered.
            clock: Tells how long a call has taken, in seconds.
            options: What is different from the configuration; see `ToolOptions`.

        Raises:
            ConfigError: The configuration cannot be used.
            ValueError: There is no such profile, or an option makes no sense.
        """
        chosen = Chosen.of(load(os.environ), options)
        self.profile = Profile(profile)
        self.role = role if isinstance(role, Role) else Role.find(role, chosen.roles)
        self._tools = tools_of(self.role, self.profile)
        self._clock = clock
        self._timeout_seconds = chosen.timeout_ms / 1000
        self._adviser = Adviser(self._tools)
        self._deadlines = Deadlines()
        self._reading, self._writing = (
            Context(self._view(workspace, mode, chosen), self.role, chosen, self._deadlines)
            for mode in (AccessMode.READ_ONLY, AccessMode.READ_WRITE)
        )

    def _view(self, workspace: Workspace, mode: AccessMode, chosen: Chosen) -> Workspace:
        return workspace.narrowed(mode=mode, within=chosen.allowed_paths, check=self._deadlines.check)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop what runs, and end all use; the workspace stays open."""
        for context in (self._reading, self._writing):
            context.close()
        self._deadlines.stop()

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that may be called."""
        return tuple(self._tools)

    def tools(self) -> tuple[Tool, ...]:
        """What is known about them."""
        return tuple(self._tools.values())

    def schemas(self, format: Format | str = Format.JSON) -> list[dict[str, Any]]:
        """The tools as a model is told of them: as JSON Schema, or in the shape that some client takes."""
        return [render(tool.load(), Format(format)) for tool in self._tools.values()]

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; whatever goes wrong is an answer, not an exception."""
        return self._call(name, arguments, self._deadline(name))

    async def acall(self, name: str, arguments: Any = None) -> ToolResult:
        """The same as `call`, awaitable; a task that is cancelled stops the work first."""
        deadline = self._deadline(name)
        if self._is_quick(name, arguments):
            return self._call(name, arguments, deadline)
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
        from carrel.sandbox.sandbox import call_threads

        return call_threads()

    def _is_run(self, name: object) -> bool:
        tool = self._find(name)
        return tool is not None and tool.effect is Effect.RUN

    def _find(self, name: object) -> Tool | None:
        """The tool, if the role has it."""
        return self._tools.get(name) if isinstance(name, str) else None

    def _is_quick(self, name: str, arguments: Any) -> bool:
        """Whether a call takes no longer than handing it to a thread would."""
        tool = self._find(name)
        if tool is None or tool.quick:
            return True
        loaded = tool.load()
        if loaded.is_quick is None:
            return False
        try:
            return loaded.is_quick(self._reading, loaded.parameters.read(arguments))
        except Exception:
            # Whatever is wrong is told by the call itself.
            return True

    def _context(self, tool: Tool) -> Context:
        """What *tool* may reach: it changes something only if the role may write, or has just this tool."""
        if self.role.may_write or (tool.effect is Effect.WRITE and tool.name in self.role.tools):
            return self._writing
        return self._reading

    def _call(self, name: str, arguments: Any, deadline: Deadline) -> ToolResult:
        """The one place where a call is judged: by its role, by its arguments, and by its time."""
        tool = self._find(name)
        if tool is None:
            return self._adviser.failure(self._unknown(name))
        loaded = tool.load()
        try:
            args = loaded.parameters.read(arguments)
        except ToolError as error:
            return self._adviser.failure(error, tool)
        context = self._context(tool)
        with self._deadlines.during(deadline):
            if tool.effect is Effect.READ:
                return self._run(loaded, context, args)
            with context.workspace.gate.watching() as events:
                result = self._run(loaded, context, args)
            return _with_changes(result, changes.told(events, context.shown))

    def _run(self, loaded: Loaded, context: Context, args: Any) -> ToolResult:
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
        listed = f"The tools are: {', '.join(self._tools)}." if self._tools else "This role has no tools."
        return ToolError("unknown", f"There is no tool {shown(name).removeprefix('the text ')}. {listed}")


async def _ended(running: asyncio.Future[ToolResult]) -> None:
    """Wait for the end of what was told to stop, however often the task that waits is cancelled."""
    while not running.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([running])


def _with_changes(result: ToolResult, told: dict[str, Any]) -> ToolResult:
    """The same answer, with what was changed."""
    return replace(result, metadata={**result.metadata, **told}) if told else result
