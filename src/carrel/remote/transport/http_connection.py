"""The address of a service, and blocking and async HTTP connections to it."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

import httpx2

from carrel.errors import ConfigError
from carrel.remote import local_token
from carrel.remote.transport.api import ByteSource, require_open
from carrel.remote.transport.chunks import iterate_in_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """The URL beneath which a service answers."""

    url: str

    @classmethod
    def parse(cls, text: str) -> HttpAddress:
        """The address that *text* says: `http://host:port` or `https://host:port`, maybe with a path.

        Raises:
            ConfigError: It is no such address.
        """
        parts = _split(text)
        if (
            parts is None
            or parts.scheme not in ("http", "https")
            or not parts.hostname
            or "@" in parts.netloc
            or parts.query
            or parts.fragment
        ):
            # What is wrong is not repeated: it may hold a password.
            raise ConfigError(
                "the address of a service must be http://host:port, https://host:port, grpc://host:port or"
                " grpcs://host:port; a key is given as key=, not in the address"
            )
        return cls(url=f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}")

    def __str__(self) -> str:
        return self.url


def _split(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts


CONNECT_SECONDS = 10.0
QUIET_SECONDS = 45.0
"""A service lets a stream be silent for a third of this, and then says that it is still there."""
CONNECTIONS = 100
"""Most at the same time."""


class HttpConnection(Protocol):
    """Sends requests and receives answers; what goes wrong is an error of httpx2."""

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        content: bytes | ByteSource | None = None,
        is_stream: bool = False,
    ) -> httpx2.Request:
        """A request to be sent, *target* being encoded as it must be; streams may be silent for longer."""
        ...

    async def open(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to a request, of which only the head was read.

        Raises:
            ClosedError: The line was closed.
        """
        ...

    async def read(self, response: httpx2.Response) -> bytes:
        """All of the body."""
        ...

    def pieces(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        """The body as it comes."""
        ...

    async def end(self, response: httpx2.Response) -> None:
        """Leave an answer, whether it was read or not."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait a while."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


class BlockingHttpConnection:
    """A line that blocks; its coroutines never wait for an event loop. Threads may share it."""

    def __init__(
        self, url: str, headers: dict[str, str], *, timeout: float | None, ca: str | None = None
    ) -> None:
        self._timeouts = _timeouts(timeout)
        self._client = httpx2.Client(
            base_url=url,
            headers=headers,
            limits=_limits(),
            trust_env=not is_local(url),
            verify=_trust(ca),
            auth=None if "authorization" in headers else _with_local_token,
        )

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        content: bytes | ByteSource | None = None,
        is_stream: bool = False,
    ) -> httpx2.Request:
        return self._client.build_request(
            method, target, headers=headers, content=content, timeout=self._timeouts[is_stream]
        )

    async def open(self, request: httpx2.Request) -> httpx2.Response:
        require_open(is_closed=self._client.is_closed)
        return self._client.send(request, stream=True)

    async def read(self, response: httpx2.Response) -> bytes:
        return response.read()

    async def pieces(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        for piece in response.iter_bytes():
            yield piece

    async def end(self, response: httpx2.Response) -> None:
        response.close()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        self._client.close()


class AsyncHttpConnection:
    """A line for the event loop in which it is first used."""

    def __init__(
        self, url: str, headers: dict[str, str], *, timeout: float | None, ca: str | None = None
    ) -> None:
        self._timeouts = _timeouts(timeout)
        self._client = httpx2.AsyncClient(
            base_url=url,
            headers=headers,
            limits=_limits(),
            trust_env=not is_local(url),
            verify=_trust(ca),
            auth=None if "authorization" in headers else _with_local_token,
        )

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        content: bytes | ByteSource | None = None,
        is_stream: bool = False,
    ) -> httpx2.Request:
        body = content if content is None or isinstance(content, bytes) else iterate_in_thread(content)
        return self._client.build_request(
            method, target, headers=headers, content=body, timeout=self._timeouts[is_stream]
        )

    async def open(self, request: httpx2.Request) -> httpx2.Response:
        require_open(is_closed=self._client.is_closed)
        return await self._client.send(request, stream=True)

    async def read(self, response: httpx2.Response) -> bytes:
        return await response.aread()

    async def pieces(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        async for piece in response.aiter_bytes():
            yield piece

    async def end(self, response: httpx2.Response) -> None:
        await response.aclose()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._client.aclose()


def _timeouts(seconds: float | None) -> tuple[httpx2.Timeout, httpx2.Timeout]:
    """How long to wait for whole answers, and for the next piece of a stream."""
    connect = CONNECT_SECONDS if seconds is None else min(seconds, CONNECT_SECONDS)
    quiet = None if seconds is None else max(seconds, QUIET_SECONDS)
    return httpx2.Timeout(seconds, connect=connect), httpx2.Timeout(seconds, connect=connect, read=quiet)


def _with_local_token(request: httpx2.Request) -> httpx2.Request:
    """Add the local token that there is now: a service that is started again has another."""
    url = request.url
    port = url.port or (443 if url.scheme == "https" else 80)
    if token := local_token.find(url.host, port, os.environ):
        request.headers["authorization"] = f"Bearer {token}"
    return request


def _limits() -> httpx2.Limits:
    return httpx2.Limits(
        max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=30
    )


def _trust(ca: str | None) -> bool | ssl.SSLContext:
    """Whose certificates are trusted over TLS: of the authorities in *ca*, or of the usual ones."""
    return True if ca is None else ssl.create_default_context(cadata=ca)


def is_local(url: str) -> bool:
    """Whether *url* is on this machine, which a proxy that leads to others must not be asked for."""
    host = httpx2.URL(url).host
    return host in ("localhost", "::1") or host.startswith("127.")
