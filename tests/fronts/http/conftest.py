"""One service for all tests that need nothing special of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fronts.http.front import Front, Session, served


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with served(tmp_path_factory.mktemp("http") / "sessions", shutdown_seconds="2") as running:
        yield running


@pytest.fixture
def session(front: Front) -> Session:
    return front.session()
