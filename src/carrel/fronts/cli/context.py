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
    """The sessions directory and the logging of one command line.

    Modules that open files are imported on first use, which keeps `--help` fast.
    """

    sessions_dir_option: Path | None
    """The value of `--sessions-dir`."""
    verbose: bool = False

    @property
    def sessions_dir(self) -> Path:
        """The sessions directory: `--sessions-dir`, else the configured one.

        Raises:
            ConfigError: The configuration is invalid.
        """
        if self.sessions_dir_option is not None:
            return self.sessions_dir_option
        from carrel.config.load import sessions_dir

        return sessions_dir(os.environ)

    def manager(self) -> WorkspaceManager:
        """Open the sessions directory, creating it if it is missing.

        Raises:
            ConfigError: The configuration is invalid.
            UnavailableError: The directory cannot be used.
        """
        from carrel.sessions.manager import WorkspaceManager

        return WorkspaceManager.from_env(root=self.sessions_dir_option, logger=self.logger())

    def manager_if_present(self) -> WorkspaceManager | None:
        """Open the sessions directory; return `None` if it is missing."""
        return self.manager() if os.path.lexists(self.sessions_dir) else None

    def manager_of(self, session_id: str) -> WorkspaceManager:
        """Open the sessions directory for an operation on *session_id*, without looking the session up.

        Raises:
            SessionIdError: The id is invalid.
            SessionMissingError: The directory is missing; it is not created.
        """
        from carrel.errors import SessionMissingError
        from carrel.paths.session_id import require_session_id

        require_session_id(session_id)
        manager = self.manager_if_present()
        if manager is None:
            raise SessionMissingError(f"no such session: {session_id!r}")
        return manager

    def limits(self) -> Limits:
        """The configured limits, for a session without its own.

        Raises:
            ConfigError: The configuration is invalid.
        """
        from carrel.config.load import load
        from carrel.values import Limits

        session = load(os.environ).session
        return Limits(disk_bytes=session.disk_bytes, entries=session.entries)

    def open(self, session_id: str, *, allow: Iterable[PathRule] = ()) -> Workspace:
        """Open the workspace of an existing session, with the paths in *allow* added to its rules.

        Raises:
            SessionIdError: The id is invalid.
            SessionMissingError: There is no such session; it is not created.
        """
        with self.manager_of(session_id) as manager:
            return manager.open(session_id, allow=allow)

    def open_or_create(self, session_id: str) -> Workspace:
        """Open the workspace of a session, creating it if it is missing.

        Raises:
            SessionIdError: The id is invalid.
        """
        from carrel.paths.session_id import require_session_id

        require_session_id(session_id)
        with self.manager() as manager:
            return manager.get_workspace(session_id)

    def logger(self) -> SandboxLogger:
        """Log events to standard error with `--verbose`, else nowhere: errors already name refusals."""
        import logging

        from carrel.audit.logger import SandboxLogger

        logger = logging.Logger("carrel", logging.INFO if self.verbose else logging.CRITICAL + 1)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("carrel: %(levelname)s %(message)s"))
        logger.addHandler(handler)
        return SandboxLogger(logger)
