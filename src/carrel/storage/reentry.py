"""Refuse a change that starts in the middle of another one of the same thread, as in a signal handler."""

from __future__ import annotations

import sys
from types import FrameType

from carrel.errors import BusyError


class ReentryGuard:
    """Refuses a second change in a thread that is in the middle of one: it would deadlock or mix the two.

    It remembers the frame of the change, not a flag: an interrupt (Ctrl-C) can end that frame at a moment
    when none of our code runs to clear a flag.
    """

    def __init__(self) -> None:
        self._frame: FrameType | None = None

    def require_none(self) -> None:
        """Raise if a caller of this method is in the middle of a change.

        Raises:
            BusyError: One is.
        """
        inside = self._frame
        caller: FrameType | None = None if inside is None else sys._getframe(1)
        while caller is not None:
            if caller is inside:
                raise BusyError(
                    "the session is in the middle of a change in this very thread;"
                    " a signal handler must leave its work to another thread"
                )
            caller = caller.f_back

    def begin(self) -> None:
        """Record that a change starts in the block whose `__enter__` calls this."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name == "__enter__":
            frame = frame.f_back
        self._frame = frame

    def end(self) -> None:
        """Record that the change has ended."""
        self._frame = None
