"""The private names of libraries that the fronts use exist, and `pyproject.toml` bounds their versions."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from uvicorn.protocols.http import httptools_impl
from uvicorn.server import ServerState

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize(("extra", "package"), [("serve", "uvicorn"), ("serve", "httptools"), ("mcp", "mcp")])
def test_the_version_has_an_upper_bound(extra: str, package: str) -> None:
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    (requirement,) = (each for each in extras[extra] if each.startswith(f"{package}>="))
    assert ",<" in requirement


def test_the_protocol_of_uvicorn_has_what_ours_overrides() -> None:
    overridden = [
        "connection_made",
        "connection_lost",
        "data_received",
        "on_body",
        "on_header",
        "on_headers_complete",
        "on_message_begin",
        "on_message_complete",
        "on_response_complete",
        "pause_writing",
        "resume_writing",
        "send_400_response",
        "shutdown",
        "timeout_keep_alive_handler",
        "_unset_keepalive_if_required",
    ]
    for name in overridden:
        assert callable(getattr(httptools_impl.HttpToolsProtocol, name)), name
    assert httptools_impl.STATUS_LINE[431].startswith(b"HTTP/1.1 431 ")


def test_a_connection_and_a_request_of_uvicorn_have_the_attributes_that_ours_uses() -> None:
    async def main() -> None:
        config = uvicorn.Config(_application, http="httptools", lifespan="off", log_config=None)
        config.load()
        protocol: Any = httptools_impl.HttpToolsProtocol(config, ServerState(), {})
        names = ("app", "cycle", "loop", "pipeline", "server_state", "timeout_keep_alive_task", "transport")
        for name in names:
            assert hasattr(protocol, name), name
        assert protocol.server_state.default_headers == []
        transport = _Transport()
        protocol.connection_made(transport)
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n")
        assert (protocol.headers[0], protocol.scheme) == ((b"host", b"h"), "http")
        assert protocol.scope["raw_path"] == b"/"
        assert callable(protocol.flow.pause_reading)
        cycle = protocol.cycle
        assert (cycle.more_body, cycle.body, cycle.disconnected, cycle.response_started) == (
            True,
            b"",
            False,
            False,
        )
        assert not cycle.message_event.is_set()
        protocol.data_received(b"x")
        await asyncio.gather(*protocol.tasks)
        assert cycle.response_complete

    asyncio.run(main())


async def _application(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})

    def write(self, data: object) -> None:
        """Drop it."""

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""


def test_a_session_of_the_mcp_sdk_has_its_connection_and_the_manager_its_owners() -> None:
    stand_in: Any = None  # neither is used by the constructors
    connection = Connection(stand_in, protocol_version="2025-11-25")
    assert ServerSession(stand_in, connection)._connection is connection
    assert connection.state == {}
    assert callable(connection.exit_stack.callback)
    assert StreamableHTTPSessionManager(Server("name"))._session_owners == {}
