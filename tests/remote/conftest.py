"""A service, and the clients that use it in every way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel import Client, Workspace, WorkspaceManager, connect
from tests.remote.driving import DrivenClient
from tests.remote.serving import Serving, serving

WAYS = ("http", "grpc", "http awaited", "grpc awaited")


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, unconfigured: None) -> Iterator[Serving]:
    """A service on loopback, whose callers here find its local token."""
    settings = {
        "CARREL_SHELL_PIPELINES": "1",
        # An execution that ends sooner was stopped by the client.
        "CARREL_SERVE_RESUME_SECONDS": "600",
    }
    with serving(tmp_path_factory.mktemp("service") / "sessions", settings) as found:
        yield found


@pytest.fixture(params=WAYS)
def client(request: pytest.FixtureRequest, service: Serving) -> Iterator[Any]:
    """A client of the service; Any: the same methods, whether they are awaited or not."""
    protocol, _, awaited = request.param.partition(" ")
    with DrivenClient(service.url(protocol)) if awaited else connect(service.url(protocol)) as opened:
        yield opened


@pytest.fixture
def far(client: Any) -> Any:
    """The workspace of a new session that the service keeps."""
    return client.create()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Workspace]:
    """The workspace of a new session in this process."""
    with WorkspaceManager(tmp_path / "here") as manager, manager.create() as opened:
        yield opened


@pytest.fixture
def plain_client(service: Serving) -> Iterator[Client]:
    """A client over HTTP that blocks."""
    with Client(service.http) as opened:
        yield opened
