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

from carrel.adapters.pydantic_ai.errors import command_result, translated
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
    """The absolute *path* without links; nothing of it need exist, and what is elsewhere is not looked at.

    Raises:
        EscapeError: It leads out of the workspace.
        LoopError: It goes through too many links.
    """
    state = ShellState(workspace.mount)
    resources = ShellResources(workspace, python=None, operator=None, allowed=())
    context = LineExecution(resources, state, Meter(Budget())).silent_context(state)
    return resolve(context, path, Missing.ALL)


PROVIDER = "carrel"
"""Who has the sessions that a `WorkspaceRef` of ours names."""


class CarrelWorkspace:
    """A session as the place where a run works: its files through the gate, commands in our own shell.

    >>> agent.run_sync("Tidy up", workspace=CarrelWorkspace())

    Nothing is opened before the first operation, which makes a session, or opens the one that was named.
    `ref` names it from then on, also for another process that uses the same sessions directory. A run never
    deletes it: it ends when it was idle for too long, or by `WorkspaceManager.delete_workspace`.
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
        """Name what is to be used; nothing is opened or made yet.

        Args:
            ref: A session that is there, by its reference or its id; a new one is made if none is given.
            workspace_root: The sessions directory; the configured one by default.
            manager: Has the sessions, instead of *workspace_root*; it stays the caller's to close.
            mode: `READ_ONLY` refuses every change, also by commands.
            limits: Ceilings of a session that is made.
            ttl_seconds: How long a session that is made may be idle.
            env: Variables for every command.
            budget: What a command may use; without one, only the timeout of a call limits its time.
            policy: What guest code may take that a command runs.

        Raises:
            ValueError: The reference is not one of ours, or a variable has no proper name.
        """
        if isinstance(ref, str):
            ref = WorkspaceRef(provider=PROVIDER, id=ref)
        if ref is not None and ref.provider != PROVIDER:
            raise ValueError(f"a session of carrel was expected, not one of {ref.provider!r}")
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
        """What another process reopens the session by; `None` until there is one."""
        return self._ref

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files; the session stays, for whoever has its reference."""
        with self._lock:
            self._is_closed = True
            for each in (None if self._view is None else self._view.workspace, self._opened):
                if each is not None:
                    each.close()

    def open(self) -> Workspace:
        """The files of the session, which this makes or opens if nobody has before; this waits.

        Raises:
            WorkspaceUnavailableError: The session is gone, or this was closed.
        """
        with translated():
            return self._files().workspace

    async def working_dir(self) -> str:
        """Where commands begin and relative paths are looked up."""
        files = await self._attached()
        with translated():
            await files.exists(".")
        return MOUNT

    # Files

    async def read_bytes(self, path: str) -> bytes:
        files = await self._attached()
        with translated():
            return await files.read(path)

    async def write_bytes(self, path: str, data: bytes) -> None:
        files = await self._attached()
        with translated():
            await files.write(path, data)

    async def stat(self, path: str) -> FileEntry:
        files = await self._attached()
        with translated():
            return _entry(posixpath.join(MOUNT, path), await files.stat(path))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        files = await self._attached()
        with translated():
            return await asyncio.to_thread(_entries, files.workspace, path)

    async def make_dir(self, path: str) -> None:
        files = await self._attached()
        with translated():
            await files.mkdir(path, exist_ok=True)

    async def remove(self, path: str) -> None:
        files = await self._attached()
        with translated():
            await files.remove(path, recursive=True)

    async def exists(self, path: str) -> bool:
        files = await self._attached()
        with translated():
            return await files.exists(path)

    async def realpath(self, path: str) -> str:
        files = await self._attached()
        with translated():
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
        """Run a command in our shell, in the session's directory; its input is empty.

        Raises:
            WorkspaceTimeoutError: It took longer than *timeout*, or than the budget allows.
            WorkspaceOutputLimitError: It printed more than the budget allows.
            WorkspaceUnavailableError: The session is gone, be it since the command began.
            TypeError: A text comes without *shell*, or words with it.
            ValueError: The timeout is not a number above 0, or there are no words.
        """
        script = ShellScript.of(command, shell=shell)
        budget = _within(self._budget, timeout)
        variables = self._env | _variables(env)
        files = await self._attached()
        with translated():
            own = Shell(files.workspace, pipelines=True, budget=budget, env=variables, policy=self._policy)
            result = await script.run(own)
            # Not all commands ask for a file, by which they would find out.
            await files.exists(".")
        return command_result(result, budget)

    # The session

    async def _attached(self) -> AsyncWorkspace:
        """The files; whoever comes first makes or opens the session in a thread."""
        if self._view is not None and not self._is_closed:
            return self._view
        with translated():
            return await asyncio.to_thread(self._files)

    def _files(self) -> AsyncWorkspace:
        with self._lock:
            if self._is_closed:
                raise ClosedError("the workspace was closed")
            if self._view is None:
                manager = self._manager or manager_cache().get(self._root, None)
                self._opened = self._open(manager)
                check = _StillThere(manager.root / str(self._opened.session_id))
                self._view = AsyncWorkspace(self._opened.narrowed(mode=self._mode, check=check))
            return self._view

    def _open(self, manager: WorkspaceManager) -> Workspace:
        if self._ref is not None:
            return manager.open(self._ref.id)
        made = manager.create(limits=self._limits, ttl_seconds=self._ttl_seconds)
        self._ref = WorkspaceRef(provider=PROVIDER, id=str(made.session_id))
        return made


class _StillThere:
    """Is asked before every operation whether a session is still the one that was opened.

    A directory that is open can be read on when it was deleted, which no run should take for its workspace.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._identity = _identity(place)

    def __call__(self) -> None:
        if _identity(self._place) != self._identity:
            raise SessionMissingError(f"no such session: {self._place.name!r}: it was deleted")


def _identity(place: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _variables(env: Mapping[str, str] | None) -> dict[str, str]:
    variables = dict(env or {})
    for name in variables:
        if not is_variable_name(name):
            raise ValueError(f"{name!r} cannot be the name of a variable")
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
    """What is in a directory, with links as what they lead to."""
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
        # It leads out or nowhere, and nothing is told of that.
        return FileEntry(name=info.name, path=path, is_dir=False, size=None)


Deps = TypeVar("Deps")


@dataclass
class CarrelSessions(AbstractCapability[Deps]):
    """Gives every run a session: that of the conversation if it has one, a new one if not.

    >>> Agent(model, capabilities=[CarrelSessions()])

    A reference comes with the messages of a conversation. Whoever lets others hand in messages checks that
    the session in them is theirs, or gives the workspace of a run by `workspace=` instead.
    """

    make: Callable[[WorkspaceRef | None], CarrelWorkspace] = CarrelWorkspace
    """Names the workspace of a run, by a reference if there is one; nothing is opened by it."""

    def get_workspace(self, ctx: RunContext[Deps], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        """The workspace of a run, unless the reference is somebody else's."""
        if ref is not None and ref.provider != PROVIDER:
            return None
        return self.make(ref)
