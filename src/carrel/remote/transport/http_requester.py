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
    """Encoded as it must be in a URL."""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    params: Mapping[str, str] | None = None
    content: ByteSource | bytes | None = None
    also: int | None = None
    """A status besides those that say yes that is an answer as well."""

    @property
    def target(self) -> str:
        """The path and the query."""
        # Not left to the client: a path may be no UTF-8, also in a query.
        return f"{self.path}?{urlencode(self.params, errors='surrogateescape')}" if self.params else self.path

    @property
    def can_be_repeated(self) -> bool:
        """Whether all of it can be sent again."""
        return self.content is None or isinstance(self.content, bytes)

    def saying(self, document: Mapping[str, Any]) -> HttpRequest:
        """The same with a JSON document as its content.

        Raises:
            RequestError: It is nothing that JSON can say.
        """
        try:
            content = json.dumps(document, allow_nan=False).encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            raise RequestError(f"that cannot be sent to a service: {error}") from None
        return replace(self, content=content, headers={**self.headers, "content-type": "application/json"})


class HttpRequester:
    """Asks one service, and again what it refused for now."""

    def __init__(
        self, line: HttpConnection, address: str, *, retries: int, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.line = line
        self.patience = Retrier(retries, line.pause)
        self._timeout_seconds = timeout_seconds

    async def json(self, question: HttpRequest) -> Any:  # Any: whatever JSON says
        """The document that is the answer; `None` if there is none."""

        async def asked() -> Any:
            async with self.opened(question) as response:
                data = await self.line.read(response)
                return self.loaded(data) if data else None

        return await self.patience.ask(asked) if question.can_be_repeated else await asked()

    def pieces(self, question: HttpRequest) -> AsyncGenerator[bytes]:
        """The bytes of the answer as they come."""
        return self.patience.stream(lambda: self._pieces(question))

    async def _pieces(self, question: HttpRequest) -> AsyncGenerator[bytes]:
        async with self.opened(question) as response, aclosing(self.line.pieces(response)) as pieces:
            async for piece in pieces:
                yield piece

    def events(self, question: HttpRequest) -> AsyncGenerator[ServerSentEvent]:
        """The events of the answer, which may be silent for as long as the service lets it be."""
        question = replace(question, headers={**question.headers, **EVENTS})
        return self.patience.stream(lambda: self._events(question))

    async def _events(self, question: HttpRequest) -> AsyncGenerator[ServerSentEvent]:
        answer = self.opened(question, is_stream=True)
        async with answer as response, aclosing(parse_events(self.line.pieces(response))) as events:
            async for event in events:
                yield event

    @asynccontextmanager
    async def opened(
        self, question: HttpRequest, *, is_stream: bool = False
    ) -> AsyncIterator[httpx2.Response]:
        """An answer, of which only the head was read.

        Raises:
            CarrelError: What the service says is wrong.
            UnreachableError: There is no answer, or none of a service of ours.
            LimitError: It takes too long.
        """
        with self._translated():
            request = self.line.request(
                question.method,
                question.target,
                headers=question.headers,
                content=question.content,
                is_stream=is_stream,
            )
            response = await self.line.open(request)
            try:
                if not response.is_success and response.status_code != question.also:
                    raise self._error(response, await self.line.read(response))
                yield response
            finally:
                await self.line.end(response)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx2.PoolTimeout:
            raise LimitError(
                "connections",
                limit=CONNECTIONS,
                asked=CONNECTIONS + 1,
                message=f"{CONNECTIONS} answers of the service at {self.address} are being read already: read"
                " some of them to their end, or close them",
            ) from None
        except httpx2.TimeoutException as error:
            raise self._late(error) from None
        except (httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol) as error:
            raise unreachable_error(self.address, str(error)) from None
        except httpx2.HTTPError:
            raise self.broken() from None

    def broken(self) -> UnreachableError:
        """What is told of a connection that ended too early."""
        return UnreachableError(
            f"the connection to the service at {self.address} broke before the answer was complete: check"
            " that `carrel serve` still runs there, and that it is HTTP that this port speaks"
        )

    def _late(self, error: httpx2.TimeoutException) -> CarrelError:
        if isinstance(error, httpx2.ConnectTimeout):
            return UnreachableError(
                f"no service answers at {self.address}: it takes too long to connect; check the address, and"
                " that nothing in between stops it"
            )
        return LimitError(
            "time",
            limit=int(self._timeout_seconds or 0),
            asked=None,
            message=f"the service at {self.address} did not answer in time",
        )

    def _error(self, response: httpx2.Response, data: bytes) -> CarrelError:
        """What an answer that says no means."""
        try:
            document = json.loads(data)["error"]
            document["code"]
        except (ValueError, TypeError, LookupError):
            return UnreachableError(
                f"what answers at {self.address} is no service of carrel: it says {response.status_code}"
                f" to {response.request.method}; check the address"
            )
        return with_address(parse_error(document), self.address)

    def loaded(self, data: bytes | str) -> Any:  # Any: whatever JSON says
        """What JSON says in *data*.

        Raises:
            UnreachableError: It is no JSON.
        """
        try:
            return json.loads(data)
        except ValueError:
            raise self.garbled() from None

    def garbled(self) -> UnreachableError:
        """What is told of an answer that makes no sense."""
        return UnreachableError(
            f"the service at {self.address} gave an answer that cannot be read: check the address"
        )
