"""`Request` and `Response`: read what a client sends, and answer it."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, MutableMapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from carrel.config.serve_keys import MAX_BODY_MB
from carrel.errors import CarrelError, LimitError, RequestError
from carrel.fronts.http.media_types import prefers
from carrel.fronts.http.query import parse_query
from carrel.fronts.http.router import Route
from carrel.fronts.json_document import MAX_BYTES, ValueCounter, convert_document
from carrel.remote.json_codec import render_error
from carrel.service.error_status import error_status
from carrel.service.principal import Principal

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from carrel.fronts.http.app import Application
    from carrel.service.admission import AdmissionTicket
    from carrel.service.sessions.caller_session import CallerSession

Message = MutableMapping[str, Any]  # Any: as ASGI defines
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
T = TypeVar("T")

STALLED_SECONDS = 60
"""How long a client may take to send `MIN_PROGRESS_BYTES` of a body, or its rest."""
MIN_PROGRESS_BYTES = 2**12
CLIENT_CLOSED_REQUEST = 499
"""Status in the log and the metrics for a client that disconnected before it was answered."""
DRAIN_SECONDS = 10
"""How long the rest of a body is read and discarded after the response was sent."""
JSON = b"application/json"
VARY = (b"vary", b"Accept")
_NO_STORE = (b"cache-control", b"no-store")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Response(NamedTuple):
    """A complete response."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""


PendingResponse = Response | Coroutine[Any, Any, None]
"""A response that is ready, or a coroutine that sends one."""


class ClientDisconnected(Exception):
    """The client has disconnected, so there is nothing left to answer."""


