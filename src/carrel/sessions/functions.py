"""Module-level functions for the files of a session, by its id."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from carrel.audit.logger import SandboxLogger
from carrel.config.load import sessions_dir
from carrel.errors import SessionMissingError, UnavailableError
from carrel.fs.memory.files import MemoryFiles
from carrel.paths.parsed_path import parse
from carrel.paths.session_id import require_session_id
from carrel.policy.rules import SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.sessions.manager_cache import manager_cache
from carrel.workspace.workspace import Workspace


def list_session_files(
    session_id: str,
    workspace_root: str | os.PathLike[str] | None = None,
    pattern: str | None = None,
    logger: SandboxLogger | None = None,
) -> list[str]:
    """Return the sorted relative paths of all regular files of a session; directories are not listed.

    Args:
        session_id: The session; an unknown one has no files.
        workspace_root: The sessions directory; the configured one by default.
        pattern: A glob; without a slash it matches names at any depth, with one the whole path.
        logger: Receives the event `session.file.list`.

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
    """Return the content of a file of a session.

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
    """Write *data* (text as UTF-8) to a file of a session, creating directories as needed.

    Raises:
        ValueError: The id is invalid, or the path is absolute or leads out of the workspace.
        FileExistsError: The path exists and *overwrite* is off; it is unchanged.
        PermissionError: The file is read-only.
    """
    require_session_id(session_id)
    manager = _manager(workspace_root, logger)
    with manager.get_workspace(session_id, absolute_paths=False) as workspace:
        workspace.write(relative_path, data, overwrite=overwrite)


def delete_session_path(
    session_id: str,
    relative_path: str,
    workspace_root: str | os.PathLike[str] | None = None,
    recursive: bool = False,
    logger: SandboxLogger | None = None,
) -> None:
    """Remove a file, a link (not its target) or a directory of a session.

    Raises:
        ValueError: The id is invalid, or the path is absolute, leads out or is the workspace itself.
        FileNotFoundError: There is no such path.
        OSError: It is a directory with content and *recursive* is off.
    """
    with _open(session_id, workspace_root, logger) as workspace:
        workspace.remove(relative_path, recursive=recursive)


def delete_session_workspace(
    session_id: str,
    workspace_root: str | os.PathLike[str] | None = None,
    logger: SandboxLogger | None = None,
) -> None:
    """Remove a session with all its files and records; a missing session is not an error.

    Raises:
        ValueError: The id is invalid; nothing is removed.
    """
    session_id = require_session_id(session_id)
    if _exists(_root(workspace_root)):
        _manager(workspace_root, logger).delete_workspace(session_id)


def _validate_session_path(
    session_id: str, relative_path: str, workspace_root: str | os.PathLike[str] | None = None
) -> Path:
    """Return the current host path of a file of a session, for callers that must have a `Path`.

    What is opened at that path later may be something else; carrel's own operations do not use it.

    Raises:
        ValueError: The id is invalid, or the path is absolute or leads out of the workspace.
        FileNotFoundError: There is no such session.
    """
    session_id = require_session_id(session_id)
    parse(relative_path)
    if not _exists(_root(workspace_root)):
        raise SessionMissingError(f"no such session: {session_id!r}")
    with _manager(workspace_root).open(session_id, absolute_paths=False) as workspace:
        return workspace.host_path(relative_path)


def _manager(
    workspace_root: str | os.PathLike[str] | None, logger: SandboxLogger | None = None
) -> WorkspaceManager:
    root = None if workspace_root is None else Path(workspace_root)
    return manager_cache().get(root, logger)


def _root(workspace_root: str | os.PathLike[str] | None) -> Path:
    return sessions_dir(os.environ) if workspace_root is None else Path(workspace_root)


def _exists(root: Path) -> bool:
    """Whether there is a sessions directory; one that cannot be accessed is an error, not missing."""
    try:
        os.lstat(root)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        problem = os.strerror(error.errno or errno.EIO)
    else:
        return True
    raise UnavailableError(f"sessions directory {root.name!r} cannot be used: {problem}")


def _open(
    session_id: str, workspace_root: str | os.PathLike[str] | None, logger: SandboxLogger | None
) -> Workspace:
    """Open a session for the file functions, which take relative paths; an unknown session is empty."""
    session_id = require_session_id(session_id)
    root = _root(workspace_root)
    try:
        if _exists(root):
            return _manager(workspace_root, logger).open(session_id, absolute_paths=False)
    except SessionMissingError:
        pass
    return Workspace(
        MemoryFiles(),
        policy=SandboxPolicy.for_workspace(root / session_id),
        logger=logger,
        session_id=session_id,
        absolute_paths=False,
    )
