"""`HttpRequester`: send an HTTP request, retry it, and translate failures into library errors."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import httpx2

from carrel.errors import CarrelError, LimitError, RequestError, UnreachableError
from carrel.remote.json_codec import parse_error
from carrel.remote.transport.api import ByteSource, unreachable_error, with_address
from carrel.remote.transport.http_connection import CONNECTIONS, HttpConnection
from carrel.remote.transport.retry import Retrier
from carrel.remote.transport.server_sent_events import ServerSentEvent, parse_events

JSON = {"accept": "application/json"}
BYTES = {"accept": "application/octet-stream", "accept-encoding": "identity"}
EVENTS = {"accept": "text/event-stream", "accept-encoding": "identity"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request that has not been sent yet."""

    method: str
    path: str
    """URL-encoded."""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    params: Mapping[str, str] | None = None
    content: ByteSource | bytes | None = None
    expected_status: int | None = None
    """A status besides the 2xx range that is not an error."""

    @property
    def target(self) -> str:
        """The path and the query string."""
        # Not left to httpx2: a path in the query need not be UTF-8.
        return f"{self.path}?{urlencode(self.params, errors='surrogateescape')}" if self.params else self.path

    @property
    def can_be_repeated(self) -> bool:
        """Whether the content can be sent again."""
        return self.content is None or isinstance(self.content, bytes)

    def with_json(self, document: Mapping[str, Any]) -> HttpRequest:
        """The request with a JSON document as its content.

        Raises:
            RequestError: The document is not a JSON value.
        """
        try:
            content = json.dumps(document, allow_nan=False).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            raise RequestError(f"an argument cannot be sent as JSON: {error}") from None
        return replace(self, content=content, headers={**self.headers, "content-type": "application/json"})


class HttpRequester:
    """Sends requests to one service, and retries them when the service is busy."""

    def __init__(
        self, connection: HttpConnection, address: str, *, retries: int, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.connection = connection
        self.retrier = Retrier(retries, connection.pause)
        self._timeout_seconds = timeout_seconds

    async def json(self, request: HttpRequest) -> Any:  # Any: any JSON value
        """The JSON document of the response; `None` if it is empty."""

        async def attempt() -> Any:
            async with self.open(request) as response:
                data = await self.connection.read(response)
                return self.parse_json(data) if data else None

        return await self.retrier.call(attempt) if request.can_be_repeated else await attempt()

    def chunks(self, request: HttpRequest) -> AsyncGenerator[bytes]:
        """The body of the response as it arrives."""
        return self.retrier.stream(lambda: self._chunks(request))

    async def _chunks(self, request: HttpRequest) -> AsyncGenerator[bytes]:
        async with self.open(request) as response, aclosing(self.connection.chunks(response)) as chunks:
            async for chunk in chunks:
                yield chunk

    def events(self, request: HttpRequest) -> AsyncGenerator[ServerSentEvent]:
        """The events of the response, with the longer timeout of streams."""
        request = replace(request, headers={**request.headers, **EVENTS})
        return self.retrier.stream(lambda: self._events(request))

    async def _events(self, request: HttpRequest) -> AsyncGenerator[ServerSentEvent]:
        opening = self.open(request, is_stream=True)
        async with opening as response, aclosing(parse_events(self.connection.chunks(response))) as events:
            async for event in events:
                yield event

    @asynccontextmanager
    async def open(self, request: HttpRequest, *, is_stream: bool = False) -> AsyncIterator[httpx2.Response]:
        """Send a request and read the head of its response.

        Raises:
            CarrelError: The error that the service reports.
            UnreachableError: There is no response, or it is not from carrel.
            LimitError: The service did not answer in time.
        """
        with self._translated_errors():
            prepared = self.connection.request(
                request.method,
                request.target,
                headers=request.headers,
                content=request.content,
                is_stream=is_stream,
            )
            response = await self.connection.open(prepared)
            try:
                if not response.is_success and response.status_code != request.expected_status:
                    raise self._error(response, await self.connection.read(response))
                yield response
            finally:
                await self.connection.end(response)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except httpx2.PoolTimeout:
            raise LimitError(
                "connections",
                limit=CONNECTIONS,
                asked=CONNECTIONS + 1,
                message=f"{CONNECTIONS} responses of the service at {self.address} are already open: read"
                " some of them to the end, or close them",
            ) from None
        except httpx2.TimeoutException as error:
            raise self._timeout_error(error) from None
        except (httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol) as error:
            raise unreachable_error(self.address, str(error)) from None
        except httpx2.HTTPError:
            raise self.broken_connection() from None

    def broken_connection(self) -> UnreachableError:
        """The error for a connection that ended too early."""
        return UnreachableError(
            f"the connection to the service at {self.address} broke before the response was complete: check"
            " that `carrel serve` is still running there, and that this is its HTTP port"
        )

    def _timeout_error(self, error: httpx2.TimeoutException) -> CarrelError:
        if isinstance(error, httpx2.ConnectTimeout):
            return UnreachableError(
                f"no service answers at {self.address}: connecting timed out; check the address, and that no"
                " firewall or proxy blocks the connection"
            )
        return LimitError(
            "time",
            limit=int(self._timeout_seconds or 0),
            asked=None,
            message=f"the service at {self.address} did not answer in time",
        )

    def _error(self, response: httpx2.Response, data: bytes) -> CarrelError:
        """Parse the error of a response."""
        try:
            document = json.loads(data)["error"]
            document["code"]
        except (ValueError, TypeError, LookupError):
            return UnreachableError(
                f"the server at {self.address} is not carrel: it responds with {response.status_code} to"
                f" {response.request.method}; check the address"
            )
        return with_address(parse_error(document), self.address)

    def parse_json(self, data: bytes | str) -> Any:  # Any: any JSON value
        """Parse JSON.

        Raises:
            UnreachableError: The data is not JSON.
        """
        try:
            return json.loads(data)
        except ValueError:
            raise self.invalid_response() from None

    def invalid_response(self) -> UnreachableError:
        """The error for a response that cannot be parsed."""
        return UnreachableError(
            f"the service at {self.address} sent a response that cannot be parsed: check the address"
        )
