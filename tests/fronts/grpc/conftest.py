"""One service for the tests of a module."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.remote.proto import carrel_v1_pb2 as messages
from tests.fronts.grpc.serving import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, guest_cache: Path) -> Iterator[Served]:
    """A service for whoever is on this machine."""
    with serving(tmp_path_factory.mktemp("grpc") / "sessions", CARREL_CACHE=str(guest_cache)) as made:
        yield made


@pytest.fixture
def session(served: Served) -> str:
    """A session with `a.txt` and `sub/b.txt`."""
    session_id = f"s-{uuid.uuid4().hex[:12]}"
    served.call("CreateSession", messages.CreateSessionRequest(session_id=session_id))
    root = served.path(session_id)
    (root / "sub").mkdir()
    (root / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    (root / "sub/b.txt").write_bytes(b"b")
    return session_id
