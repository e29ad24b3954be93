"""How wide a terminal is."""

from __future__ import annotations

import os
from typing import TextIO

USUAL = 80
"""Where nothing is known."""


def columns_of(stream: TextIO) -> int:
    """How many characters fit in a line of the terminal that *stream* is."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or USUAL
    except OSError:
        return USUAL
