"""What this host supports: the platform itself, and the features of a directory's file system."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from carrel.errors import UnavailableError
from carrel.fs import syscalls


def require_platform() -> None:
    """Refuse to start where the guarantees cannot be given.

    Raises:
        UnavailableError: The platform is not Linux, or file names are not UTF-8 for Python.
    """
    if sys.platform != "linux":
        raise UnavailableError(f"carrel cannot confine files on {sys.platform}, only on Linux")
    if sys.getfilesystemencoding() != "utf-8":
        raise UnavailableError(
            "carrel needs UTF-8 file names; start Python with PYTHONUTF8=1 or in a UTF-8 locale"
        )


_UNUSED_NAME = b".carrel-nothing-has-this-name"
_MOUNTS = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")


def has_unnamed_files(directory: Path) -> bool | None:
    """Whether unnamed files (`O_TMPFILE`) are supported; `None` if permissions forbid the test."""
    try:
        os.close(os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600))
    except PermissionError:
        return None
    except OSError:
        return False
    return True


def has_rename_flags(directory: Path) -> bool | None:
    """Whether the kernel can rename without replacing (`renameat2`); `None` if the test is not possible.

    Not covered: a file system without that flag is noticed only when something is renamed there.
    """
    try:
        opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        syscalls.renameat2_unchecked(
            opened, _UNUSED_NAME, opened, _UNUSED_NAME + b"-2", syscalls.RENAME_NOREPLACE
        )
    except OSError as error:
        return error.errno not in (errno.ENOSYS, errno.EINVAL, errno.EPERM)
    finally:
        os.close(opened)
    return True


def file_system(directory: Path) -> str | None:
    """Return the type of the file system that *directory* is on, such as `ext4`; `None` if unknown."""
    found: tuple[int, str] | None = None
    path = os.path.realpath(directory)
    with suppress(OSError), open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            before, _, after = line.partition(" - ")
            point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), before.split(" ")[4])
            beneath = path == point or path.startswith(point.rstrip("/") + "/")
            # A later mount hides an earlier one at the same path.
            if beneath and (found is None or len(point) >= found[0]):
                found = len(point), after.split(" ")[0]
    return None if found is None else found[1]
