"""The address of a service, and blocking and async HTTP connections to it."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypedDict
from urllib.parse import SplitResult, urlsplit

import httpx2

from carrel.errors import ConfigError
from carrel.remote import local_token
from carrel.remote.transport.api import ByteSource, require_open
from carrel.remote.transport.chunks import iterate_in_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAddress:
    """The base URL of a service."""

    url: str

    @classmethod
    def parse(cls, text: str) -> HttpAddress:
        """Parse `http://host:port` or `https://host:port`, optionally with a path.

        Raises:
            ConfigError: The address is invalid.
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
            # The address is not repeated: it may hold a password.
            raise ConfigError(
                "the address of a service must be http://host:port, https://host:port, grpc://host:port or"
                " grpcs://host:port; pass a key as key=, not in the address"
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
IDLE_SECONDS = 45.0
"""Minimum read timeout of an event stream; the service sends a keepalive three times as often."""
CONNECTIONS = 100
"""Maximum number of open connections."""


class HttpConnection(Protocol):
    """Sends requests and receives responses; failures are errors of httpx2."""

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        content: bytes | ByteSource | None = None,
        is_stream: bool = False,
    ) -> httpx2.Request:
        """Build a request; *target* must be URL-encoded, and streams may be idle for longer."""
        ...

    async def open(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and read the head of its response.

        Raises:
            ClosedError: The connection was closed.
        """
        ...

    async def read(self, response: httpx2.Response) -> bytes:
        """Read the whole body."""
        ...

    def chunks(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        """Read the body as it arrives."""
        ...

    async def end(self, response: httpx2.Response) -> None:
        """Close a response, whether it was read or not."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait before a retry."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class BlockingHttpConnection:
    """A blocking connection; its coroutines never suspend. Threads may share it."""

    def __init__(
        self, url: str, headers: dict[str, str], *, timeout: float | None, ca: str | None = None
    ) -> None:
        self._timeouts = _timeouts(timeout)
        self._client = httpx2.Client(**_client_options(url, headers, ca))

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

    async def chunks(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        for chunk in response.iter_bytes():
            yield chunk

    async def end(self, response: httpx2.Response) -> None:
        response.close()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        self._client.close()


class AsyncHttpConnection:
    """A connection for the event loop in which it is first used."""

    def __init__(
        self, url: str, headers: dict[str, str], *, timeout: float | None, ca: str | None = None
    ) -> None:
        self._timeouts = _timeouts(timeout)
        self._client = httpx2.AsyncClient(**_client_options(url, headers, ca))

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

    async def chunks(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        async for chunk in response.aiter_bytes():
            yield chunk

    async def end(self, response: httpx2.Response) -> None:
        await response.aclose()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self._client.aclose()


def _timeouts(seconds: float | None) -> tuple[httpx2.Timeout, httpx2.Timeout]:
    """The timeouts for plain responses, and for streams."""
    connect = CONNECT_SECONDS if seconds is None else min(seconds, CONNECT_SECONDS)
    idle = None if seconds is None else max(seconds, IDLE_SECONDS)
    return httpx2.Timeout(seconds, connect=connect), httpx2.Timeout(seconds, connect=connect, read=idle)


class _ClientOptions(TypedDict):
    """The options that both kinds of httpx2 client share."""

    base_url: str
    headers: dict[str, str]
    limits: httpx2.Limits
    trust_env: bool
    verify: bool | ssl.SSLContext
    auth: Callable[[httpx2.Request], httpx2.Request] | None


def _client_options(url: str, headers: dict[str, str], ca: str | None) -> _ClientOptions:
    return {
        "base_url": url,
        "headers": headers,
        "limits": httpx2.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=30
        ),
        # The environment names proxies, which lead to other machines.
        "trust_env": not is_local(url),
        "verify": True if ca is None else ssl.create_default_context(cadata=ca),
        "auth": None if "authorization" in headers else _with_local_token,
    }


def _with_local_token(request: httpx2.Request) -> httpx2.Request:
    """Add the current local token: a restarted service has a new one."""
    url = request.url
    port = url.port or (443 if url.scheme == "https" else 80)
    if token := local_token.find(url.host, port, os.environ):
        request.headers["authorization"] = f"Bearer {token}"
    return request


def is_local(url: str) -> bool:
    """Whether *url* is on this machine, so that no proxy must be used."""
    host = httpx2.URL(url).host
    return host in ("localhost", "::1") or host.startswith("127.")
