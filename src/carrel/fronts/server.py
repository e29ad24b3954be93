"""Run the service with HTTP, gRPC and MCP in one process; the only module that knows them all."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import resource
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from carrel.errors import ConfigError
from carrel.fronts import event_loop
from carrel.fronts.certificate import Certificate
from carrel.fronts.http.app import Application
from carrel.fronts.http.protocol import SECURITY_HEADERS, HttpProtocol
from carrel.fronts.http.request import Request
from carrel.fronts.http.router import Route
from carrel.fronts.listener import Listener, Strangers, address_of, listen
from carrel.fronts.request_log import LOGGER, BufferedLogHandler
from carrel.remote import local_token
from carrel.service.authentication.api_key import generate_key
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.authentication.key_store import KeyStore
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service

if TYPE_CHECKING:
    from carrel.fronts.grpc.server import GrpcServer
    from carrel.fronts.mcp.transports.streamable_http import McpApp

KEEP_ALIVE_SECONDS = 75
MCP = "/mcp"
DESCRIPTORS = 2**16
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
"""Parameters of glibc's `mallopt`."""
SWITCH_SECONDS = 0.0005
"""The interpreter's switch interval: how long the event loop waits for a thread that executes Python code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Where the service listens."""

    http: str
    """A URL."""
    grpc: str | None
    """Host and port, after `grpcs://` if it is spoken over TLS."""
    has_callers: bool
    """Whether there may be anybody whom it knows; if not, somebody has to be given a key."""
    certificate: Certificate | None = None
    """What it shows, if it speaks TLS."""
    token_problem: str | None = None
    """Why there is no local token, if one was to be stored."""


class _UvicornServer(uvicorn.Server):
    """Leaves signals to whoever runs it, and lets our own listener accept connections."""

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context
        self._strangers = Strangers()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        listeners = [Listener(each, self._protocol, self._strangers, self._context) for each in sockets or ()]
        self.servers = listeners  # type: ignore[assignment]  # only their ends are used
        self.started = True

    def _protocol(self) -> HttpProtocol:
        return HttpProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state={},
            strangers=self._strangers,
        )


def run(service: Service, on_start: Callable[[ServerInfo], None], *, tokens: Path | None = None) -> None:
    """Serve until SIGTERM or SIGINT; *on_start* is told where, and *tokens* is where a local one is stored.

    On SIGHUP, a service that speaks TLS reads its certificate again.

    Raises:
        ConfigError: The certificate cannot be used.
        UnavailableError: A port cannot be listened at.
    """
    _allow_descriptors()
    tune_allocator()
    sys.setswitchinterval(SWITCH_SECONDS)
    event_loop.run(_serve_until_signal(service, on_start, tokens))


