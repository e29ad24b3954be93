"""The headings that `head` and `tail` print between files."""

from __future__ import annotations

from carrel.shell.context import STDIN, Context
from carrel.shell.quoting import encode


class Headings:
    """Prints which file follows, if that is wanted."""

    def __init__(self, ctx: Context, *, wanted: bool) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._is_first = True

    def print(self, file: str) -> None:
        """Print the heading of *file*."""
        if not self._wanted:
            return
        name = "standard input" if file == STDIN else file
        start = b"" if self._is_first else b"\n"
        self._is_first = False
        self._ctx.out(start + b"==> " + encode(name) + b" <==\n")
