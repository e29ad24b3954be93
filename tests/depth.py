"""How deep the tests go that could go on for ever.

`make test` goes deep enough to be run often; `make thorough` takes those that can go deeper all the way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import product
from typing import TypeVar

IS_THOROUGH = bool(os.environ.get("THOROUGH"))
STRIDE = 1 if IS_THOROUGH else 6
"""Of so many steps at which something could be killed, it is killed at one."""

First = TypeVar("First")
Second = TypeVar("Second")


def rounds(count: int, share: int = 5) -> int:
    """How often to try what *count* tries show beyond doubt; one in *share* of them is enough every day."""
    return count if IS_THOROUGH else count // share


def pairs(ones: Sequence[First], others: Sequence[Second]) -> list[tuple[First, Second]]:
    """Each of the one with each of the other, or with one of them in turn."""
    if IS_THOROUGH:
        return list(product(ones, others))
    return [(one, others[index % len(others)]) for index, one in enumerate(ones)]
