"""What can go wrong with a measurement."""

from __future__ import annotations

import re

_DIRECTORIES = re.compile(r"(?<![\w.])(?:\w+:/)?/(?:[^\s'\"/]*/)*")


class UnmeasuredError(Exception):
    """Something cannot be measured here; the message says why, and names no directory of the machine."""

    def __init__(self, why: str) -> None:
        super().__init__(_DIRECTORIES.sub("", why))


class BrokenError(Exception):
    """A way did not do what it is measured for."""
