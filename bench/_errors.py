"""What can go wrong with a measurement."""

from __future__ import annotations


class UnmeasuredError(Exception):
    """Something cannot be measured here; the message says why."""


class BrokenError(Exception):
    """A way did not do what it is measured for."""
