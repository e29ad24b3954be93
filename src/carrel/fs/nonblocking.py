"""Run an operation inline on an event loop, giving up with `WouldBlock` where it would have to wait.

What takes a few system calls is done before a thread could begin with it, unless somebody else holds a lock
or everything has to be counted first. Whether that is so is known only where the lock is: there `WouldBlock`
is raised in a thread that must not wait, and whoever tried begins anew in one that may.

Not covered: a disk or a network file system that does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import local
from typing import TypeVar

T = TypeVar("T")


class WouldBlock(BaseException):
    """The operation has to wait; nothing was changed.

    No `Exception`, since nobody on the way may take it for a failure of the operation.
    """


Release = Callable[[], AbstractContextManager[None]]


class _Thread(local):
    may_wait = True
    release: Release = nullcontext


_thread = _Thread()


def run_nonblocking(work: Callable[[], T]) -> T:
    """What *work* gives, in this thread and without waiting.

    It takes locks once, or can be repeated: after the first change it may still have to give up.

    Raises:
        WouldWait: It cannot be done now.
    """
    before, _thread.may_wait = _thread.may_wait, False
    try:
        return work()
    finally:
        _thread.may_wait = before


def may_block() -> bool:
    """Whether this thread may wait for a lock."""
    return _thread.may_wait


def require_may_block() -> None:
    """Do nothing where this thread may wait.

    Raises:
        WouldWait: It must not.
    """
    if not _thread.may_wait:
        raise WouldBlock


@contextmanager
def releasing(release: Release) -> Iterator[None]:
    """Enter *release* around every blocking wait that this thread marks with `blocking`."""
    before, _thread.release = _thread.release, release
    try:
        yield
    finally:
        _thread.release = before


@contextmanager
def blocking() -> Iterator[None]:
    """Mark a blocking wait, so that the owner of this thread can run another one in the meantime."""
    with _thread.release(), releasing(nullcontext):
        yield
