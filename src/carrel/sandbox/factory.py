"""Create a sandbox on a session, a directory or an open workspace."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import Settings
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
"""The session of a sandbox that is given no workspace."""


def create_sandbox(
    runtime: RuntimeType | str = RuntimeType.PYTHON,
    policy: ExecutionPolicy | None = None,
    workspace: Workspace | str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
    *,
    session_id: str | None = None,
    workspace_root: str | os.PathLike[str] | None = None,
    stateful: bool = False,
) -> BaseSandbox:
    """Create a sandbox on the files of *workspace* or of a session, which is created if it does not exist.

    Args:
        runtime: The runtime that executes the code.
        policy: The limits of a call; the defaults of `ExecutionPolicy` if not given. It is not changed.
        workspace: An open workspace or a host directory, instead of a session.
        logger: Receives the events.
        session_id: The id of the session; `default` if not given.
        workspace_root: The sessions directory; the configured one by default.
        stateful: Whether variables and imports persist between calls.

    Raises:
        ValueError: The id or the runtime is invalid, the runtime does not support *stateful*, or *workspace*
            is combined with a session.
        RuntimeMissingError: No image is configured for containers.
        RuntimeDisabledError: The configuration disables guest code.
        UnavailableError: The directory does not exist.
    """
    if workspace is None:
        found = DEFAULT_SESSION if session_id is None else session_id
        return get_session_sandbox(found, runtime, policy, workspace_root, logger, stateful=stateful)
    if session_id is not None or workspace_root is not None:
        raise ValueError("workspace cannot be combined with session_id or workspace_root")
    kind, settings = _require_runtime(runtime, stateful=stateful)
    source: WorkspaceSource
    if isinstance(workspace, Workspace):
        source = OpenWorkspaceSource(workspace)
    else:
        source = DirectorySource(workspace, SandboxLogger.of(logger))
    return _sandbox(kind, settings, source, policy, logger, stateful=stateful)


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
    """Create a session and a sandbox on its files; return the session id and the sandbox.

    Args:
        runtime: The runtime that executes the code.
        policy: The limits of a call; it is not changed.
        workspace_root: The sessions directory; the configured one by default.
        logger: Receives the events.
        session_id: The id of the session; a new UUID by default.
        ttl_seconds: How long it may be idle; the configured time by default.
        limits: Its quotas; the configured ones by default.
        stateful: Whether variables and imports persist between calls.

    Raises:
        ValueError: The id or the runtime is invalid.
        SessionExistsError: The id is taken.
        RuntimeDisabledError: The configuration disables guest code.
    """
    kind, settings = _require_runtime(runtime, stateful=stateful)
    manager = _manager(workspace_root, logger, settings)
    ttl = UNSET if ttl_seconds is None else ttl_seconds
    with manager.create(session_id, ttl_seconds=ttl, limits=limits) as workspace:
        created_id = str(workspace.session_id)
    source = SessionSource(manager, created_id)
    return created_id, _sandbox(kind, settings, source, policy, logger, stateful=stateful)


def get_session_sandbox(
    session_id: str,
    runtime: RuntimeType | str = RuntimeType.PYTHON,
    policy: ExecutionPolicy | None = None,
    workspace_root: str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
    *,
    stateful: bool = False,
) -> BaseSandbox:
    """Create a sandbox on the files of a session, and the session if it does not exist.

    The options are those of `create_session_sandbox`. Stateful sandboxes of one session share their variables
    within a process.

    Raises:
        ValueError: The id or the runtime is invalid.
        RuntimeDisabledError: The configuration disables guest code.
    """
    session_id = require_session_id(session_id)
    kind, settings = _require_runtime(runtime, stateful=stateful)
    manager = _manager(workspace_root, logger, settings)
    manager.get_workspace(session_id).close()
    source = SessionSource(manager, session_id)
    return _sandbox(kind, settings, source, policy, logger, stateful=stateful)


def workspace_sandbox(
    workspace: Workspace,
    policy: ExecutionPolicy | None = None,
    *,
    engine: FindEngine | None = None,
    stateful: bool = False,
) -> BaseSandbox:
    """Create a sandbox on an open workspace, with the runtime of *engine*, by default that of this process.

    Raises:
        RuntimeDisabledError: The configuration disables guest code.
    """
    kind, settings = _require_runtime(RuntimeType.PYTHON)
    return _sandbox(kind, settings, OpenWorkspaceSource(workspace), policy, None, engine, stateful=stateful)


@contextmanager
def one_shot_sandbox(
    manager: WorkspaceManager,
    session_id: str,
    policy: ExecutionPolicy | None = None,
    logger: SandboxLogger | None = None,
) -> Iterator[BaseSandbox]:
    """Create a sandbox for one call, with its own runtime that keeps no interpreter ready.

    Raises:
        RuntimeDisabledError: The configuration disables guest code.
    """
    _, settings = _require_runtime(RuntimeType.PYTHON)
    manager.get_workspace(session_id).close()
    with closing(make_engine(replace(settings.python, workers=1, ready=0))) as engine:
        yield PythonSandbox(SessionSource(manager, session_id), engine=engine, policy=policy, logger=logger)


@contextmanager
def one_shot_container_sandbox(
    manager: WorkspaceManager,
    session_id: str,
    policy: ExecutionPolicy | None = None,
    logger: SandboxLogger | None = None,
) -> Iterator[ContainerSandbox]:
    """Create a container sandbox for one call; remove the container afterwards unless others use it.

    Raises:
        RuntimeMissingError: No image is configured.
        RuntimeDisabledError: The configuration disables guest code.
    """
    from carrel.sandbox.container import ContainerSandbox

    _, settings = _require_runtime(RuntimeType.CONTAINER)
    manager.get_workspace(session_id).close()
    with closing(make_containers(settings.containers)) as runtime:
        yield ContainerSandbox(
            SessionSource(manager, session_id), engine=runtime, policy=policy, logger=logger
        )


def _require_runtime(runtime: RuntimeType | str, *, stateful: bool = False) -> tuple[RuntimeType, Settings]:
    """Return the runtime and the loaded settings, if the settings allow the runtime."""
    kind = RuntimeType(runtime)
    settings = load(os.environ)
    if not settings.sandbox:
        raise RuntimeDisabledError("guest code is switched off: sandbox.enabled")
    if kind is RuntimeType.CONTAINER and stateful:
        raise ValueError("stateful is not supported in a container")
    if kind is RuntimeType.CONTAINER:
        settings.containers.require_image()
    return kind, settings


def _manager(
    workspace_root: str | os.PathLike[str] | None, logger: SandboxLogger | None, settings: Settings
) -> WorkspaceManager:
    return manager_cache().get(None if workspace_root is None else Path(workspace_root), logger, settings)


def _sandbox(
    kind: RuntimeType,
    settings: Settings,
    source: WorkspaceSource,
    policy: ExecutionPolicy | None,
    logger: SandboxLogger | None,
    engine: FindEngine | None = None,
    *,
    stateful: bool,
) -> BaseSandbox:
    if kind is RuntimeType.CONTAINER:
        from carrel.sandbox.container import ContainerSandbox

        containers = engines().container(settings.containers)
        return ContainerSandbox(source, engine=containers, policy=policy, logger=logger)
    python = (engine or engines().get)(settings.python)
    return PythonSandbox(source, engine=python, policy=policy, logger=logger, stateful=stateful)
