"""`Dispatcher`: authenticate, limit, log and answer every call.

All methods are registered as streams, even those with a single message: a message of a stream is read only
when the handler asks for it, which is after the caller has authenticated. Until then gRPC holds at most one
flow-control window of it.

Not covered: the host name in a call. The library does not expose `:authority`, so the check of `Host` does
not exist here. Web pages are kept out all the same: the headers by which browsers identify a page are refused
as over HTTP, and no call is answered without `te: trailers`, which no page can send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from typing import Any
from weakref import WeakValueDictionary

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from carrel.errors import CarrelError, LimitError, RequestError
from carrel.fronts.event_loop import with_timeout
from carrel.fronts.grpc.call import RpcCall, stopping_error
from carrel.fronts.grpc.call_log import CallLog
from carrel.fronts.grpc.errors import RpcStatus
from carrel.fronts.grpc.methods import Handler
from carrel.fronts.grpc.relay import Relay
from carrel.fronts.grpc.streams import next_message
from carrel.remote.transport.grpc_channel import ROLE_METADATA
from carrel.service.authentication.authenticator import Authenticator, single_authorization
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.service.thread_pools import set_current_tenant

STALLED_SECONDS = 60
"""How long a client may take to read the next message."""
LAST_SECONDS = 1.0
"""How long a cancelled call may take to send its status."""

MAX_READING = 4
"""Most messages read at one time for one caller: each takes several times its size in memory."""
MAX_FIELDS = 2**14
"""Most fields of a message; each argument and each environment variable counts."""
_FIXED_BYTES = {1: 8, 5: 4}
"""Size of fixed-size fields by wire type; the parser reports unknown types."""

RpcContext = grpc.aio.ServicerContext[Any, Any]  # Any: messages of all kinds


class Dispatcher:
    """Authenticates calls, passes them to their handlers, and turns errors into statuses."""

    def __init__(self, service: Service, callers: Authenticator, rates: RateLimiter, relay: Relay) -> None:
        self._service = service
        self._relay = relay
        self._callers = callers
        self._rates = rates
        self._stopping = asyncio.Event()
        self._running: set[asyncio.Task[Any]] = set()
        self._read_slots: WeakValueDictionary[tuple[str | None, str], asyncio.Semaphore] = (
            WeakValueDictionary()
        )
        """Limits concurrent reading, by tenant and name of the caller."""

    async def close(self, grace: float) -> None:
        """Refuse new calls, and cancel those that still run after *grace* seconds; their status says why."""
        self._stopping.set()
        late = await _wait_for(self._running, grace)
        for task in late:
            task.cancel()
        await _wait_for(late, LAST_SECONDS)

    async def require_authenticated(self, name: str, context: RpcContext) -> None:
        """End the call of method *name* unless its caller authenticates."""
        await self._answer(name, context, lambda log: self._authenticate(context, log))

    def handler(self, method: MethodDescriptor, function: Handler) -> grpc.RpcMethodHandler[Any, Any]:
        """Return the handler of *method*, which passes authenticated calls to *function*."""
        parse, render = _parser(method), GetMessageClass(method.output_type).SerializeToString
        name = f"/{method.containing_service.full_name}/{method.name}"
        if method.server_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._server_stream(name, function), request_deserializer=parse, response_serializer=render
            )
        answer = self._client_stream if method.client_streaming else self._unary
        return grpc.stream_unary_rpc_method_handler(
            answer(name, function), request_deserializer=parse, response_serializer=render
        )

    def _unary(self, name: str, function: Handler) -> Callable[[Any, RpcContext], Awaitable[Any]]:
        async def answer(requests: Any, context: RpcContext) -> Any:
            async def work(log: CallLog) -> Any:
                call = await self._authenticate(context, log)
                request = await self._read_single(requests, call, log)
                return await with_timeout(
                    function(call, request), self._service.settings.serve.timeout_seconds
                )

            return await self._answer(name, context, work)

        return answer

    def _client_stream(self, name: str, function: Handler) -> Callable[[Any, RpcContext], Awaitable[Any]]:
        async def answer(requests: Any, context: RpcContext) -> Any:
            async def work(log: CallLog) -> Any:
                call = await self._authenticate(context, log)
                return await function(call, aiter(requests))

            return await self._answer(name, context, work)

        return answer

    def _server_stream(self, name: str, function: Handler) -> Callable[[Any, RpcContext], Awaitable[None]]:
        async def answer(requests: Any, context: RpcContext) -> None:
            async def work(log: CallLog) -> None:
                call = await self._authenticate(context, log)
                request = await self._read_single(requests, call, log)
                known = self._callers.revalidating(_authorization(_metadata(context)))
                async with known, aclosing(function(call, request)) as messages:
                    has_headers = False
                    async for message in messages:
                        await _send(context, message, has_headers=has_headers)
                        has_headers = True

            await self._answer(name, context, work)

        return answer

    async def _read_single(self, requests: Any, call: RpcCall, log: CallLog) -> Any:  # Any: messages
        """Read the single message of a call; until its turn gRPC holds at most one window of it.

        Raises:
            RequestError: The message is missing or malformed.
            LimitError: It does not arrive in time, or has too many fields.
        """
        caller = (call.caller.tenant, call.caller.name)
        turns = self._read_slots.setdefault(caller, asyncio.Semaphore(MAX_READING))
        async with turns:
            request = await next_message(aiter(requests))
        if request is None:
            raise RequestError("the call ended without a message")
        if isinstance(request, CarrelError):
            raise request
        log.session_id = getattr(request, "session_id", "")
        return request

    async def _answer(self, name: str, context: RpcContext, work: Callable[[CallLog], Awaitable[Any]]) -> Any:
        """Return the result of *work*, or abort the call with the status of its error."""
        client = self._relay.find(context.peer())
        log = CallLog(method=name, peer=None if client is None else client.address)
        with log.logged(), self._tracked(log):
            try:
                return await work(log)
            except CarrelError as error:
                refused = error
            except asyncio.CancelledError:
                if context.cancelled() or not self._stopping.is_set():
                    log.status = grpc.StatusCode.CANCELLED.name
                    raise
                refused = stopping_error()
            except Exception as error:
                # A bug: its details belong in the log, not in the answer.
                self._service.logger.log_failure("grpc.failed", error, method=name)
                refused = CarrelError("the service failed unexpectedly")
            refusal = RpcStatus.of(refused, _value(_metadata(context), "user-agent") or "")
            log.status, log.code = refusal.status.name, refused.code
        return await context.abort(refusal.status, refusal.details, refusal.metadata)

    @contextmanager
    def _tracked(self, log: CallLog) -> Iterator[None]:
        """Register the call while it runs."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)
            if log.ticket is not None:
                log.ticket.release()

    async def _authenticate(self, context: RpcContext, log: CallLog) -> RpcCall:
        """Authenticate and admit the caller, and return the call.

        Raises:
            UnauthenticatedError: The key is missing or invalid.
            LimitError: The caller calls too often, or too many calls are running.
            StoppingError: The service is stopping.
        """
        if self._stopping.is_set():
            raise stopping_error()
        log.ticket = self._service.admission.admit()
        metadata = _metadata(context)
        caller = await self._callers.authenticate(
            authorization=_authorization(metadata),
            peer_is_local=self._callers.is_local(log.peer, metadata),
        )
        if (client := self._relay.find(context.peer())) is not None:
            client.authenticated()
        log.caller = caller
        log.ticket.assign(caller)
        set_current_tenant(caller)
        self._rates.take(caller)
        return RpcCall(
            service=self._service,
            caller=caller,
            role=_value(metadata, ROLE_METADATA) or None,
            is_stopping=self._stopping.is_set,
        )