class Request:
    """One request and its response."""

    __slots__ = (
        "_headers",
        "_is_answered",
        "_is_body_read",
        "_is_body_unwanted",
        "_receive",
        "_send",
        "app",
        "caller",
        "is_head",
        "is_response_started",
        "more_headers",
        "path_values",
        "request_id",
        "route",
        "scope",
        "sent_bytes",
        "started",
        "status",
        "ticket",
    )

    def __init__(self, app: Application, scope: Scope, receive: Receive, send: Send) -> None:
        self.app = app
        self.scope = scope
        self.started = time.perf_counter()
        self.route: Route | None = None
        self.path_values: list[str] = []
        """The values of the parameters in the path of the route."""
        self.caller: Principal | None = None
        self.ticket: AdmissionTicket | None = None
        """The place of the request among those that run."""
        self.request_id = ""
        self.more_headers: list[tuple[bytes, bytes]] = []
        """Headers added to any response."""
        self.is_head = scope["method"] == "HEAD"
        self.is_response_started = False
        self.status = 0
        self.sent_bytes = 0
        self._receive = receive
        self._send = send
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._is_body_unwanted = False
        self._is_answered = False
        self._is_body_read = False

    # The request

    @property
    def acting(self) -> Principal:
        """The caller in the role that the request chooses.

        Raises:
            RoleDeniedError: The caller may not choose the role.
        """
        assert self.caller is not None  # noqa: S101  # only open routes have no caller, and do not use this
        return self.caller.acting_as(self.header(b"carrel-role"))

    @property
    def session_id(self) -> str:
        """The session in the path."""
        return self.path_values[0]

    def open_session(self) -> AbstractAsyncContextManager[CallerSession]:
        """Open the session in the path for the caller."""
        return self.app.service.session_access.open(self.acting, self.session_id)

    def get_session_if_open(self) -> CallerSession | None:
        """Return the session if it is open already; valid only until the next `await`."""
        return self.app.service.session_access.get_if_open(self.acting, self.session_id)

    def header(self, name: bytes) -> str | None:
        """Return the value of a header; *name* is in lower case."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def content_length(self) -> int | None:
        """The announced size of the body."""
        length = self.header(b"content-length")
        return int(length) if length is not None and length.isdecimal() else None

    @property
    def peer(self) -> str | None:
        """The address of the client."""
        client = self.scope.get("client")
        return client[0] if client else None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """All headers, including repeated ones."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.scope["headers"]]

    def has_only(self, names: frozenset[bytes]) -> bool:
        """Whether all headers are among *names*, and none is repeated."""
        return names.issuperset(self._headers) and len(self._headers) == len(self.scope["headers"])

    def repeats(self, name: bytes) -> bool:
        """Whether a header was sent more than once."""
        sent = self.scope["headers"]
        return len(self._headers) < len(sent) and sum(each == name for each, _ in sent) > 1

    def prefers(self, media_type: str, *others: str) -> bool:
        """Whether the client prefers *media_type* to all *others*.

        A response that depends on this includes `VARY`.
        """
        if b"accept" not in self._headers:
            return False
        sent = [value for name, value in self.scope["headers"] if name == b"accept"]
        return prefers(b",".join(sent).decode("latin-1"), media_type, others)

    def query(self, kind: type[T]) -> T:
        """Parse the query string.

        Raises:
            RequestError: A field is invalid, unknown or missing.
        """
        return parse_query(self.scope["query_string"], kind)

    async def document(self, kind: type[T]) -> T:
        """Parse the body as JSON.

        Raises:
            RequestError: The body is not valid JSON, or has the wrong structure; the message says where.
            LimitError: The body is too large, or contains too many values.
        """
        counter = ValueCounter()
        chunks = []
        async for chunk in self.body_chunks(MAX_BYTES):
            counter.add(chunk)
            chunks.append(chunk)
        body = b"".join(chunks) or b"{}"
        try:
            return await convert_document(len(body), lambda: _decode(body, kind))
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the body cannot be used: {error}") from None

    async def body(self) -> bytes:
        """Read the whole body.

        Raises:
            LimitError: The body is too large, or the client stalls.
            ClientDisconnected: The client disconnected.
        """
        return b"".join([chunk async for chunk in self.body_chunks()])

    async def body_chunks(self, max_bytes: int | None = None) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, up to the configured size, or *max_bytes* if that is less.

        Raises:
            LimitError: The body is too large, or the client stalls.
            ClientDisconnected: The client disconnected.
        """
        max_body_bytes = self.app.settings.max_body_bytes
        limit = max_body_bytes if max_bytes is None else min(max_bytes, max_body_bytes)
        too_large = partial(_body_too_large, limit, is_configured=limit == max_body_bytes)
        length = self.content_length
        if length is not None and length > limit:
            raise too_large(length)
        size, due, deadline = 0, 0, 0.0
        while not self._is_body_read:
            if size >= due:
                due = size + MIN_PROGRESS_BYTES
                deadline = asyncio.get_running_loop().time() + STALLED_SECONDS
            message = await self._receive_before(deadline)
            if message["type"] != "http.request":
                raise ClientDisconnected
            chunk: bytes = message.get("body", b"")
            self._is_body_read = not message.get("more_body", False)
            size += len(chunk)
            if size > limit:
                raise too_large(size)
            if chunk:
                yield chunk

    async def _receive_before(self, deadline: float) -> Message:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._receive()
        except TimeoutError:
            raise LimitError(
                "time",
                limit=STALLED_SECONDS,
                asked=None,
                message=f"the client sent nothing more of the request body for {STALLED_SECONDS} seconds",
            ) from None

    async def wait_disconnected(self) -> None:
        """Wait until the client disconnects."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # The response

    async def send_json(self, status: int, document: object, headers: Headers = ()) -> None:
        """Send a JSON document."""
        await self.send_response(json_response(status, encode(document), headers))

    async def send_encoded_json(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a JSON document that is encoded already."""
        await self.send_response(json_response(status, body, headers))

    async def send_no_content(self) -> None:
        """Send 204."""
        await self.send_response(Response(204))

    async def send_response(self, response: Response) -> None:
        """Send a complete response."""
        await self.start_response(response.status, response.headers)
        await self.end_response(response.body)

    async def send_pending(self, pending: PendingResponse) -> None:
        """Send a response that is ready, or run the coroutine that sends it."""
        if isinstance(pending, Response):
            await self.send_response(pending)
        else:
            await pending

    async def start_response(self, status: int, headers: Headers) -> None:
        """Send the head of a response; send its body with `write` and `end_response`."""
        self.is_response_started = True
        self.status = status
        if not self._is_body_read and self.scope["method"] in ("PUT", "POST") and self._has_body():
            # The rest of the body is discarded, and must not be parsed as the next request.
            self.more_headers.append((b"connection", b"close"))
            self._is_body_unwanted = True
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*self.more_headers, *headers],
            }
        )

    def _has_body(self) -> bool:
        return self._headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self._headers

    async def write(self, chunk: bytes) -> None:
        """Send a chunk of the body; a client that reads nothing is disconnected (see `protocol`)."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        self.sent_bytes += len(chunk)

    async def end_response(self, chunk: bytes = b"") -> None:
        """Send the last chunk of the body."""
        self.sent_bytes += len(chunk)
        await self._send({"type": "http.response.body", "body": chunk, "more_body": self._is_body_unwanted})
        self._is_answered = True

    async def drain_body(self) -> None:
        """Read and discard the rest of the body of a request that was answered early, for a while.

        Closing a connection with unread data resets it, and the client could lose the response.
        """
        if self._is_body_unwanted and self._is_answered:
            await self._discard_body()
            await self._send({"type": "http.response.body", "body": b""})

    async def _discard_body(self) -> None:
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while size <= self.app.settings.max_body_bytes:
                    message = await self._receive()
                    size += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return

    async def stream(self, chunks: AsyncIterator[bytes]) -> None:
        """Send a body chunk by chunk, until its end or until the client disconnects.

        Raises:
            ClientDisconnected: The client disconnected.
        """
        if self.is_head:
            await self.end_response()
            return
        disconnected = asyncio.create_task(self.wait_disconnected())
        try:
            async for chunk in chunks:
                if disconnected.done():
                    raise ClientDisconnected
                await self.write(chunk)
            await self.end_response()
        finally:
            disconnected.cancel()

    async def delegate(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        """Let another ASGI application answer."""

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.is_response_started = True
                self.status = message["status"]
                message["headers"] = [*self.more_headers, *message.get("headers", ())]
            elif message["type"] == "http.response.body":
                self.sent_bytes += len(message.get("body", b""))
            await self._send(message)

        await app(self.scope, self._receive, send)


def whole_response(status: int, body: bytes, headers: Headers) -> Response:
    """Return a response with its `Content-Length`, if its status allows a body."""
    if status in (204, 304):
        return Response(status, tuple(headers))
    return Response(status, (*headers, (b"content-length", b"%d" % len(body))), body)


def json_response(status: int, body: bytes, headers: Headers = ()) -> Response:
    """Return a response with an encoded JSON document."""
    return whole_response(status, body, ((b"content-type", JSON), _NO_STORE, *headers))


def error_response(error: CarrelError, *, status: int | None = None, headers: Headers = ()) -> Response:
    """Return the response for an error, with *status* or the one in the error table."""
    row = error_status(error.code)
    more = list(headers)
    status = status or row.http_status
    if row.retry and status in (429, 503):
        seconds = getattr(error, "retry_after_seconds", None) or 1
        more.append((b"retry-after", b"%d" % max(1, -int(-seconds // 1))))
    elif status == 401:
        more.append((b"www-authenticate", b'Bearer realm="carrel"'))
    return json_response(status, encode({"error": render_error(error, retry=row.retry)}), more)


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # A lone surrogate stands for a byte of a file name that is not UTF-8; msgspec rejects it.
        if not _SURROGATE.search(body):
            raise
        return msgspec.convert(json.loads(body), kind)


def encode(document: object) -> bytes:
    """Encode JSON; bytes of file names that are not UTF-8 become lone surrogates, as in Python."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _body_too_large(limit: int, size: int, *, is_configured: bool) -> LimitError:
    message = f"the body is too large: the limit is {limit} bytes"
    if is_configured:
        message += f" ({MAX_BODY_MB.name})"
    return LimitError("body", limit=limit, asked=size, message=message)
