"""Reopen the files of a session or directory under other rules, on behalf of the operator."""

from __future__ import annotations

import os

from carrel.audit.logger import SandboxLogger
from carrel.policy.rules import SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace

OPERATOR_ACTOR = "operator"
"""Actor in the journal."""


class SessionOperatorWorkspace:
    """Reopens a session."""

    def __init__(self, manager: WorkspaceManager, session_id: str) -> None:
        self._manager = manager
        self._id = session_id

    def reopen(self, policy: SandboxPolicy) -> Workspace:
        """Open the session under *policy*.

        Raises:
            SessionMissingError: The session was deleted.
        """
        return self._manager.open(self._id, policy=policy, actor=OPERATOR_ACTOR)


class DirectoryOperatorWorkspace:
    """Reopens a host directory that is not a session."""

    def __init__(self, directory: str | os.PathLike[str], logger: SandboxLogger | None = None) -> None:
        self._directory = directory
        self._logger = logger

    def reopen(self, policy: SandboxPolicy) -> Workspace:
        """Open the directory under *policy*.

        Raises:
            UnavailableError: The directory does not exist.
        """
        return Workspace.open(self._directory, policy=policy, actor=OPERATOR_ACTOR, logger=self._logger)
