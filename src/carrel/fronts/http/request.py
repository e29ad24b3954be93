"""`Request` and `Response`: what a client sent, who it is, and what is sent back."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, MutableMapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

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

Message = MutableMapping[str, Any]  # Any: what ASGI says
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[bytes, bytes]]
T = TypeVar("T")

STALLED_SECONDS = 60
"""How long a client may take to send the next piece of a body."""
MIN_PROGRESS_BYTES = 2**12
"""Less than this in that time is no piece, unless it is the last."""
CLIENT_CLOSED_REQUEST = 499
"""Written down for a client that did not wait for its answer."""
DRAIN_SECONDS = 10
"""How long a client is listened to that was answered before it had sent all."""
JSON = b"application/json"
VARY = (b"vary", b"Accept")
_NOT_KEPT = (b"cache-control", b"no-store")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class Response(NamedTuple):
    """A whole answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""


PendingResponse = Response | Coroutine[Any, Any, None]
"""How far a request came without waiting: to its answer, or to what gives one when it is awaited."""


class ClientDisconnected(Exception):
    """The client is gone, so nobody wants the answer."""


class Request:
    """One request."""

    __slots__ = (
        "_headers",
        "_is_left",
        "_is_read",
        "_is_told",
        "_receive",
        "_send",
        "app",
        "began",
        "caller",
        "is_head",
        "is_started",
        "more_headers",
        "request_id",
        "route",
        "scope",
        "sent_bytes",
        "status",
        "step",
        "ticket",
        "values",
    )

    def __init__(self, app: Application, scope: Scope) -> None:
        self.app = app
        self.scope = scope
        self.began = time.perf_counter()
        self.route: Route | None = None
        self.values: list[str] = []
        """The texts of the names in the path."""
        self.caller: Principal | None = None
        self.ticket: AdmissionTicket | None = None
        """Where it is counted while it runs."""
        self.request_id = ""
        self.more_headers: list[tuple[bytes, bytes]] = []
        """Sent with the answer, whatever it is."""
        self.is_head = scope["method"] == "HEAD"
        self.step: PendingResponse = Response(500)
        """What `Application.begin` came to."""
        self.is_started = False
        self.status = 0
        self.sent_bytes = 0
        self._receive: Receive
        self._send: Send
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self._is_left = False
        self._is_told = False
        self._is_read = False

    def connect(self, receive: Receive, send: Send) -> None:
        """Let what follows wait for the client."""
        self._receive = receive
        self._send = send

    # What was asked

    @property
    def who(self) -> Principal:
        """The caller, in the role that the request chooses.

        Raises:
            RoleDeniedError: The caller may not choose it.
        """
        assert self.caller is not None  # noqa: S101  # only open routes have none, and they do not ask
        return self.caller.acting_as(self.header(b"carrel-role"))

    @property
    def session_id(self) -> str:
        """The session that the request is about."""
        return self.values[0]

    def open_session(self) -> AbstractAsyncContextManager[CallerSession]:
        """The session of the request, open for its caller."""
        return self.app.service.session_access.open(self.who, self.session_id)

    def get_session_if_open(self) -> CallerSession | None:
        """The same, for as long as nothing waits; `None` if the session is not open yet."""
        return self.app.service.session_access.get_if_open(self.who, self.session_id)

    def header(self, name: bytes) -> str | None:
        """The text of a header; *name* in small letters."""
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def content_length(self) -> int | None:
        """How many bytes the body has, if that was said beforehand."""
        length = self.header(b"content-length")
        return int(length) if length is not None and length.isdecimal() else None

    @property
    def peer(self) -> str | None:
        """The address of the other side."""
        client = self.scope.get("client")
        return client[0] if client else None

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Everything that was sent before the body."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.scope["headers"]]

    def has_only(self, names: frozenset[bytes]) -> bool:
        """Whether there are no other headers than *names*, and none of them twice."""
        return names.issuperset(self._headers) and len(self._headers) == len(self.scope["headers"])

    def repeats(self, name: bytes) -> bool:
        """Whether a header was sent more than once."""
        sent = self.scope["headers"]
        return len(self._headers) < len(sent) and sum(each == name for each, _ in sent) > 1

    def prefers(self, media_type: str, *others: str) -> bool:
        """Whether the client wants an answer of *media_type* more than one of any of the *others*.

        An answer that depends on this is sent with `VARY`.
        """
        if b"accept" not in self._headers:
            return False
        sent = [value for name, value in self.scope["headers"] if name == b"accept"]
        return prefers(b",".join(sent).decode("latin-1"), media_type, others)

    def query(self, kind: type[T]) -> T:
        """What the query asks.

        Raises:
            RequestError: It makes no sense.
        """
        return parse_query(self.scope["query_string"], kind)

    async def document(self, kind: type[T]) -> T:
        """What the body says as JSON.

        Raises:
            RequestError: It is no JSON, or not what is wanted; the message says where.
            LimitError: It is more than may be sent, or holds too many values.
        """
        count = ValueCounter()
        pieces = []
        async for piece in self.pieces(MAX_BYTES):
            count.add(piece)
            pieces.append(piece)
        body = b"".join(pieces) or b"{}"
        try:
            return await convert_document(len(body), lambda: _decoded(body, kind))
        except (ValueError, RecursionError) as error:
            raise RequestError(f"the body cannot be used: {error}") from None

    async def body(self, most: int | None = None) -> bytes:
        """The whole body.

        Raises:
            LimitError: It is more than may be sent, or than *most* bytes.
            GoneError: The client went away before its end.
        """
        return b"".join([piece async for piece in self.pieces(most)])

    async def pieces(self, most: int | None = None) -> AsyncIterator[bytes]:
        """The body as it comes, or not even *most* bytes of it.

        Raises:
            LimitError: It is more than may be sent, or does not come.
            GoneError: The client went away before its end.
        """
        allowed = self.app.settings.max_body_bytes
        most = allowed if most is None else min(most, allowed)
        length = self.content_length
        if length is not None and length > most:
            raise _body_too_large(most, length)
        size, due, deadline = 0, 0, 0.0
        while not self._is_read:
            if size >= due:
                due = size + MIN_PROGRESS_BYTES
                deadline = asyncio.get_running_loop().time() + STALLED_SECONDS
            message = await self._next(deadline)
            if message["type"] != "http.request":
                raise ClientDisconnected
            piece: bytes = message.get("body", b"")
            self._is_read = not message.get("more_body", False)
            size += len(piece)
            if size > most:
                raise _body_too_large(most, size)
            if piece:
                yield piece

    async def _next(self, deadline: float) -> Message:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._receive()
        except TimeoutError:
            raise LimitError(
                "time",
                limit=STALLED_SECONDS,
                asked=None,
                message=f"the body of the request did not go on for {STALLED_SECONDS} seconds",
            ) from None

    async def gone(self) -> None:
        """Wait until the client goes away."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # What is answered

    async def json(self, status: int, document: object, headers: Headers = ()) -> None:
        """Answer with a JSON document."""
        await self.json_text(status, encode(document), headers)

    async def json_text(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Answer with what `encode` made of a JSON document, where that was worth a thread."""
        await self.give(json_response(status, body, headers))

    async def empty(self, status: int = 204, headers: Headers = ()) -> None:
        """Answer without a body."""
        await self.give(Response(status, tuple(headers)))

    async def error(self, error: CarrelError, *, status: int | None = None, headers: Headers = ()) -> None:
        """Answer with an error, with the status that the table has for it unless *status* is another."""
        await self.give(error_response(error, status=status, headers=headers))

    async def answer(self, status: int, body: bytes, headers: Headers) -> None:
        """Answer with a whole body."""
        await self.give(whole_response(status, body, headers))

    async def give(self, answer: Response) -> None:
        """Answer."""
        await self.begin(answer.status, answer.headers)
        await self.finish(answer.body)

    async def go_on(self, step: PendingResponse) -> None:
        """Answer, or wait until that is done."""
        if isinstance(step, Response):
            await self.give(step)
        else:
            await step

    async def begin(self, status: int, headers: Headers) -> None:
        """Send the head of an answer; the body follows by `write` and `finish`."""
        self.is_started = True
        self.status = status
        if not self._is_read and self.scope["method"] in ("PUT", "POST") and self._has_body():
            # What is still to come is not wanted, and must not be taken for the next request.
            self.more_headers.append((b"connection", b"close"))
            self._is_left = True
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*self.more_headers, *headers],
            }
        )

    def _has_body(self) -> bool:
        return self._headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in self._headers

    async def write(self, piece: bytes) -> None:
        """Send a piece of the body; a client that takes nothing of it goes away (see `protocol`)."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        self.sent_bytes += len(piece)

    async def finish(self, piece: bytes = b"") -> None:
        """Send the last piece of the body."""
        self.sent_bytes += len(piece)
        await self._send({"type": "http.response.body", "body": piece, "more_body": self._is_left})
        self._is_told = True

    async def leave(self) -> None:
        """Take for a while what a client still sends that was answered already.

        A connection that is closed with something unread is reset, and the answer may be lost with it.
        """
        if self._is_left and self._is_told:
            await self._drain()
            await self._send({"type": "http.response.body", "body": b""})

    async def _drain(self) -> None:
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while size <= self.app.settings.max_body_bytes:
                    message = await self._receive()
                    size += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return

    async def stream(self, pieces: AsyncIterator[bytes]) -> None:
        """Send a body piece by piece, until its end or until the client goes away.

        Raises:
            GoneError: The client went away.
        """
        if self.is_head:
            await self.finish()
            return
        watch = asyncio.create_task(self.gone())
        try:
            async for piece in pieces:
                if watch.done():
                    raise ClientDisconnected
                await self.write(piece)
            await self.finish()
        finally:
            watch.cancel()

    async def delegate(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        """Let another application answer."""

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.is_started = True
                self.status = message["status"]
                message["headers"] = [*self.more_headers, *message.get("headers", ())]
            elif message["type"] == "http.response.body":
                self.sent_bytes += len(message.get("body", b""))
            await self._send(message)

        await app(self.scope, self._receive, send)


def whole_response(status: int, body: bytes, headers: Headers) -> Response:
    """An answer with a body of which all is known."""
    if status in (204, 304):
        return Response(status, tuple(headers))
    return Response(status, (*headers, (b"content-length", b"%d" % len(body))), body)


def json_response(status: int, body: bytes, headers: Headers = ()) -> Response:
    """A JSON document, encoded."""
    return whole_response(status, body, ((b"content-type", JSON), _NOT_KEPT, *headers))


def error_response(error: CarrelError, *, status: int | None = None, headers: Headers = ()) -> Response:
    """An error, with the status that the table has for it unless *status* is another."""
    row = error_status(error.code)
    more = list(headers)
    status = status or row.http_status
    if row.retry and status in (429, 503):
        seconds = getattr(error, "retry_after_seconds", None) or 1
        more.append((b"retry-after", b"%d" % max(1, -int(-seconds // 1))))
    elif status == 401:
        more.append((b"www-authenticate", b'Bearer realm="carrel"'))
    return json_response(status, encode({"error": render_error(error, retry=row.retry)}), more)


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Half a surrogate is no UTF-8, but stands for a byte of a name that is none either. Of one at the end
        # of a body msgspec says that there should be more.
        if not _SURROGATE.search(body):
            raise
        return msgspec.convert(json.loads(body), kind)


def encode(document: object) -> bytes:
    """JSON; names that are no UTF-8 stand in it as they do in Python."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _body_too_large(most: int, asked: int) -> LimitError:
    return LimitError(
        "body", limit=most, asked=asked, message=f"the body is too large: the limit is {most} bytes"
    )
