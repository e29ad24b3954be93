"""A walk through a whole tree can be cancelled: it takes as long as there are directories.

A caller with a deadline sets it for the thread, and every walk checks it now and then. Counts of the ledger,
surveys and the hand-over of files are such walks, however many calls lie in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local


class WalkCancelledError(Exception):
    """The walk was cancelled; what it has found so far is not all.

    No `CarrelError`, since nobody on the way may take it for a failure of the disk.
    """


class _Thread(local):
    is_over: Callable[[], bool] | None = None


_thread = _Thread()


@contextmanager
def cancelled_when(is_over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the walks that this thread makes in the block as soon as *is_over* says so."""
    before, _thread.is_over = _thread.is_over, is_over
    try:
        yield
    finally:
        _thread.is_over = before


def is_cancelled() -> bool:
    """Whether a walk of this thread has to end."""
    return _thread.is_over is not None and _thread.is_over()


def checkpoint() -> None:
    """Do nothing while walks go on.

    Raises:
        WalkCancelledError: They have to end.
    """
    if is_cancelled():
        raise WalkCancelledError
