"""Create a sandbox on a session, on a directory, or on a workspace that is open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import ContainerSettings
from carrel.errors import RuntimeDisabledError
from carrel.paths.session_id import require_session_id
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.api import RuntimeType
from carrel.sandbox.engines import FindEngine, engines, make_containers, make_engine
from carrel.sandbox.sandbox import BaseSandbox, PythonSandbox
from carrel.sandbox.workspace_source import (
    DirectorySource,
    OpenWorkspaceSource,
    SessionSource,
    WorkspaceSource,
)
from carrel.sessions.manager import WorkspaceManager
from carrel.sessions.manager_cache import manager_cache
from carrel.values import UNSET, Limits
from carrel.workspace.workspace import Workspace

if TYPE_CHECKING:
    from carrel.sandbox.container import ContainerSandbox

DEFAULT_SESSION = "default"
"""Where a sandbox works that is given no workspace."""


def create_sandbox(
    runtime: RuntimeType | str = RuntimeType.PYTHON,
    policy: ExecutionPolicy | None = None,
    workspace: Workspace | str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
    *,
    stateful: bool = False,
) -> BaseSandbox:
    """A sandbox on the files of *workspace*.

    Args:
        runtime: What runs the code.
        policy: What a call may take; the defaults of `ExecutionPolicy` if none is given. It is not changed.
        workspace: An open workspace, or a directory of the host; the session `default` if none is given.
        logger: Where events go.
        stateful: Whether variables and imports last from call to call.

    Raises:
        ValueError: There is no such runtime, or it cannot be *stateful*.
        RuntimeMissingError: No image is configured for containers.
        RuntimeDisabledError: The configuration switches guest code off.
        UnavailableError: The directory is not there.
    """
    if workspace is None:
        return get_session_sandbox(DEFAULT_SESSION, runtime, policy, None, logger, stateful=stateful)
    kind = _allowed(runtime, stateful=stateful)
    if isinstance(workspace, Workspace):
        return _sandbox(kind, OpenWorkspaceSource(workspace), policy, logger, stateful=stateful)
    place = DirectorySource(workspace, SandboxLogger.of(logger))
    return _sandbox(kind, place, policy, logger, stateful=stateful)


def create_session_sandbox(
    runtime: RuntimeType | str = RuntimeType.PYTHON,
    policy: ExecutionPolicy | None = None,
    workspace_root: str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
    *,
    session_id: str | None = None,
    ttl_seconds: float | None = None,
    limits: Limits | None = None,
    stateful: bool = False,
) -> tuple[str, BaseSandbox]:
    """Make a new session and a sandbox on its files; its id, and the sandbox.

    Args:
        runtime: What runs the code.
        policy: What a call may take; it is not changed.
        workspace_root: The sessions directory; the configured one by default.
        logger: Where events go.
        session_id: The id of the session; a new UUID by default.
        ttl_seconds: How long it may be idle; the configured time by default.
        limits: Its quotas; the configured ones by default.
        stateful: Whether variables and imports last from call to call.

    Raises:
        ValueError: The id or the runtime is invalid.
        SessionExistsError: The id is taken.
        RuntimeDisabledError: The configuration switches guest code off.
    """
    kind = _allowed(runtime, stateful=stateful)
    manager = _manager(workspace_root, logger)
    ttl = UNSET if ttl_seconds is None else ttl_seconds
    with manager.create(session_id, ttl_seconds=ttl, limits=limits) as workspace:
        made = str(workspace.session_id)
    return made, _sandbox(kind, SessionSource(manager, made), policy, logger, stateful=stateful)


def get_session_sandbox(
    session_id: str,
    runtime: RuntimeType | str = RuntimeType.PYTHON,
    policy: ExecutionPolicy | None = None,
    workspace_root: str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
    *,
    stateful: bool = False,
) -> BaseSandbox:
    """A sandbox on the files of a session, which is made if it is missing.

    The options are those of `create_session_sandbox`. Stateful sandboxes of one session share their variables
    within a process.

    Raises:
        ValueError: The id or the runtime is invalid.
        RuntimeDisabledError: The configuration switches guest code off.
    """
    session_id = require_session_id(session_id)
    kind = _allowed(runtime, stateful=stateful)
    manager = _manager(workspace_root, logger)
    manager.get_workspace(session_id).close()
    return _sandbox(kind, SessionSource(manager, session_id), policy, logger, stateful=stateful)


def workspace_sandbox(
    workspace: Workspace,
    policy: ExecutionPolicy | None = None,
    *,
    engine: FindEngine | None = None,
    stateful: bool = False,
) -> BaseSandbox:
    """A sandbox on an open workspace, with what *engine* gives, by default the engine of this process.

    Raises:
        RuntimeDisabledError: The configuration switches guest code off.
    """
    kind = _allowed(RuntimeType.PYTHON)
    return _sandbox(kind, OpenWorkspaceSource(workspace), policy, None, engine, stateful=stateful)


@contextmanager
def one_shot_sandbox(
    manager: WorkspaceManager,
    session_id: str,
    policy: ExecutionPolicy | None = None,
    logger: SandboxLogger | None = None,
) -> Iterator[BaseSandbox]:
    """A sandbox for one call, with an engine of its own that makes nothing ready for a second one.

    Raises:
        RuntimeDisabledError: The configuration switches guest code off.
    """
    _allowed(RuntimeType.PYTHON)
    manager.get_workspace(session_id).close()
    settings = replace(load(os.environ).python, workers=1, ready=0)
    with closing(make_engine(settings)) as engine:
        yield PythonSandbox(SessionSource(manager, session_id), engine=engine, policy=policy, logger=logger)


@contextmanager
def one_shot_container_sandbox(
    manager: WorkspaceManager,
    session_id: str,
    policy: ExecutionPolicy | None = None,
    logger: SandboxLogger | None = None,
) -> Iterator[ContainerSandbox]:
    """A sandbox in a container for one call; the container goes afterwards, unless others use it.

    Raises:
        RuntimeMissingError: No image is configured.
        RuntimeDisabledError: The configuration switches guest code off.
    """
    from carrel.sandbox.container import ContainerSandbox

    _allowed(RuntimeType.CONTAINER)
    manager.get_workspace(session_id).close()
    with closing(make_containers(load(os.environ).containers)) as runtime:
        yield ContainerSandbox(
            SessionSource(manager, session_id), engine=runtime, policy=policy, logger=logger
        )


def _allowed(runtime: RuntimeType | str, *, stateful: bool = False) -> RuntimeType:
    """The runtime, if there is one of that name that can be so, guest code may run, and there is an image."""
    kind = RuntimeType(runtime)
    settings = load(os.environ)
    if not settings.sandbox:
        raise RuntimeDisabledError("guest code is switched off: sandbox.enabled")
    if kind is RuntimeType.CONTAINER and stateful:
        raise ValueError("a container keeps no interpreter: stateful is not offered")
    if kind is RuntimeType.CONTAINER:
        settings.containers.require_image()
    return kind


def _manager(workspace_root: str | os.PathLike[str] | None, logger: SandboxLogger | None) -> WorkspaceManager:
    return manager_cache().get(None if workspace_root is None else Path(workspace_root), logger)


def _sandbox(
    kind: RuntimeType,
    place: WorkspaceSource,
    policy: ExecutionPolicy | None,
    logger: SandboxLogger | None,
    engine: FindEngine | None = None,
    *,
    stateful: bool,
) -> BaseSandbox:
    settings = load(os.environ)
    if kind is RuntimeType.CONTAINER:
        return _container_sandbox(place, settings.containers, policy, logger)
    found = (engine or engines().get)(settings.python)
    return PythonSandbox(place, engine=found, policy=policy, logger=logger, stateful=stateful)


def _container_sandbox(
    place: WorkspaceSource,
    settings: ContainerSettings,
    policy: ExecutionPolicy | None,
    logger: SandboxLogger | None,
) -> BaseSandbox:
    from carrel.sandbox.container import ContainerSandbox

    found = engines().container(settings)
    return ContainerSandbox(place, engine=found, policy=policy, logger=logger)
