"""Ways for a command line to end that no command can swallow."""

from __future__ import annotations


class ExitAsked(BaseException):
    """The command `exit` ends the whole line."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
