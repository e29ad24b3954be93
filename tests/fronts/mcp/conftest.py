"""Servers to talk to: a process on pipes, and an application on a socket."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import uvicorn
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from carrel.config.load import load
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.server import make_server
from carrel.fronts.mcp.subscriptions import Subscriptions
from carrel.fronts.mcp.tool_calls import ToolCalls
from carrel.fronts.mcp.transports.streamable_http import McpApp
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.service.principal import Principal
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager
from tests.fronts.mcp.talk import MODERN, Talk, talking

ONE_AT_A_TIME = "CARREL_SERVE_EXECUTIONS_PER_CALLER"
"""The setting that says how much one caller may run."""


@dataclass(frozen=True, slots=True)
class Http:
    """A service behind `/mcp` on a socket of this machine."""

    url: str
    sessions: Path
    service: Service
    keys: KeyStore
    stop: Callable[[], object]
    """Ends the streams of those who listen."""

    def key(self, name: str, **options: Any) -> str:  # Any: those of a key
        """The secret of a new key."""
        _, secret = self.keys.create(NewKey(name=name, **options))
        return secret

    @contextmanager
    def talking(
        self, key: str | None = None, mode: str = MODERN, query: str = "", **options: Any
    ) -> Iterator[Talk]:
        """A client that shows *key*, or none."""
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        with talking(_connection(f"{self.url}?{query}", headers), mode, **options) as talk:
            yield talk


@asynccontextmanager
async def _connection(url: str, headers: dict[str, str]) -> AsyncIterator[Any]:  # Any: the SDK's own streams
    async with (
        create_mcp_http_client(headers) as client,
        streamable_http_client(url, http_client=client) as both,
    ):
        yield both


@pytest.fixture(scope="module")
def guest_environ(guest_cache: Path) -> Iterator[dict[str, str]]:
    """Where the compiled guest is, for this process and for those that it starts."""
    environ = {"CARREL_CACHE": str(guest_cache)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        yield environ


@pytest.fixture(scope="module")
def http(guest_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    with served(tmp_path_factory.mktemp("served") / "sessions") as found:
        yield found


@contextmanager
def served(sessions: Path) -> Iterator[Http]:
    """A server in a thread."""
    settings = load({**os.environ, ONE_AT_A_TIME: "1", "CARREL_SERVE_REQUIRE_KEY": "0"})
    service = Service(WorkspaceManager(sessions), settings)
    keys = KeyStore(sessions)
    app = McpApp(service, Authenticator(settings, keys), RateLimiter(None), progress_seconds=0.01)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))

        loops: Queue[asyncio.AbstractEventLoop] = Queue()

        async def serve() -> None:
            async with service, app.running():
                loops.put(asyncio.get_running_loop())
                await server.serve([listener])

        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        loop = loops.get(timeout=30)
        yield Http(
            f"http://127.0.0.1:{listener.getsockname()[1]}/mcp",
            sessions,
            service,
            keys,
            lambda: loop.call_soon_threadsafe(app.stop),
        )
        server.should_exit = True
        thread.join()
    keys.close()


Near = Callable[..., Talk]


@pytest.fixture
def near(tmp_path: Path) -> Iterator[Near]:
    """Talks to a server in this process, as any caller and with any profiles; all with the same sessions."""
    with ExitStack() as ends:

        def talk(mode: str = MODERN, profiles: tuple[str, ...] = ("agent", "sessions"), **who: Any) -> Talk:
            visit = ClientContext(caller=Principal(name="someone", **who), profiles=profiles)
            service = Service(WorkspaceManager(tmp_path / "sessions"), load(os.environ))
            calls = ToolCalls(service, progress_seconds=0.01)
            server = make_server(service, lambda _: visit, calls, Subscriptions(service))
            return ends.enter_context(talking(server, mode, service=service))

        yield talk
