"""Replace a file only if it is still the version that somebody read.

Whoever does so holds a lock on that version, so that of several who read the same one only the first
succeeds. A plain overwrite by another process takes no lock: it is seen, unless it falls between the last
look and the rename.
"""

from __future__ import annotations

import errno
import os

from carrel.errors import ChangedError
from carrel.fs import tree
from carrel.fs._barred import identity
from carrel.fs._beneath import entry
from carrel.fs._draft import lock_soon
from carrel.fs.handle import Handle
from carrel.paths.rel import Where

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def version_of(found: os.stat_result | None) -> str | None:
    """The version of what was found, if anything."""
    return None if found is None else tree.info_of("", found).version


def locked(parent: Handle, name: bytes) -> Handle | None:
    """The file at *name*, locked against others who replace a version of it; `None` if there is none."""
    try:
        held = Handle(os.open(name, _READ, dir_fd=parent.fd))
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise
    lock_soon(held.fd)
    return held


def require_version(parent: Handle, where: Where, expect: str, held: Handle | None) -> None:
    """Refuse unless *held* still has its name and is the version *expect*.

    Raises:
        ChangedError: It is another one.
    """
    now = entry(parent, where.name)
    if now and held and identity(now) == identity(os.fstat(held.fd)) and version_of(now) == expect:
        return
    raise ChangedError(f"{where.asked!r} was changed meanwhile", path=where.asked)