def _allow_descriptors() -> None:
    """Let this process have as many connections and sessions open as the host allows, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune_allocator() -> None:
    """Let the allocator return large blocks to the system, and use one heap for all threads.

    By default glibc keeps freed blocks of up to 32 MiB between small ones in use, in a heap per thread, where
    they are seldom used again: the largest requests of all times would stay in memory.
    """
    # Another C library has no such function, or does nothing.
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, 2**20)
        mallopt(M_ARENA_MAX, 1)


def log_requests(*, enabled: bool) -> None:
    """Write each request on standard error, or none."""
    logger = logging.getLogger(LOGGER)
    logger.propagate = False
    logger.setLevel(logging.INFO if enabled else logging.CRITICAL)
    logger.addHandler(BufferedLogHandler(sys.stderr))


async def _serve_until_signal(
    service: Service, on_start: Callable[[ServerInfo], None], tokens: Path | None
) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with running_server(service, tokens=tokens) as served:
        # What was loaded stays, so that nobody need look through it again for what is not used any more.
        gc.collect()
        gc.freeze()
        if served.certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, served.certificate.reload)
        on_start(served)
        await told.wait()


@asynccontextmanager
async def running_server(
    service: Service, *, more_routes: tuple[Route, ...] = (), tokens: Path | None = None
) -> AsyncIterator[ServerInfo]:
    """Serve meanwhile; afterwards what runs is finished or, after the time for that, cancelled.

    A program that embeds the service may answer at *more_routes* of its own. With a directory *tokens*,
    a local token is stored there for as long as it runs.

    Raises:
        ConfigError: The certificate cannot be used.
        UnavailableError: A port cannot be listened at.
    """
    settings = service.settings.serve
    certificate = Certificate.of(settings, service.logger)
    async with AsyncExitStack() as stack:
        listener = listen(settings.host, settings.port)
        stack.callback(listener.close)
        await stack.enter_async_context(service)
        keys = KeyStore(service.tenants.own.root)
        stack.callback(keys.close)
        token = None if tokens is None else generate_key()
        callers = Authenticator(service.settings, keys, local_token=token, logger=service.logger)
        rates = RateLimiter(settings.rate_per_minute)
        mcp = _mcp(service, callers, rates)
        routes = more_routes if mcp is None else (*more_routes, *_routes(mcp))
        app = Application(service, callers, rates, more_routes=routes)
        grpc = await _started_grpc(service, callers, rates, certificate)
        if mcp is not None:
            # As late as can be: what fails meanwhile comes out in a group of errors.
            await stack.enter_async_context(mcp.running())
        http = await _started_http(app, listener, certificate)
        served = ServerInfo(
            http=f"{settings.scheme}://{address_of(listener)}",
            grpc=None if grpc is None else f"{'grpcs://' if certificate else ''}{grpc.address}",
            has_callers=callers.has_callers,
            certificate=certificate,
        )
        if token is not None and tokens is not None:
            served = _store_token(stack, served, tokens, token)
        try:
            yield served
        finally:
            if mcp is not None:
                mcp.stop()
            await asyncio.gather(
                http.stop(), *(() if grpc is None else (grpc.stop(settings.shutdown_seconds),))
            )


def _store_token(stack: AsyncExitStack, served: ServerInfo, tokens: Path, token: str) -> ServerInfo:
    """Let clients of this user find the token meanwhile."""
    ports = [int(each.rpartition(":")[2]) for each in (served.http, served.grpc) if each is not None]
    try:
        stack.enter_context(local_token.stored(tokens, token, *ports))
    except OSError as error:
        return replace(served, token_problem=os.strerror(error.errno or 0))
    except ConfigError as error:
        return replace(served, token_problem=error.message)
    return served


class _HttpServer:
    """The HTTP front while it runs."""

    def __init__(self, app: Application, server: _UvicornServer, running: asyncio.Task[None]) -> None:
        self._app = app
        self._server = server
        self._running = running

    async def stop(self) -> None:
        """Take no more requests, and wait until those that run have ended or were cancelled."""
        self._app.stopping.set()
        self._server.should_exit = True
        await self._running
        self._app.log.flush()


async def _started_http(
    app: Application, listener: socket.socket, certificate: Certificate | None
) -> _HttpServer:
    server = _UvicornServer(
        uvicorn.Config(
            app,
            http=HttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            headers=SECURITY_HEADERS,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=app.settings.shutdown_seconds,
        ),
        None if certificate is None else certificate.context("http/1.1"),
    )
    # What it would tell is in our own log already.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    running = asyncio.create_task(server.serve([listener]))
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    return _HttpServer(app, server, running)


async def _started_grpc(
    service: Service, callers: Authenticator, rates: RateLimiter, certificate: Certificate | None
) -> GrpcServer | None:
    settings = service.settings.serve
    if not settings.grpc:
        return None
    from carrel.fronts.grpc.server import serve_grpc

    listener = listen(settings.host, settings.grpc_port)
    context = None if certificate is None else certificate.context("h2")
    return await serve_grpc(service, callers, rates, listener, context)


def _mcp(service: Service, callers: Authenticator, rates: RateLimiter) -> McpApp | None:
    if find_spec("mcp") is None:
        return None
    from carrel.fronts.mcp.transports.streamable_http import mcp_app

    return mcp_app(service, callers, rates)


def _routes(app: McpApp) -> tuple[Route, ...]:
    """Where MCP is spoken; the application itself finds out who calls."""

    async def delegate(call: Request) -> None:
        await call.delegate(app)

    return tuple(
        Route(
            name="mcp",
            method=method,
            path=MCP,
            group="mcp",
            summary="Speak MCP",
            handler=delegate,
            replies=(),
            is_open=True,
            is_lasting=True,
        )
        for method in ("GET", "POST", "DELETE")
    )
