"""Act as another user for a while, and say what to do when a part of the host is missing."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import NoReturn

import pytest

NOBODY = 65534
IS_ROOT = os.geteuid() == 0

_PR_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None, use_errno=True)


class User(StrEnum):
    """Who calls the operations."""

    ROOT = "root"
    NOBODY = "nobody"
    """Without any right of its own; whoever runs pytest, if that is not root."""


USERS = tuple(User) if IS_ROOT else (User.NOBODY,)


@contextmanager
def acting_as(user: User) -> Iterator[None]:
    """Give up the rights of root in all threads, and take them back in the end."""
    if user is User.ROOT or not IS_ROOT:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    _open_own_proc()
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)
        _open_own_proc()


def _open_own_proc() -> None:
    """A process that changed its user may not look into /proc/self until it says that it is harmless."""
    _libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)


def missing(what: str) -> NoReturn:
    """Skip the test because the host lacks *what*; on CI, where everything has to be there, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing on CI: {what}")
    pytest.skip(f"needs {what}")
