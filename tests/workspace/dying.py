"""Processes that end themselves by `kill -9` at a chosen system call."""

from __future__ import annotations

import fcntl
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from enum import Enum
from typing import Any, NoReturn

from carrel.fs import syscalls

CALLS: tuple[tuple[Any, str], ...] = (  # Any: a module
    (os, "open"),
    (os, "write"),
    (os, "pwrite"),
    (os, "ftruncate"),
    (os, "copy_file_range"),
    (os, "fchmod"),
    (os, "mkdir"),
    (os, "rename"),
    (os, "link"),
    (os, "symlink"),
    (os, "unlink"),
    (os, "rmdir"),
    (os, "utime"),
    (fcntl, "flock"),
    (syscalls, "_renameat2"),
)
"""Everything by which a change is made or announced."""


class Moment(Enum):
    """When to die."""

    BEFORE = "before"
    AFTER = "after"


def die() -> NoReturn:
    """End this process as the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit("still alive")


def arm(step: int, moment: Moment) -> None:
    """Die at the call number *step* from now on, counted from 1."""
    left = step

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:  # Any: whatever the call takes and gives
        def counted(*args: Any, **kwargs: Any) -> Any:  # Any: as above
            nonlocal left
            left -= 1
            is_last = left == 0
            if is_last and moment is Moment.BEFORE:
                die()
            try:
                return call(*args, **kwargs)
            finally:
                if is_last:
                    die()

        return counted

    for module, name in CALLS:
        setattr(module, name, deadly(getattr(module, name)))


def forked(act: Callable[[], object]) -> int:
    """Begin a process that does *act*; returns its id."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the test runner
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        act()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def survives(child: int) -> bool:
    """Whether the process came to its end; `False` if it was killed."""
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, "the process failed"
    return True
