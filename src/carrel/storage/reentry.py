"""Refuse a change that starts in the middle of another one of the same thread, as in a signal handler."""

from __future__ import annotations

import sys
from types import FrameType

from carrel.errors import BusyError


class ReentryGuard:
    """Refuses a second change of the thread that is in one: it could only wait for itself, or mix the two.

    The frame that is in the change tells, not a flag: an interrupt (Ctrl-C) may end that frame at a moment
    when nothing of ours runs any more, and then nobody is in a change.
    """

    def __init__(self) -> None:
        self._frame: FrameType | None = None

    def require_none(self) -> None:
        """Do nothing if no caller of this call is in a change.

        Raises:
            BusyError: One is.
        """
        inside = self._frame
        caller: FrameType | None = None if inside is None else sys._getframe(1)
        while caller is not None:
            if caller is inside:
                raise BusyError(
                    "the session is in the middle of a change of this very thread;"
                    " a signal handler must leave its work to somebody else"
                )
            caller = caller.f_back

    def begin(self) -> None:
        """Note that the block whose `__enter__` calls this is in a change."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_name == "__enter__":
            frame = frame.f_back
        self._frame = frame

    def end(self) -> None:
        """Note that the change is over."""
        self._frame = None
