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
from carrel.fronts.listener import Listener, UnauthenticatedConnections, address_of, listen
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
    """Host and port, prefixed with `grpcs://` if the service speaks TLS."""
    has_callers: bool
    """Whether anyone can authenticate; if not, a key must be created."""
    certificate: Certificate | None = None
    """The certificate, if the service speaks TLS."""
    token_problem: str | None = None
    """Why the local token could not be stored."""


class _UvicornServer(uvicorn.Server):
    """uvicorn without signal handling, and with our own listener."""

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._context = context
        self._unauthenticated = UnauthenticatedConnections()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        listeners = [
            Listener(each, self._protocol, self._unauthenticated, self._context) for each in sockets or ()
        ]
        self.servers = listeners  # type: ignore[assignment]  # only their closing methods are used
        self.started = True

    def _protocol(self) -> HttpProtocol:
        return HttpProtocol(
            config=self.config,
            server_state=self.server_state,
            app_state={},
            unauthenticated=self._unauthenticated,
        )


def run(service: Service, on_start: Callable[[ServerInfo], None], *, tokens: Path | None = None) -> None:
    """Serve until SIGTERM or SIGINT, and store a local token in *tokens*; reload the certificate on SIGHUP.

    *on_start* is called with the addresses once the service accepts connections.

    Raises:
        ConfigError: The certificate cannot be used.
        UnavailableError: A port cannot be opened.
    """
    _allow_descriptors()
    tune_allocator()
    sys.setswitchinterval(SWITCH_SECONDS)
    event_loop.run(_serve_until_signal(service, on_start, tokens))


def _allow_descriptors() -> None:
    """Raise the limit of open files, up to `DESCRIPTORS`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune_allocator() -> None:
    """Let the allocator return large blocks to the system, and use one heap for all threads.

    By default glibc keeps freed blocks of up to 32 MiB in a heap per thread, where they are rarely reused, so
    that memory stays at its peak.
    """
    # Other C libraries have no such function, or ignore it.
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, 2**20)
        mallopt(M_ARENA_MAX, 1)


def log_requests(*, enabled: bool) -> None:
    """Log requests to standard error, or none."""
    logger = logging.getLogger(LOGGER)
    logger.propagate = False
    logger.setLevel(logging.INFO if enabled else logging.CRITICAL)
    logger.addHandler(BufferedLogHandler(sys.stderr))


async def _serve_until_signal(
    service: Service, on_start: Callable[[ServerInfo], None], tokens: Path | None
) -> None:
    stop_requested = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_requested.set)
    async with running_server(service, tokens=tokens) as info:
        # Loaded modules stay; the garbage collector need not traverse them.
        gc.collect()
        gc.freeze()
        if info.certificate is not None:
            loop.add_signal_handler(signal.SIGHUP, info.certificate.reload)
        on_start(info)
        await stop_requested.wait()


@asynccontextmanager
async def running_server(
    service: Service, *, more_routes: tuple[Route, ...] = (), tokens: Path | None = None
) -> AsyncIterator[ServerInfo]:
    """Serve while the block runs; then finish running requests, or cancel them after `shutdown_seconds`.

    A program that embeds the service may add *more_routes*. With a directory *tokens*, a local token is
    stored there while the service runs.

    Raises:
        ConfigError: The certificate cannot be used.
        UnavailableError: A port cannot be opened.
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
        grpc = await _start_grpc(service, callers, rates, certificate)
        if mcp is not None:
            # As late as possible: errors inside its task group are wrapped in an exception group.
            await stack.enter_async_context(mcp.running())
        http = await _start_http(app, listener, certificate)
        info = ServerInfo(
            http=f"{settings.scheme}://{address_of(listener)}",
            grpc=None if grpc is None else f"{'grpcs://' if certificate else ''}{grpc.address}",
            has_callers=callers.has_callers,
            certificate=certificate,
        )
        if token is not None and tokens is not None:
            info = _store_token(stack, info, tokens, token)
        try:
            yield info
        finally:
            if mcp is not None:
                mcp.stop()
            await asyncio.gather(
                http.stop(), *(() if grpc is None else (grpc.stop(settings.shutdown_seconds),))
            )


def _store_token(stack: AsyncExitStack, info: ServerInfo, tokens: Path, token: str) -> ServerInfo:
    """Store the token for clients of this user until the stack is closed."""
    ports = [int(each.rpartition(":")[2]) for each in (info.http, info.grpc) if each is not None]
    try:
        stack.enter_context(local_token.stored(tokens, token, *ports))
    except OSError as error:
        return replace(info, token_problem=os.strerror(error.errno or 0))
    except ConfigError as error:
        return replace(info, token_problem=error.message)
    return info


class _HttpServer:
    """The running HTTP front."""

    def __init__(self, app: Application, server: _UvicornServer, running: asyncio.Task[None]) -> None:
        self._app = app
        self._server = server
        self._running = running

    async def stop(self) -> None:
        """Accept no more requests, and wait until the running ones have ended or been cancelled."""
        self._app.stopping.set()
        self._server.should_exit = True
        await self._running
        self._app.log.flush()


async def _start_http(
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
    # Our own log has what uvicorn would report.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    running = asyncio.create_task(server.serve([listener]))
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    return _HttpServer(app, server, running)


async def _start_grpc(
    service: Service, callers: Authenticator, rates: RateLimiter, certificate: Certificate | None
) -> GrpcServer | None:
    settings = service.settings.serve
    if not settings.grpc:
        return None
    from carrel.fronts.grpc.server import serve_grpc

    listener = listen(settings.host, settings.grpc_port)
    try:
        context = None if certificate is None else certificate.context("h2")
        return await serve_grpc(service, callers, rates, listener, context)
    except BaseException:
        listener.close()
        raise


def _mcp(service: Service, callers: Authenticator, rates: RateLimiter) -> McpApp | None:
    if find_spec("mcp") is None:
        return None
    from carrel.fronts.mcp.transports.streamable_http import mcp_app

    return mcp_app(service, callers, rates)


def _routes(app: McpApp) -> tuple[Route, ...]:
    """Return the routes of MCP, whose application authenticates callers itself."""

    async def delegate(request: Request) -> None:
        await request.delegate(app)

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
