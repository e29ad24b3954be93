"""Arguments that may be given in place or in a file, as patterns and scripts are."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """Where something comes from: an argument, or the file that it names."""

    is_file: bool
    text: str


def from_argument(text: str) -> Source:
    """The argument itself."""
    return Source(False, text)


def from_file(text: str) -> Source:
    """What is in the file."""
    return Source(True, text)
