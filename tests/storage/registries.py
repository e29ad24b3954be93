"""Records to keep, and calls to make, in tests of registries."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from carrel.errors import UnavailableError
from carrel.storage.api import Registry
from carrel.storage.session_record import SessionRecord

NOW = 1_790_000_000_000_000_000
SECOND = 1_000_000_000


def record(session_id: str, **values: Any) -> SessionRecord:
    """A record with everything at its default but *values*."""
    return SessionRecord(**{"session_id": session_id, "created_ns": NOW, "used_ns": NOW, **values})


CALLS: list[Callable[[Registry], object]] = [
    lambda registry: registry.add(record("new")),
    lambda registry: registry.adopt("new", NOW),
    lambda registry: registry.get("abc"),
    lambda registry: registry.touch("abc", NOW + 1),
    lambda registry: registry.extend("abc", 5),
    lambda registry: registry.update("abc", role="reader"),
    lambda registry: registry.rewind(NOW),
    lambda registry: registry.remove("abc"),
    lambda registry: registry.list(),
    lambda registry: registry.count(),
    lambda registry: registry.expired(NOW),
    lambda registry: registry.corrupt(),
]
"""Every method once, for a registry with the session 'abc'."""


def require_unavailable(registry: Registry, problem: str) -> None:
    """Every call says what is wrong, and nothing about where on the host."""
    for call in CALLS:
        with pytest.raises(UnavailableError, match=problem) as caught:
            call(registry)
        assert not re.search(r"(?<!\w)/(?!proc)", str(caught.value))
