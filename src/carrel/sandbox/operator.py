"""The hand of an operator on the rules of a workspace: open the same files again, under others."""

from __future__ import annotations

import os

from carrel.audit.logger import SandboxLogger
from carrel.policy.rules import SandboxPolicy
from carrel.workspace.sessions import WorkspaceManager
from carrel.workspace.workspace import Workspace

ACTOR = "operator"
"""Who the journal names."""


class SessionOperator:
    """Opens a session."""

    def __init__(self, manager: WorkspaceManager, session_id: str) -> None:
        self._manager = manager
        self._id = session_id

    def reopen(self, policy: SandboxPolicy) -> Workspace:
        """The files of the session under *policy*.

        Raises:
            SessionMissingError: It was deleted.
        """
        return self._manager.open(self._id, policy=policy, actor=ACTOR)


class DirectoryOperator:
    """Opens a directory of the host that is no session."""

    def __init__(self, directory: str | os.PathLike[str], logger: SandboxLogger | None = None) -> None:
        self._directory = directory
        self._logger = logger

    def reopen(self, policy: SandboxPolicy) -> Workspace:
        """The files of the directory under *policy*.

        Raises:
            UnavailableError: It is not there.
        """
        return Workspace.open(self._directory, policy=policy, actor=ACTOR, logger=self._logger)
