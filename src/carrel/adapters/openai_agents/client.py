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

    A session lasts until the client deletes it or it was idle for too long. Its state, as
    `serialize_session_state` gives it, lets any process with the same directory of sessions go on with it.
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
        """Keep the sandboxes in *manager*, which stays the caller's to close.

        Args:
            manager: The sessions.
            policy: What guest code may take.
            instrumentation: Where events of the SDK go.
            dependencies: What snapshots and the like of the SDK need.
            options: Budget, commands and so on of the shell; see `ShellOptions`. The seconds of the budget
                are the most that a command may ask for. Pipelines are on by default.
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
        """A sandbox of its own, whose session is made when it is started.

        Raises:
            ValueError: The manifest asks for what a session of carrel does not have.
        """
        manifest = Manifest() if manifest is None else manifest
        _require_possible(manifest)
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
        """The sandbox of *state*: the same session if it is there, else a new one with its snapshot.

        Raises:
            TypeError: It is the state of another provider.
            ValueError: Its manifest asks for what a session of carrel does not have.
        """
        if not isinstance(state, CarrelSandboxSessionState):
            raise TypeError(f"not the state of a session of carrel: {type(state).__name__}")
        state.assert_path_grants_rebound()
        _require_possible(state.manifest)
        return self._sandbox(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Remove the session with all its files, also if somebody else uses it."""
        inner = session._inner
        if not isinstance(inner, CarrelSandboxSession):
            raise TypeError(f"not a session of carrel: {type(inner).__name__}")
        await inner.shutdown()
        await asyncio.to_thread(self._manager.delete_workspace, inner.state.name)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, CarrelSandboxSessionState)

    def _sandbox(self, state: CarrelSandboxSessionState) -> SandboxSession:
        inner = CarrelSandboxSession(state, self._open, policy=self._policy, **self._options)
        return self._wrap_session(inner, instrumentation=self._instrumentation)

    def _open(self, state: CarrelSandboxSessionState) -> tuple[Workspace, bool]:
        """The workspace of *state*, and whether it was there already."""
        try:
            return self._manager.open(state.name), True
        except SessionMissingError:
            pass
        try:
            return self._made(state), False
        except SessionExistsError:
            # One that has expired is in the way; if it is another's that was made just now, it stays.
            self._manager.sweep()
            return self._made(state), False

    def _made(self, state: CarrelSandboxSessionState) -> Workspace:
        options = state.options
        chosen = {"disk_bytes": options.disk_bytes, "entries": options.entries}
        limits = replace(
            self._manager.limits, **{name: most for name, most in chosen.items() if most is not None}
        )
        ttl_seconds = UNSET if options.ttl_seconds is None else options.ttl_seconds
        return self._manager.create(state.name, limits=limits, ttl_seconds=ttl_seconds)


def _require_possible(manifest: Manifest) -> None:
    """Refuse a manifest that a session of carrel cannot fulfil, rather than leave out a part of it."""
    if manifest.root != MOUNT:
        raise ValueError(f"the root of a session of carrel is {MOUNT!r}, not {manifest.root!r}")
    if manifest.users or manifest.groups:
        raise ValueError("a session of carrel has no users and groups")
    if manifest.extra_path_grants:
        raise ValueError("other paths are opened by the rules of the manager, not by grants of a manifest")
    if manifest.mount_targets():
        raise ValueError("a session of carrel mounts nothing")
