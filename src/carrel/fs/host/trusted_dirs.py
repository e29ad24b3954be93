"""Directories that only this user may write to: opened only if real, owned by us and not writable by others.

The checks are made on the open descriptor that is then used, so nothing can be swapped in between.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from carrel.errors import UnavailableError
from carrel.fs.handle import Handle
from carrel.fs.host.durability import Durability

_TRIES = 100
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_trusted_dir(path: Path, durability: Durability = Durability.PROCESS) -> Handle:
    """Open a directory of the host that only this user may write to, creating it and its parents if missing.

    Raises:
        UnavailableError: It is a link, owned by someone else, writable by others, or cannot be opened.
    """
    problem: str | None
    try:
        _create_directories(path, 0o700, durability)
        handle = Handle(os.open(path, _DIRECTORY))
    except OSError as error:
        problem = _open_problem(error, path)
    else:
        found = os.fstat(handle.fd)
        problem = _owner_problem(found) or _mode_problem(found)
        if problem is None:
            return handle
    raise UnavailableError(f"sessions directory {path.name!r} cannot be used: {problem}")


def _create_directories(path: Path, mode: int, durability: Durability) -> None:
    """Create a directory and its missing parents."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        return
    except FileNotFoundError:
        if path == path.parent:
            raise
        _create_directories(path.parent, 0o777, durability)
        with suppress(FileExistsError):
            os.mkdir(path, mode)
    durability.flush_directory(path.parent)


def make_trusted_subdir(parent: Handle, name: str, durability: Durability = Durability.PROCESS) -> Handle:
    """Open the directory *name* in a trusted directory, creating it if it is missing.

    Raises:
        UnavailableError: It is not a directory, is owned by someone else, or cannot be created.
    """
    problem: str | None
    try:
        handle = Handle(_create_and_open(parent, name, durability))
    except OSError as error:
        problem = os.strerror(error.errno or errno.EIO)
    else:
        problem = _owner_problem(os.fstat(handle.fd))
        if problem is None:
            return handle
    raise UnavailableError(f"state directory {name!r} cannot be used: {problem}")


def _create_and_open(parent: Handle, name: str, durability: Durability) -> int:
    """Create and open a directory while others may create or remove it."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent.fd)
            durability.flush(parent.fd)
        with suppress(FileNotFoundError):
            return os.open(name, _DIRECTORY, dir_fd=parent.fd)
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def open_trusted_subdir(parent: Handle, name: str) -> Handle | None:
    """Open the directory *name* in a trusted directory; `None` if it does not exist.

    Raises:
        UnavailableError: It is a link, not a directory, or owned by someone else.
    """
    try:
        handle = Handle(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent.fd))
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = os.strerror(error.errno or errno.EIO)
    else:
        found = os.fstat(handle.fd)
        if stat.S_ISLNK(found.st_mode):
            problem = "Workspace is a symlink (potential attack)"
        elif not stat.S_ISDIR(found.st_mode):
            problem = "it exists but is not a directory"
        elif owner := _owner_problem(found):
            problem = owner
        else:
            return handle
    raise UnavailableError(f"workspace {name!r} cannot be used: {problem}")


def _open_problem(error: OSError, path: Path) -> str:
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return "it is a symlink" if path.is_symlink() else "it is not a directory"
    return os.strerror(error.errno or errno.EIO)


def _owner_problem(found: os.stat_result) -> str | None:
    return None if found.st_uid == os.geteuid() else "it belongs to another user"


def _mode_problem(found: os.stat_result) -> str | None:
    if found.st_mode & 0o022:
        return "others may write to it (chmod go-w it first)"
    return None
