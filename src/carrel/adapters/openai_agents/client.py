"""`CarrelSandboxClient`: creates, resumes and deletes the sandboxes of agents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Unpack
from uuid import uuid4

from agents.sandbox.manifest import Manifest
from agents.sandbox.session import (
    BaseSandboxClient,
    Dependencies,
    Instrumentation,
    SandboxSession,
    SandboxSessionState,
)
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot

from carrel.adapters.openai_agents.session import CarrelSandboxSession
from carrel.adapters.openai_agents.state import CarrelSandboxClientOptions, CarrelSandboxSessionState
from carrel.errors import SessionExistsError, SessionMissingError
from carrel.policy.execution import ExecutionPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.runtime.shell import ShellOptions
from carrel.values import UNSET
from carrel.workspace.workspace import MOUNT, Workspace


class CarrelSandboxClient(BaseSandboxClient[CarrelSandboxClientOptions | None]):
    """Sandboxes of the Agents SDK as sessions of a `WorkspaceManager`.

    A session exists until the client deletes it or it expires. With its state from `serialize_session_state`,
    any process with the same sessions directory can resume it.
    """

    backend_id = "carrel"
    supports_default_options = True

    def __init__(
        self,
        manager: WorkspaceManager,
        *,
        policy: ExecutionPolicy | None = None,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
        **options: Unpack[ShellOptions],
    ) -> None:
        """Create sandboxes in *manager*, which the caller has to close.

        Args:
            manager: The sessions.
            policy: Limits of guest code.
            instrumentation: Receives events of the SDK.
            dependencies: Dependencies of snapshots and other parts of the SDK.
            options: Budget, commands and so on of the shell; see `ShellOptions`. The seconds of the budget
                are the longest time that a command may request. Pipelines are on by default.
        """
        self._manager = manager
        self._policy = policy
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies
        self._options = options

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: CarrelSandboxClientOptions | None = None,
    ) -> SandboxSession:
        """Create a sandbox; its session is created when it is started.

        Raises:
            ValueError: The manifest requires features that a carrel session does not have.
        """
        manifest = Manifest() if manifest is None else manifest
        _require_supported(manifest)
        self._validate_manifest_for_create(manifest)
        session_id = uuid4()
        return self._sandbox(
            CarrelSandboxSessionState(
                session_id=session_id,
                manifest=manifest,
                snapshot=resolve_snapshot(snapshot, str(session_id)),
                options=options or CarrelSandboxClientOptions(),
            )
        )

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """The sandbox of *state*: the same session if it exists, else a new one with its snapshot.

        Raises:
            TypeError: *state* belongs to another provider.
            ValueError: Its manifest requires features that a carrel session does not have.
        """
        if not isinstance(state, CarrelSandboxSessionState):
            raise TypeError(f"not the state of a carrel session: {type(state).__name__}")
        state.assert_path_grants_rebound()
        _require_supported(state.manifest)
        return self._sandbox(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Delete the session with all its files, even if it is in use elsewhere."""
        inner = session._inner
        if not isinstance(inner, CarrelSandboxSession):
            raise TypeError(f"not a carrel session: {type(inner).__name__}")
        await inner.shutdown()
        await asyncio.to_thread(self._manager.delete_workspace, inner.state.name)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, CarrelSandboxSessionState)

    def _sandbox(self, state: CarrelSandboxSessionState) -> SandboxSession:
        inner = CarrelSandboxSession(state, self._open, policy=self._policy, **self._options)
        return self._wrap_session(inner, instrumentation=self._instrumentation)

    def _open(self, state: CarrelSandboxSessionState) -> tuple[Workspace, bool]:
        """Open the workspace of *state*, or create it; also return whether it existed."""
        try:
            return self._manager.open(state.name), True
        except SessionMissingError:
            pass
        try:
            return self._create(state), False
        except SessionExistsError:
            # An expired session blocks the name; a live one, created just now by others, is kept.
            self._manager.sweep()
            return self._create(state), False

    def _create(self, state: CarrelSandboxSessionState) -> Workspace:
        options = state.options
        chosen = {"disk_bytes": options.disk_bytes, "entries": options.entries}
        limits = replace(
            self._manager.limits, **{name: limit for name, limit in chosen.items() if limit is not None}
        )
        ttl_seconds = UNSET if options.ttl_seconds is None else options.ttl_seconds
        return self._manager.create(state.name, limits=limits, ttl_seconds=ttl_seconds)


def _require_supported(manifest: Manifest) -> None:
    """Reject a manifest that a carrel session cannot fulfil completely.

    Raises:
        ValueError: The manifest requires a feature that a carrel session does not have.
    """
    if manifest.root != MOUNT:
        raise ValueError(f"the root of a carrel session is {MOUNT!r}, not {manifest.root!r}")
    if manifest.users or manifest.groups:
        raise ValueError("a carrel session has no users or groups")
    if manifest.extra_path_grants:
        raise ValueError(
            "a carrel session does not support path grants: allow other paths in the rules of the manager"
        )
    if manifest.mount_targets():
        raise ValueError("a carrel session does not support mounts")
