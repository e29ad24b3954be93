"""Prevent lost updates: change a file only if it is still the version that the caller saw.

Whoever does so to a file holds a lock on that version, so that of several who saw the same one only the
first succeeds. A plain overwrite by another process takes no lock: it is seen, unless it falls between the
last look and the rename.
"""

from __future__ import annotations

import errno
import os
import stat

from carrel.errors import ChangedError
from carrel.fs.handle import Handle
from carrel.fs.local import walk
from carrel.fs.local.draft import lock_soon
from carrel.fs.local.excluded_paths import inode_id
from carrel.fs.local.lookup import entry
from carrel.paths.parsed_path import ParsedPath

_NOT_OPENED = (errno.ENOENT, errno.ELOOP, errno.EACCES, errno.EISDIR, errno.ENXIO, errno.ETXTBSY)
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def version_of(found: os.stat_result | None) -> str | None:
    """The version of what was found, if anything."""
    return None if found is None else walk.info_of("", found).version


def changed_error(where: ParsedPath, version: str | None) -> ChangedError:
    """The error for something that is another *version* now, or gone."""
    return ChangedError(f"{where.requested!r} was changed meanwhile", path=where.requested, version=version)


def locked_version(parent: Handle, where: ParsedPath, expect: str) -> Handle | None:
    """The file at *where*, locked against others who change this version; who keeps it keeps them out.

    What is no regular file is not opened, because that could have effects of its own, and not locked.

    Raises:
        ChangedError: It is not the version *expect*.
    """
    seen = entry(parent, where.name)
    held = _locked(parent, where.name) if seen and stat.S_ISREG(seen.st_mode) else None
    now = entry(parent, where.name)
    version = version_of(now)
    if version != expect or (now and held and inode_id(now) != inode_id(os.fstat(held.fd))):
        raise changed_error(where, version)
    return held


def _locked(parent: Handle, name: bytes) -> Handle | None:
    """The file, opened in whichever way its mode allows; `None` if that is none or it is gone."""
    for flags in (_READ, _WRITE):
        try:
            held = Handle(os.open(name, flags, dir_fd=parent.fd))
        except OSError as error:
            if error.errno not in _NOT_OPENED:
                raise
            continue
        lock_soon(held.fd)
        return held
    return None
