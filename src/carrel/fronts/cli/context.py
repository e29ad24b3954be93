"""What every command receives: the sessions directory, whether to log, and how to open sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carrel.audit.logger import SandboxLogger
    from carrel.policy.rules import PathRule
    from carrel.sessions.manager import WorkspaceManager
    from carrel.values import Limits
    from carrel.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class CliContext:
    """The sessions directory, and whether to tell what happens there.

    What opens files is imported on first use, so that `--help` stays light.
    """

    given: Path | None
    """The sessions directory that the command line names."""
    verbose: bool = False

    @property
    def sessions_dir(self) -> Path:
        """The sessions directory; where the command line names none, the configured one.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        if self.given is not None:
            return self.given
        from carrel.config.load import sessions_dir

        return sessions_dir(os.environ)

    def manager(self) -> WorkspaceManager:
        """All sessions of the directory, which is made if it is missing.

        Raises:
            ConfigError: The configuration cannot be used.
            UnavailableError: The directory cannot be used.
        """
        from carrel.sessions.manager import WorkspaceManager

        return WorkspaceManager.from_env(root=self.given, logger=self.logger())

    def existing(self) -> WorkspaceManager | None:
        """All sessions of the directory; `None` if it is missing."""
        return self.manager() if os.path.lexists(self.sessions_dir) else None

    def around(self, session_id: str) -> WorkspaceManager:
        """All sessions of the directory in which the session would be; whether it is there is not looked up.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: The directory is missing; nothing is made.
        """
        from carrel.errors import SessionMissingError
        from carrel.paths.session_id import require_session_id

        require_session_id(session_id)
        manager = self.existing()
        if manager is None:
            raise SessionMissingError(f"no such session: {session_id!r}")
        return manager

    def limits(self) -> Limits:
        """The configured ceilings, for a session that has none of its own.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        from carrel.config.load import load
        from carrel.values import Limits

        session = load(os.environ).session
        return Limits(disk_bytes=session.disk_bytes, entries=session.entries)

    def open(self, session_id: str, *, allow: Iterable[PathRule] = ()) -> Workspace:
        """Open the workspace of a session that is there, with the paths in *allow* besides.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: There is no such session; nothing is made.
        """
        with self.around(session_id) as manager:
            return manager.open(session_id, allow=allow)

    def ensure(self, session_id: str) -> Workspace:
        """Open the workspace of a session, making it if it is missing.

        Raises:
            SessionIdError: The id breaks the rule.
        """
        from carrel.paths.session_id import require_session_id

        require_session_id(session_id)
        with self.manager() as manager:
            return manager.get_workspace(session_id)

    def logger(self) -> SandboxLogger:
        """Events on standard error if asked for; otherwise none: an error already says what was refused."""
        import logging

        from carrel.audit.logger import SandboxLogger

        logger = logging.Logger("carrel", logging.INFO if self.verbose else logging.CRITICAL + 1)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("carrel: %(levelname)s %(message)s"))
        logger.addHandler(handler)
        return SandboxLogger(logger)