async def _wait_for(tasks: set[asyncio.Task[Any]], seconds: float) -> set[asyncio.Task[Any]]:
    """Wait at most *seconds* for *tasks*, and return those that still run."""
    return (await asyncio.wait(tasks, timeout=seconds))[1] if tasks else set()


def _parser(method: MethodDescriptor) -> Callable[[bytes], Message | CarrelError]:
    """Return a parser that returns its errors, so that the dispatcher reports them instead of the library."""
    kind = GetMessageClass(method.input_type)

    def parse(data: bytes) -> Message | CarrelError:
        try:
            require_few_fields(data)
            return kind.FromString(data)
        except (DecodeError, IndexError):
            return RequestError(f"the message is not a valid {method.input_type.name}")
        except LimitError as error:
            return error

    return parse


def require_few_fields(data: bytes) -> None:
    """Refuse a message with so many repeated fields that parsing it would block the event loop.

    Raises:
        LimitError: It has more than `MAX_FIELDS`.
        IndexError: It is truncated.
    """
    position = 0
    for _ in range(MAX_FIELDS):
        if position >= len(data):
            return
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                _, position = _varint(data, position)
            case 2:
                size, position = _varint(data, position)
                position += size
            case kind:
                position += _FIXED_BYTES.get(kind, len(data))
    if position < len(data):
        message = f"the message holds too many fields: the limit is {MAX_FIELDS}"
        raise LimitError("body", limit=MAX_FIELDS, asked=None, message=message)


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the varint at *position* and the position after it.

    Raises:
        IndexError: It is truncated.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError(position)


async def _send(context: RpcContext, message: Message, *, has_headers: bool) -> None:
    """Send *message*, and the headers with it unless they were sent."""
    write = context.write(message)
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            await (write if has_headers else _finished(write))
    except TimeoutError:
        raise LimitError(
            "time",
            limit=STALLED_SECONDS,
            asked=None,
            message=f"the client read nothing for {STALLED_SECONDS} s",
        ) from None


async def _finished(write: Coroutine[Any, Any, None]) -> None:  # Any: what asyncio itself sends
    """Wait for *write*, for a moment even if cancelled.

    The library notes only at its end that the headers are sent. Without that it sends them again with the
    status, which fails, and the client hears nothing.
    """
    writing = asyncio.ensure_future(write)
    try:
        await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait([writing], timeout=LAST_SECONDS)
        writing.cancel()
        raise


def _metadata(context: RpcContext) -> list[tuple[str, str]]:
    """Return the metadata of a call as text."""
    metadata = context.invocation_metadata() or ()
    return [(name, value if isinstance(value, str) else value.decode("latin-1")) for name, value in metadata]


def _value(metadata: list[tuple[str, str]], name: str) -> str | None:
    return next((value for each, value in metadata if each == name), None)


def _authorization(metadata: list[tuple[str, str]]) -> str | None:
    return single_authorization([value for name, value in metadata if name == "authorization"])
