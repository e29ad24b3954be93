"""What a directory of the host can do, asked without making or changing anything that has a name."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from carrel.fs import _sys

_NOWHERE = b".carrel-nothing-has-this-name"
_MOUNTS = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")


def has_unnamed_files(directory: Path) -> bool | None:
    """Whether a file without a name can be had (`O_TMPFILE`), which is gone at once; `None` if we may not."""
    try:
        os.close(os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except PermissionError:
        return None
    except OSError:
        return False
    return True


def has_rename_flags(directory: Path) -> bool | None:
    """Whether the kernel renames without replacing (`renameat2`); `None` if we may not try.

    Not covered: a file system that has no such flag is only known once something is renamed there.
    """
    try:
        opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        _sys.renameat2_unchecked(opened, _NOWHERE, opened, _NOWHERE + b"-2", _sys.RENAME_NOREPLACE)
    except OSError as error:
        return error.errno not in (errno.ENOSYS, errno.EINVAL, errno.EPERM)
    finally:
        os.close(opened)
    return True


def file_system(directory: Path) -> str | None:
    """What the kernel calls the file system that *directory* is on, like `ext4`; `None` if nothing tells."""
    found: tuple[int, str] | None = None
    where = os.path.realpath(directory)
    with suppress(OSError), open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            before, _, after = line.partition(" - ")
            point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
            beneath = where == point or where.startswith(point.rstrip("/") + "/")
            # A later mount hides an earlier one at the same place.
            if beneath and (found is None or len(point) >= found[0]):
                found = len(point), after.split(" ")[0]
    return None if found is None else found[1]
