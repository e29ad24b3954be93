"""Where races are run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.inject import in_memory


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory where there is one: names change there many times faster than on a disk."""
    with in_memory() as found:
        yield found
