"""What a Docker engine says in its own words is for the operator: nobody else gets to hear it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import CarrelError, ContainerError, EngineError
from carrel.fronts.grpc.errors import RpcStatus
from carrel.fronts.http.request import error_response
from carrel.fronts.mcp import responses as mcp_answer
from carrel.fronts.mcp import responses as mcp_refusal
from carrel.remote.json_codec import parse_error, render_error
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.core.advice import Adviser
from tests.conformance.grpc_door import Grpc
from tests.conformance.http_door import API, Http
from tests.conformance.mcp_door import Mcp
from tests.conformance.row import Row
from tests.conformance.server import Server
from tests.containers.test_engine import answering, http

SECRET = "/var/lib/docker/of-the-host"
CALLS = (("bash", {"command": "ls"}), ("python_executor", {"code": "print(1)"}))
ERRORS = (
    EngineError("refused", "the Docker engine refuses this user", detail=SECRET),
    ContainerError("failed", "the Docker engine could not do that", detail=SECRET),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service whose engine refuses it, with words of its own."""
    place: Path = tmp_path_factory.mktemp("engine")
    with WorkspaceManager(place / "sessions") as manager:
        manager.create("one").close()
    with answering(place, http("403 Forbidden", {"message": SECRET})) as address:
        variables = {"CARREL_CONTAINER_ENGINE": address, "CARREL_CONTAINER_IMAGE": "box"}
        with Server(place / "sessions", {**variables, "CARREL_CONTAINER_TOOLS": "yes"}) as running:
            yield running


@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_no_front_sends_it_out(server: Server, name: str, arguments: dict[str, Any]) -> None:
    row = Row(text=name, name=name, arguments=arguments)
    doors = (Http(server.port), Grpc(server.grpc_address), Mcp(server.port))
    for door in doors:
        with closing(door):
            told = str(door.tool("one", row, arguments))
            assert "engine.refused" in told, door.name
            assert SECRET not in told, door.name
    with closing(Http(server.port)) as bare:
        reply = bare.post(f"{API}/sessions/one/tools/{name}?role=developer", {"arguments": arguments})
        assert SECRET.encode() not in reply.body
        assert SECRET not in str(reply.headers)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.code)
@pytest.mark.parametrize(
    "render",
    [
        error_response,
        lambda error: RpcStatus.of(error, "tests"),
        mcp_answer.failure_result,
        lambda error: mcp_refusal.mcp_error(error, "tools/call", SandboxLogger()).error,
        lambda error: render_error(error, retry=False),
        lambda error: Adviser({}).failure(error),
        str,
    ],
    ids=["http", "grpc", "mcp tool", "mcp", "remote", "tool", "text"],
)
def test_an_error_is_rendered_without_it(error: CarrelError, render: Callable[[Any], object]) -> None:
    told = render(error)
    assert SECRET not in repr(told)
    assert SECRET not in json.dumps(told, default=repr)


def test_on_the_other_side_it_is_empty() -> None:
    for error in ERRORS:
        found = parse_error(render_error(error, retry=False))
        assert isinstance(found, EngineError | ContainerError)
        assert (found.code, found.message, found.detail) == (error.code, error.message, "")
        assert pickle.loads(pickle.dumps(error)).detail == SECRET
