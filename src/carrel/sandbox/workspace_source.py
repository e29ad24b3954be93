"""`WorkspaceSource`: opens a session, a directory or an open workspace for each call of a sandbox."""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol
from weakref import ref

from carrel.audit.logger import SandboxLogger
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace

GUEST_ACTOR = "guest"
"""Actor in the journal."""


class WorkspaceSource(Protocol):
    """Opens a workspace for each call, so that a sandbox alone does not keep its session alive."""

    session_id: str | None

    def open(self) -> AbstractContextManager[Workspace]:
        """Open the workspace; the caller closes it after the call."""
        ...

    def key(self, workspace: Workspace) -> Hashable:
        """Return a key that is unique to this workspace, also among earlier ones of the same name."""
        ...


class SessionSource:
    """The workspace of a session."""

    def __init__(self, manager: WorkspaceManager, session_id: str) -> None:
        self.session_id: str | None = session_id
        self._manager = manager
        self._id = session_id

    def open(self) -> AbstractContextManager[Workspace]:
        """Open the session.

        Raises:
            SessionMissingError: The session was deleted, or has expired.
        """
        return self._manager.open(self._id, actor=GUEST_ACTOR)

    def key(self, workspace: Workspace) -> Hashable:
        """Return the sessions directory, the session id and its creation time."""
        return self._manager.root, self._id, workspace.created_ns


class DirectorySource:
    """A host directory that is not a session."""

    session_id: str | None = None

    def __init__(self, directory: str | os.PathLike[str], logger: SandboxLogger) -> None:
        self._directory = Path(os.path.abspath(directory))
        self._logger = logger
        self.open().close()

    def open(self) -> Workspace:
        """Open the directory.

        Raises:
            UnavailableError: The directory does not exist.
        """
        return Workspace.open(self._directory, actor=GUEST_ACTOR, logger=self._logger)

    def key(self, workspace: Workspace) -> Hashable:
        """Return the path of the directory."""
        return self._directory


class OpenWorkspaceSource:
    """A workspace that the caller opened and will close."""

    def __init__(self, workspace: Workspace) -> None:
        self.session_id = workspace.session_id
        self._workspace = workspace

    def open(self) -> AbstractContextManager[Workspace]:
        """Return the workspace, which stays open."""
        return nullcontext(self._workspace)

    def key(self, workspace: Workspace) -> Hashable:
        """Return a weak reference, which never equals one to another object at the same address."""
        return ref(workspace)
