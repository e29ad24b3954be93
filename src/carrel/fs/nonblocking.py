"""Run an operation inline on an event loop, giving up with `WouldBlock` where it would have to wait.

An operation of a few system calls is done before a thread could start on it, unless a lock is held elsewhere
or the tree has to be counted first. Only the code at the lock knows that: it raises `WouldBlock` in a thread
that must not wait, and the caller starts the operation again in a thread that may.

Not covered: a disk or a network file system that does not respond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import local
from typing import TypeVar

T = TypeVar("T")


class WouldBlock(BaseException):
    """The operation would have to wait; nothing was changed.

    It is not an `Exception`, so that no handler on the way mistakes it for a failure of the operation.
    """


Release = Callable[[], AbstractContextManager[None]]


class _Thread(local):
    may_wait = True
    release: Release = nullcontext


_thread = _Thread()


def run_nonblocking(work: Callable[[], T]) -> T:
    """Run *work* in this thread without waiting, and return its result.

    *work* must take its locks once or be safe to repeat: it may have to give up after its first change.

    Raises:
        WouldBlock: It would have to wait.
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
    """Do nothing if this thread may wait.

    Raises:
        WouldBlock: It must not.
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
    """Mark a blocking wait, during which the owner of this thread can run another one."""
    with _thread.release(), releasing(nullcontext):
        yield
