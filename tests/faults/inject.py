"""Make system calls fail, and wear the rights of nobody in particular."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MEMORY = Path("/dev/shm")
NOBODY = 65534
PR_SET_DUMPABLE = 4

Call = Callable[..., Any]  # Any: whatever the system call takes and gives


def failing(
    call: Call, number: int, *, times: int | None = None, when: Callable[..., bool] | None = None
) -> Call:
    """*call*, but it raises the OSError *number*: the first *times* times, and only *when* says so."""
    left = times

    def fail(*args: Any, **kwargs: Any) -> Any:  # Any: as above
        nonlocal left
        if left != 0 and (when is None or when(*args, **kwargs)):
            if left is not None:
                left -= 1
            raise OSError(number, os.strerror(number))
        return call(*args, **kwargs)

    return fail


def is_unnamed(path: object, flags: int = 0, *rest: object, **more: object) -> bool:
    """Whether an open asks for a file without a name."""
    return flags & os.O_TMPFILE == os.O_TMPFILE


def raw_failing(call: Call, number: int, times: int) -> Call:
    """A C function that fails the first *times* times, and tells why by `errno`."""
    left = times

    def fail(*args: Any) -> Any:  # Any: as above
        nonlocal left
        if left:
            left -= 1
            ctypes.set_errno(number)
            return -1
        return call(*args)

    return fail


def first(call: Call, act: Callable[[], object], *, when: Callable[..., bool] | None = None) -> Call:
    """*call*, but the first time that *when* says so, *act* comes just before it."""
    done = False

    def act_first(*args: Any, **kwargs: Any) -> Any:  # Any: as above
        nonlocal done
        if not done and (when is None or when(*args, **kwargs)):
            done = True
            act()
        return call(*args, **kwargs)

    return act_first


@contextmanager
def as_nobody() -> Iterator[None]:
    """Act without the rights of root for a while, as another user."""
    user, group = os.geteuid(), os.getegid()
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    # A process that changed its user may no longer look at itself in /proc, which a real nobody may.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
        os.setgroups(groups)
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)


@contextmanager
def in_memory() -> Iterator[Path]:
    """A fresh directory, in memory where the host has such a place; it goes with everything in it."""
    where = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None
    found = Path(tempfile.mkdtemp(prefix="carrel-", dir=where))
    try:
        yield found
    finally:
        # A tree may be too deep for Python, and names in it shut.
        subprocess.run(["rm", "-rf", str(found)], check=True)


def open_descriptors() -> int:
    """How many descriptors this process holds, not counting what is only waiting to be collected."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
