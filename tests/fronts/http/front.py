"""A service that really listens, in a thread of the tests."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2

from carrel.config.table import CONFIG_VARIABLE
from carrel.fronts.http.router import Route
from carrel.fronts.server import running_server
from carrel.service.service import Service


@dataclass(frozen=True, slots=True)
class Front:
    """A service, and a client of it."""

    url: str
    client: httpx2.Client
    service: Service
    root: Path

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def session(self) -> Session:
        """A new session of the operator."""
        session_id = f"s-{uuid4().hex}"
        made = self.client.put(f"/api/v1/sessions/{session_id}")
        assert made.status_code == 200, made.text
        return Session(self, session_id)

    def raw(self, data: bytes) -> socket.socket:
        """A connection over which *data* was sent."""
        connection = socket.create_connection(self.address, timeout=30)
        connection.sendall(data)
        return connection


@dataclass(frozen=True, slots=True)
class Session:
    """One session, asked over HTTP."""

    front: Front
    id: str

    @property
    def path(self) -> str:
        return f"/api/v1/sessions/{self.id}"

    @property
    def directory(self) -> Path:
        """Where its files are on the host."""
        return self.front.root / self.id

    def request(self, method: str, path: str, **options: object) -> httpx2.Response:
        return self.front.client.request(method, f"{self.path}{path}", **options)  # type: ignore[arg-type]

    def get(self, path: str, **options: object) -> httpx2.Response:
        return self.request("GET", path, **options)

    def put(self, path: str, **options: object) -> httpx2.Response:
        return self.request("PUT", path, **options)

    def post(self, path: str, **options: object) -> httpx2.Response:
        return self.request("POST", path, **options)

    def delete(self, path: str, **options: object) -> httpx2.Response:
        return self.request("DELETE", path, **options)


def code_of(answer: httpx2.Response) -> str:
    """The code of the error that was answered."""
    document = answer.json()["error"]
    assert set(document) >= {"code", "message", "path", "retry"}
    return str(document["code"])


@contextmanager
def served(
    root: Path,
    *,
    more_routes: tuple[Route, ...] = (),
    config: str = os.devnull,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    **environ: str,
) -> Iterator[Front]:
    """A service of the sessions directory *root*, set up by a file and by variables without their prefix."""
    given = {f"CARREL_SERVE_{name.upper()}": value for name, value in environ.items()}
    usual = {
        "CARREL_SERVE_PORT": "0",
        "CARREL_SERVE_GRPC": "0",
        "CARREL_SERVE_REQUIRE_KEY": "0",
        "CARREL_SERVE_OPEN_SESSIONS": "16",
        "CARREL_SHELL_PIPELINES": "1",
        CONFIG_VARIABLE: config,
    }
    service = Service.from_env(usual | given, root=root)
    started: Future[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        told = asyncio.Event()
        async with running_server(service, more_routes=more_routes) as there:
            started.set_result((there.http, asyncio.get_running_loop(), told))
            await told.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(serve())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = Thread(target=run, name="served")
    thread.start()
    url, loop, told = started.result(60)
    try:
        with httpx2.Client(base_url=url, timeout=60) as client:
            yield Front(url, client, service, root)
    finally:
        loop.call_soon_threadsafe(told.set)
        thread.join(60)
