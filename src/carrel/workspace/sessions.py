"""Sessions beneath one directory, and the functions that work on a session's files by its id.

The directory holds one workspace a session and, in `.carrel`, what is ours: unfinished files, removed trees
and journals. An id cannot begin with a dot, so no session can name it, and nothing of ours is inside a
workspace.
"""

from __future__ import annotations

import errno
import os
import time
import uuid
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from carrel.audit.journal import FileJournal
from carrel.audit.logger import SandboxLogger
from carrel.config.load import sessions_dir
from carrel.errors import SessionExistsError, SessionMissingError, UnavailableError
from carrel.fs.api import Confinement
from carrel.fs.handle import Handle
from carrel.fs.memory import MemoryFiles
from carrel.fs.owned import make_own, open_own, open_store
from carrel.fs.platform import require_platform
from carrel.fs.root import Root
from carrel.fs.scratch import Scratch
from carrel.paths.names import require_session_id
from carrel.paths.rel import parse
from carrel.policy.rules import SandboxPolicy
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

STATE = ".carrel"


def new_id() -> str:
    """A fresh session id."""
    return str(uuid.uuid4())


class Sessions:
    """A directory of workspaces."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        logger: SandboxLogger | None = None,
        confinement: Confinement | str | None = None,
    ) -> None:
        """Use the directory *root*, making it if it is missing.

        Raises:
            UnavailableError: It is a link, somebody else's, writable for others, or cannot be used.
        """
        require_platform()
        self.root = Path(os.path.abspath(root))
        self._logger = SandboxLogger.of(logger)
        self._confinement = confinement
        self._directory = open_store(self.root)

    def create(
        self,
        session_id: str | None = None,
        *,
        limits: Limits | None = None,
        policy: SandboxPolicy | None = None,
        make_id: Callable[[], str] = new_id,
    ) -> Workspace:
        """Make the workspace of a new session; never adopt a directory that is there already.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionExistsError: There is something with that name.
        """
        session_id = require_session_id(make_id() if session_id is None else session_id)
        if not self._make(session_id):
            raise SessionExistsError(f"session {session_id!r} already exists")
        return self.open(session_id, limits=limits, policy=policy)

    def ensure(self, session_id: str, *, absolute_paths: bool = True) -> Workspace:
        """Open the workspace of a session, making it if it is missing; safe to call from many at once."""
        session_id = require_session_id(session_id)
        made = self._make(session_id)
        workspace = self.open(session_id, absolute_paths=absolute_paths)
        if not made:
            self._log("session.retrieved", session_id)
        return workspace

    def open(
        self,
        session_id: str,
        *,
        limits: Limits | None = None,
        policy: SandboxPolicy | None = None,
        absolute_paths: bool = True,
    ) -> Workspace:
        """Open the workspace of a session that is there.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: There is no such session.
            UnavailableError: The name stands for a link, a file or somebody else's directory.
        """
        session_id = require_session_id(session_id)
        directory = open_own(self._directory, session_id)
        if directory is None:
            raise SessionMissingError(f"no such session: {session_id!r}")
        demanded = None if self._confinement is None else Confinement(self._confinement)
        return Workspace(
            Root(directory, scratch=self._scratch, confinement=demanded),
            policy=policy or SandboxPolicy.for_workspace(self.root / session_id),
            limits=limits,
            logger=self._logger,
            journal=FileJournal(os.dup(self._journals.fd), f"{session_id}.log"),
            session_id=session_id,
            absolute_paths=absolute_paths,
            confinement=demanded,
        )

    def _make(self, session_id: str) -> bool:
        """Make the directory of a session; `False` if something has its name."""
        try:
            os.mkdir(session_id, 0o700, dir_fd=self._directory.fd)
        except FileExistsError:
            return False
        except OSError as error:
            reason = os.strerror(error.errno or errno.EIO)
        else:
            self._log("session.created", session_id)
            self.clear_leftovers()
            return True
        raise UnavailableError(f"cannot make session {session_id!r}: {reason}")

    def _log(self, event: str, session_id: str) -> None:
        self._logger.log_event(event, session_id=session_id, workspace_path=str(self.root / session_id))

    def clear_leftovers(self) -> None:
        """Remove what processes that were killed left unfinished; what cannot be removed waits."""
        self._scratch.clear(time.time())

    @cached_property
    def _state(self) -> Handle:
        """What is ours, made only when there is a session to keep it for."""
        return make_own(self._directory, STATE)

    @cached_property
    def _scratch(self) -> Scratch:
        return Scratch.make(self._state)

    @cached_property
    def _journals(self) -> Handle:
        return make_own(self._state, "journal")


def list_session_files(
    session_id: str,
    workspace_root: str | os.PathLike[str] | None = None,
    pattern: str | None = None,
    logger: SandboxLogger | None = None,
) -> list[str]:
    """The relative paths of all regular files of a session, sorted; directories are not listed.

    Args:
        session_id: The session; an unknown one has no files.
        workspace_root: The sessions directory; the configured one by default.
        pattern: A glob; without a slash it matches names at any depth, with one the whole path.
        logger: Where the event `session.file.list` goes.

    Raises:
        ValueError: The id or the pattern is invalid.
    """
    with _open(session_id, workspace_root, logger) as workspace:
        return workspace.list_files(pattern)


def read_session_file(
    session_id: str,
    relative_path: str,
    workspace_root: str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
) -> bytes:
    """The content of a file of a session.

    Raises:
        ValueError: The id is invalid, or the path is absolute or leads out of the workspace.
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a directory.
    """
    with _open(session_id, workspace_root, logger) as workspace:
        return workspace.read(relative_path)


def write_session_file(
    session_id: str,
    relative_path: str,
    data: bytes | str,
    workspace_root: str | os.PathLike[str] | None = None,
    overwrite: bool = True,
    logger: SandboxLogger | None = None,
) -> None:
    """Store *data* (text as UTF-8) in a file of a session, making directories as needed.

    Raises:
        ValueError: The id is invalid, or the path is absolute or leads out of the workspace.
        FileExistsError: There is something and *overwrite* is off; it is unchanged.
        PermissionError: The file is read-only.
    """
    require_session_id(session_id)
    sessions = Sessions(_root(workspace_root), logger=logger)
    with sessions.ensure(session_id, absolute_paths=False) as workspace:
        workspace.write(relative_path, data, overwrite=overwrite)


def delete_session_path(
    session_id: str,
    relative_path: str,
    workspace_root: str | os.PathLike[str] | None = None,
    recursive: bool = False,
    logger: SandboxLogger | None = None,
) -> None:
    """Remove a file, a link (never its target) or a directory of a session.

    Raises:
        ValueError: The id is invalid, or the path is absolute, leads out or is the workspace itself.
        FileNotFoundError: There is no such path.
        OSError: It is a directory that is not empty and *recursive* is off.
    """
    with _open(session_id, workspace_root, logger) as workspace:
        workspace.remove(relative_path, recursive=recursive)


def _validate_session_path(
    session_id: str, relative_path: str, workspace_root: str | os.PathLike[str] | None = None
) -> Path:
    """Where a path of a session lies on the host at this moment, for callers that must have a `Path`.

    What is opened by name later may be something else; carrel's own operations do not go this way.

    Raises:
        ValueError: The id is invalid, or the path is absolute or leads out of the workspace.
        FileNotFoundError: There is no such session.
    """
    session_id = require_session_id(session_id)
    parse(relative_path)
    root = _root(workspace_root)
    if not os.path.lexists(root):
        raise SessionMissingError(f"no such session: {session_id!r}")
    with Sessions(root).open(session_id, absolute_paths=False) as workspace:
        return workspace.host_path(relative_path)


def _root(workspace_root: str | os.PathLike[str] | None) -> Path:
    return sessions_dir(os.environ) if workspace_root is None else Path(workspace_root)


def _open(
    session_id: str, workspace_root: str | os.PathLike[str] | None, logger: SandboxLogger | None
) -> Workspace:
    """Open a session for the file functions, which take relative paths; an unknown one is simply empty."""
    session_id = require_session_id(session_id)
    root = _root(workspace_root)
    try:
        if os.path.lexists(root):
            return Sessions(root, logger=logger).open(session_id, absolute_paths=False)
    except SessionMissingError:
        pass
    return Workspace(
        MemoryFiles(),
        policy=SandboxPolicy.for_workspace(root / session_id),
        logger=logger,
        session_id=session_id,
        absolute_paths=False,
    )
