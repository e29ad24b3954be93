"""Prevent lost updates: change a file only if it still is the version that the caller saw.

A change of an expected version holds a lock on the file, so that of several callers who saw the same version
only the first succeeds. A plain overwrite by another process takes no lock: it is detected unless it falls
between the last check and the rename.
"""

from __future__ import annotations

import errno
import os
import stat

from carrel.fs.errors import changed_error
from carrel.fs.handle import Handle
from carrel.fs.local.draft import lock_soon
from carrel.fs.local.lookup import entry
from carrel.fs.rules import inode_id, version_of
from carrel.paths.parsed_path import ParsedPath

_NOT_OPENED = (errno.ENOENT, errno.ELOOP, errno.EACCES, errno.EISDIR, errno.ENXIO, errno.ETXTBSY)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def lock_version(parent: Handle, path: ParsedPath, expect: str) -> Handle | None:
    """Lock the file at *path* against other changes of this version, for as long as the handle is kept.

    Anything but a regular file is neither opened, because that could have side effects, nor locked.

    Raises:
        ChangedError: It is not the version *expect*.
    """
    seen = entry(parent, path.name)
    lock = _open_locked(parent, path.name) if seen and stat.S_ISREG(seen.st_mode) else None
    now = entry(parent, path.name)
    version = version_of(now)
    if version != expect or (now and lock and inode_id(now) != inode_id(os.fstat(lock.fd))):
        raise changed_error(path, version)
    return lock


def _open_locked(parent: Handle, name: bytes) -> Handle | None:
    """Open the file in the first way that its mode allows; `None` if it allows none or the file is gone."""
    for flags in (_READ, _WRITE):
        try:
            lock = Handle(os.open(name, flags, dir_fd=parent.fd))
        except OSError as error:
            if error.errno not in _NOT_OPENED:
                raise
            continue
        lock_soon(lock.fd)
        return lock
    return None
