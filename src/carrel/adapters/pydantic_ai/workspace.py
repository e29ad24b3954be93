"""`CarrelWorkspace`: a session as the workspace of a Pydantic AI run; `CarrelSessions`: one per run."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.workspaces import CommandResult, FileEntry, WorkspaceBackend, WorkspaceCommand, WorkspaceRef

from carrel.adapters.pydantic_ai.errors import command_result, translated_errors
from carrel.adapters.script import ShellScript
from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode
from carrel.sandbox.shell import Shell
from carrel.sessions.manager import WorkspaceManager
from carrel.sessions.manager_cache import manager_cache
from carrel.shell.budget import Budget, Meter
from carrel.shell.command.context import ShellResources
from carrel.shell.command.paths import Missing, resolve
from carrel.shell.runtime.execution import LineExecution
from carrel.shell.state import ShellState, is_variable_name
from carrel.values import UNSET, FileInfo, FileKind, Limits, Unset
from carrel.workspace.aio import AsyncWorkspace
from carrel.workspace.workspace import MOUNT, Workspace


def real_path(workspace: Workspace, path: str) -> str:
    """Resolve all links of *path*, which need not exist, to an absolute path; nothing outside is accessed.

    Raises:
        EscapeError: The path leads out of the workspace.
        LoopError: The path goes through too many links.
    """
    state = ShellState(workspace.mount)
    resources = ShellResources(workspace, python=None, operator=None, allowed=())
    context = LineExecution(resources, state, Meter(Budget())).silent_context(state)
    return resolve(context, path, Missing.ALL)


PROVIDER = "carrel"
"""The provider in a `WorkspaceRef` to a carrel session."""


class CarrelWorkspace:
    """A session as the workspace of a run: files through the gate, commands in carrel's shell.

    >>> agent.run_sync("Tidy up", workspace=CarrelWorkspace())

    The first operation creates a session, or opens the one given. From then on `ref` refers to it, also for
    another process with the same sessions directory. A run never deletes the session: it exists until it
    expires or is deleted by `WorkspaceManager.delete_workspace`.
    """

    def __init__(
        self,
        ref: WorkspaceRef | str | None = None,
        *,
        workspace_root: str | os.PathLike[str] | None = None,
        manager: WorkspaceManager | None = None,
        mode: AccessMode | str = AccessMode.READ_WRITE,
        limits: Limits | None = None,
        ttl_seconds: float | Unset | None = UNSET,
        env: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        policy: ExecutionPolicy | None = None,
    ) -> None:
        """Configure the workspace; nothing is opened or created yet.

        Args:
            ref: Reference or id of an existing session; by default a new one is created.
            workspace_root: The sessions directory; the configured one by default.
            manager: Manager to use instead of *workspace_root*; the caller has to close it.
            mode: `READ_ONLY` refuses every change, including changes by commands.
            limits: Limits of a new session.
            ttl_seconds: TTL of a new session.
            env: Variables for every command.
            budget: Limits of a command; without one, only the timeout of a call applies.
            policy: Limits of guest code run by commands.

        Raises:
            ValueError: The reference belongs to another provider, or a variable name is invalid.
        """
        if isinstance(ref, str):
            ref = WorkspaceRef(provider=PROVIDER, id=ref)
        if ref is not None and ref.provider != PROVIDER:
            raise ValueError(f"expected a reference to a carrel session, not one of {ref.provider!r}")
        self._ref = ref
        self._root = None if workspace_root is None else Path(workspace_root)
        self._manager = manager
        self._mode = AccessMode(mode)
        self._limits = limits
        self._ttl_seconds = ttl_seconds
        self._env = _variables(env)
        self._budget = budget or Budget(seconds=None)
        self._policy = policy
        self._lock = Lock()
        self._opened: Workspace | None = None
        self._view: AsyncWorkspace | None = None
        self._is_closed = False

    @property
    def ref(self) -> WorkspaceRef | None:
        """Reference to the session, for another process; `None` until the session is created."""
        return self._ref

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the workspace; the session is kept and can be reopened with its reference."""
        with self._lock:
            self._is_closed = True
            for each in (None if self._view is None else self._view.workspace, self._opened):
                if each is not None:
                    each.close()

    def open(self) -> Workspace:
        """Open the workspace, creating the session if necessary; blocks.

        Raises:
            WorkspaceUnavailableError: The session is gone, or the workspace was closed.
        """
        with translated_errors():
            return self._files().workspace

    async def working_dir(self) -> str:
        """The directory in which commands start and relative paths are resolved."""
        files = await self._attached()
        with translated_errors():
            await files.exists(".")
        return MOUNT

    # Files

    async def read_bytes(self, path: str) -> bytes:
        files = await self._attached()
        with translated_errors():
            return await files.read(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        files = await self._attached()
        with translated_errors():
            await files.write(path, data)

    async def stat(self, path: str) -> FileEntry:
        files = await self._attached()
        with translated_errors():
            return _entry(posixpath.join(MOUNT, path), await files.stat(path))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        files = await self._attached()
        with translated_errors():
            return await asyncio.to_thread(_entries, files.workspace, path)

    async def make_dir(self, path: str) -> None:
        files = await self._attached()
        with translated_errors():
            await files.mkdir(path, exist_ok=True)

    async def remove(self, path: str) -> None:
        files = await self._attached()
        with translated_errors():
            await files.remove(path, recursive=True)

    async def exists(self, path: str) -> bool:
        files = await self._attached()
        with translated_errors():
            return await files.exists(path)

    async def realpath(self, path: str) -> str:
        files = await self._attached()
        with translated_errors():
            return await asyncio.to_thread(real_path, files.workspace, path)

    # Commands

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command in carrel's shell at the top of the workspace; its standard input is empty.

        Raises:
            WorkspaceTimeoutError: The command exceeded *timeout* or the time of the budget.
            WorkspaceOutputLimitError: The command exceeded the output limit of the budget.
            WorkspaceUnavailableError: The session is gone, possibly since the command began.
            TypeError: *command* is a string without *shell*, or a sequence with it.
            ValueError: The timeout is not a number above 0, or the command is empty.
        """
        script = ShellScript.of(command, shell=shell)
        budget = _within(self._budget, timeout)
        variables = self._env | _variables(env)
        files = await self._attached()
        with translated_errors():
            new_shell = Shell(
                files.workspace, pipelines=True, budget=budget, env=variables, policy=self._policy
            )
            result = await script.run(new_shell)
            # Commands that access no file do not notice that the session is gone.
            await files.exists(".")
        return command_result(result, budget)

    # The session

    async def _attached(self) -> AsyncWorkspace:
        """The open files; the first call opens or creates the session in a thread."""
        if self._view is not None and not self._is_closed:
            return self._view
        with translated_errors():
            return await asyncio.to_thread(self._files)

    def _files(self) -> AsyncWorkspace:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the workspace was closed")
            if self._view is None:
                manager = self._manager or manager_cache().get(self._root, None)
                self._opened = self._open(manager)
                check = _SessionCheck(manager.root / str(self._opened.session_id))
                self._view = AsyncWorkspace(self._opened.narrowed(mode=self._mode, check=check))
            return self._view

    def _open(self, manager: WorkspaceManager) -> Workspace:
        if self._ref is not None:
            return manager.open(self._ref.id)
        workspace = manager.create(limits=self._limits, ttl_seconds=self._ttl_seconds)
        self._ref = WorkspaceRef(provider=PROVIDER, id=str(workspace.session_id))
        return workspace


class _SessionCheck:
    """Checks before every operation that the session is still the one that was opened.

    An open directory remains readable after it was deleted, and a run must not mistake it for its workspace.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._identity = _identity(directory)

    def __call__(self) -> None:
        if _identity(self._directory) != self._identity:
            raise SessionMissingError(f"no such session: {self._directory.name!r}: it was deleted")


def _identity(directory: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(directory)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _variables(env: Mapping[str, str] | None) -> dict[str, str]:
    variables = dict(env or {})
    for name in variables:
        if not is_variable_name(name):
            raise ValueError(f"{name!r} is not a valid variable name")
    return variables


def _within(budget: Budget, timeout: float | None) -> Budget:
    if timeout is None:
        return budget
    if not isfinite(timeout) or timeout <= 0:
        raise ValueError(f"timeout must be a number of seconds above 0 or None, not {timeout!r}")
    return replace(budget, seconds=timeout if budget.seconds is None else min(timeout, budget.seconds))


def _entry(path: str, info: FileInfo) -> FileEntry:
    return FileEntry(
        name=posixpath.basename(path),
        path=path,
        is_dir=info.is_directory,
        size=None if info.is_directory else info.size_bytes,
    )


def _entries(workspace: Workspace, directory: str) -> list[FileEntry]:
    """The entries of a directory, with links replaced by their targets."""
    return [
        _followed(workspace, posixpath.join(MOUNT, directory, info.name), info)
        for info in workspace.list(directory)
    ]


def _followed(workspace: Workspace, path: str, info: FileInfo) -> FileEntry:
    if info.kind is not FileKind.LINK:
        return _entry(path, info)
    try:
        return _entry(path, workspace.stat(path))
    except CarrelError:
        # The link is broken or leads out of the workspace; nothing about its target is revealed.
        return FileEntry(name=info.name, path=path, is_dir=False, size=None)


Deps = TypeVar("Deps")


@dataclass
class CarrelSessions(AbstractCapability[Deps]):
    """Gives every run a session: that of its conversation, or else a new one.

    >>> Agent(model, capabilities=[CarrelSessions()])

    The messages of a conversation hold the reference. If others can submit messages, check that the session
    in them belongs to them, or pass the workspace of a run as `workspace=` instead.
    """

    make: Callable[[WorkspaceRef | None], CarrelWorkspace] = CarrelWorkspace
    """Creates the workspace of a run, from a reference if there is one; opens nothing."""

    def get_workspace(self, ctx: RunContext[Deps], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        """The workspace of a run; `None` if the reference belongs to another provider."""
        if ref is not None and ref.provider != PROVIDER:
            return None
        return self.make(ref)
