"""`AsyncWorkspaceManager`: the sessions of one directory for asyncio.

Every call runs in a thread, because it may wait for the lock of a session, for the registry or for the
Docker engine. A cancelled call is not undone: its thread finishes, and a workspace that it opens is closed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack

from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.aio import AsyncResult, AsyncWorkspace, open_in_thread
from carrel.workspace.threads import call_threads

if TYPE_CHECKING:
    from pathlib import Path

    from carrel.audit.logger import SandboxLogger
    from carrel.config.settings import ContainerSettings, Settings
    from carrel.fs.api import Confinement
    from carrel.fs.host.durability import Durability
    from carrel.policy.rules import PathRule
    from carrel.values import Clock, Limits
    from carrel.workspace.workspace import Workspace

Params = ParamSpec("Params")
Result = TypeVar("Result")


class ManagerOptions(TypedDict, total=False):
    """Options of a manager, all with the defaults of `WorkspaceManager`."""

    limits: Limits | None
    """Limits of sessions that have none of their own."""
    ttl_seconds: float | None
    """How long a session may be idle; `None` means forever."""
    max_sessions: int | None
    """Maximum number of sessions; `None` means no limit."""
    min_free_bytes: int
    """Writes are refused while the host's disk has less than this free."""
    durability: Durability | str
    """What a change survives: the end of this `process`, or with `disk` also a power loss."""
    rules: Iterable[PathRule]
    """Other directories that every session may use."""
    containers: ContainerSettings | None
    """Address of the engine that runs the containers of sessions."""
    logger: SandboxLogger | None
    """Receives the log events."""
    confinement: Confinement | str | None
    """Require `kernel` or `walk` instead of what the host supports."""
    clock: Clock
    """Returns the time."""


def _in_thread(
    method: Callable[Concatenate[WorkspaceManager, Params], Result],
) -> Callable[Concatenate[AsyncWorkspaceManager, Params], AsyncResult[Result]]:
    """Return the operation as a coroutine function that runs in a thread that may wait long."""

    @wraps(method)
    async def call(self: AsyncWorkspaceManager, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        work = partial(copy_context().run, method, self.manager, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(call_threads(), work)

    return call


def _opening(
    method: Callable[Concatenate[WorkspaceManager, Params], Workspace],
) -> Callable[Concatenate[AsyncWorkspaceManager, Params], AsyncResult[AsyncWorkspace]]:
    """The same for an operation that opens a workspace."""

    @wraps(method)
    async def call(
        self: AsyncWorkspaceManager, /, *args: Params.args, **kwargs: Params.kwargs
    ) -> AsyncWorkspace:
        return AsyncWorkspace(await open_in_thread(partial(method, self.manager, *args, **kwargs)))

    return call


class AsyncWorkspaceManager:
    """A `WorkspaceManager` whose operations are awaited, and which opens `AsyncWorkspace`s.

    >>> async with AsyncWorkspaceManager("workspace") as manager:
    ...     async with await manager.get_workspace("a") as workspace:
    ...         await workspace.write("hello.txt", "hello")
    """

    def __init__(
        self, root: str | os.PathLike[str] | WorkspaceManager, **options: Unpack[ManagerOptions]
    ) -> None:
        """Use the directory *root*, which is created if it is missing, or wrap a manager.

        Args:
            root: Directory that holds one workspace per session, or an open manager, which `close` closes.
            options: Limits, idle time and so on, for a directory; see `ManagerOptions`.

        Raises:
            UnavailableError: It is a link, owned by another user, writable for others, or cannot be used.
        """
        if isinstance(root, WorkspaceManager):
            if options:
                raise TypeError(f"the manager is open already: {min(options)!r} cannot be set")
            self.manager = root
        else:
            self.manager = WorkspaceManager(root, **options)

    @classmethod
    async def from_env(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
    ) -> AsyncWorkspaceManager:
        """Create a manager from the environment and the configuration file; see `from_settings`.

        Raises:
            ConfigError: A setting is invalid.
            UnavailableError: The sessions directory cannot be used.
        """
        make = partial(WorkspaceManager.from_env, environ, root=root, logger=logger)
        return cls(await open_in_thread(make))

    @classmethod
    async def from_settings(
        cls,
        settings: Settings,
        *,
        root: str | os.PathLike[str] | None = None,
        logger: SandboxLogger | None = None,
    ) -> AsyncWorkspaceManager:
        """Create a manager from loaded *settings*; *root* overrides their directory.

        Containers of its sessions that killed processes left behind are removed.

        Raises:
            UnavailableError: The sessions directory cannot be used.
        """
        make = partial(WorkspaceManager.from_settings, settings, root=root, logger=logger)
        return cls(await open_in_thread(make))

    async def elsewhere(self, root: str | os.PathLike[str]) -> AsyncWorkspaceManager:
        """Create a manager of another directory with the same settings.

        Containers of its sessions that killed processes left behind are removed.

        Raises:
            UnavailableError: It is a link, owned by another user, writable for others, or cannot be used.
        """
        return AsyncWorkspaceManager(await open_in_thread(partial(self.manager.elsewhere, root)))

    @property
    def root(self) -> Path:
        """The sessions directory."""
        return self.manager.root

    @property
    def limits(self) -> Limits:
        """Limits of sessions that have none of their own."""
        return self.manager.limits

    @property
    def ttl_seconds(self) -> float | None:
        """Default idle time of new sessions; `None` means forever."""
        return self.manager.ttl_seconds

    async def __aenter__(self) -> AsyncWorkspaceManager:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    close = _in_thread(WorkspaceManager.close)
    create = _opening(WorkspaceManager.create)
    delete_workspace = _in_thread(WorkspaceManager.delete_workspace)
    extend = _in_thread(WorkspaceManager.extend)
    get_workspace = _opening(WorkspaceManager.get_workspace)
    get_workspace_size = _in_thread(WorkspaceManager.get_workspace_size)
    list_records = _in_thread(WorkspaceManager.list_records)
    list_workspaces = _in_thread(WorkspaceManager.list_workspaces)
    open = _opening(WorkspaceManager.open)
    reset_workspace = _in_thread(WorkspaceManager.reset_workspace)
    status = _in_thread(WorkspaceManager.status)
    sweep = _in_thread(WorkspaceManager.sweep)
    verify = _in_thread(WorkspaceManager.verify)
