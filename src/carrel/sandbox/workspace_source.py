"""`WorkspaceSource`: opens the workspace of a sandbox for each call: a session, directory or open one."""

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
"""Who the journal names."""


class WorkspaceSource(Protocol):
    """Opens a workspace for each call, so that a sandbox that is kept does not keep its session alive."""

    session_id: str | None

    def open(self) -> AbstractContextManager[Workspace]:
        """The workspace, to be closed after the call."""
        ...

    def key(self, workspace: Workspace) -> Hashable:
        """Tells this workspace from all others, also from an earlier one of the same name."""
        ...


class SessionSource:
    """A session."""

    def __init__(self, manager: WorkspaceManager, session_id: str) -> None:
        self.session_id: str | None = session_id
        self._manager = manager
        self._id = session_id

    def open(self) -> AbstractContextManager[Workspace]:
        """Open the session.

        Raises:
            SessionMissingError: It was deleted, or has expired.
        """
        return self._manager.open(self._id, actor=GUEST_ACTOR)

    def key(self, workspace: Workspace) -> Hashable:
        """Its directory, its id and when it was made."""
        return self._manager.root, self._id, workspace.created_ns


class DirectorySource:
    """A directory of the host that is no session."""

    session_id: str | None = None

    def __init__(self, directory: str | os.PathLike[str], logger: SandboxLogger) -> None:
        self._directory = Path(os.path.abspath(directory))
        self._logger = logger
        self.open().close()

    def open(self) -> Workspace:
        """Open the directory.

        Raises:
            UnavailableError: It is not there.
        """
        return Workspace.open(self._directory, actor=GUEST_ACTOR, logger=self._logger)

    def key(self, workspace: Workspace) -> Hashable:
        """Its path."""
        return self._directory


class OpenWorkspaceSource:
    """A workspace that somebody else opened and will close."""

    def __init__(self, workspace: Workspace) -> None:
        self.session_id = workspace.session_id
        self._workspace = workspace

    def open(self) -> AbstractContextManager[Workspace]:
        """The workspace as it is."""
        return nullcontext(self._workspace)

    def key(self, workspace: Workspace) -> Hashable:
        """The object itself, also when it is gone and another lies where it was."""
        return ref(workspace)
