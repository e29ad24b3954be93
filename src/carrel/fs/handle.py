"""A descriptor that is closed when nobody uses it any more."""

from __future__ import annotations

import os
from collections.abc import Callable


class Handle:
    """Owns one descriptor; closing is dropping the last reference.

    An operation keeps its own reference while it runs, so `close()` in another thread cannot hand the number
    to somebody else's file underneath it.
    """

    __slots__ = ("__weakref__", "_close", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._close: Callable[[int], None] = os.close

    def __del__(self) -> None:
        self._close(self.fd)
