"""Where the command line finds sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carrel.audit.logger import SandboxLogger
    from carrel.policy.rules import PathRule
    from carrel.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The sessions directory, and whether to tell what happens there.

    What opens files is imported on first use, so that `--help` stays light.
    """

    sessions_dir: Path
    verbose: bool = False

    def open(self, session_id: str, *, allow: Iterable[PathRule] = ()) -> Workspace:
        """Open the workspace of a session that is there, with the paths in *allow* besides.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: There is no such session; nothing is made.
        """
        from carrel.errors import SessionMissingError
        from carrel.paths.names import require_session_id
        from carrel.policy.rules import SandboxPolicy
        from carrel.workspace.sessions import Sessions

        require_session_id(session_id)
        if not os.path.lexists(self.sessions_dir):
            raise SessionMissingError(f"no such session: {session_id!r}")
        sessions = Sessions(self.sessions_dir, logger=self.logger())
        policy = SandboxPolicy.for_workspace(sessions.root / session_id, allow=allow)
        return sessions.open(session_id, policy=policy)

    def ensure(self, session_id: str) -> Workspace:
        """Open the workspace of a session, making it if it is missing.

        Raises:
            SessionIdError: The id breaks the rule.
        """
        from carrel.paths.names import require_session_id
        from carrel.workspace.sessions import Sessions

        require_session_id(session_id)
        return Sessions(self.sessions_dir, logger=self.logger()).ensure(session_id)

    def logger(self) -> SandboxLogger:
        """Events on standard error if asked for; otherwise none: an error already says what was refused."""
        import logging

        from carrel.audit.logger import SandboxLogger

        logger = logging.Logger("carrel", logging.INFO if self.verbose else logging.CRITICAL + 1)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("carrel: %(levelname)s %(message)s"))
        logger.addHandler(handler)
        return SandboxLogger(logger)
