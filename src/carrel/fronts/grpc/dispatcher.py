"""`Dispatcher`: authenticate, limit, log and answer every call.

To the library every method is a stream, also one that takes a single message: a message of a stream is not
read before it is asked for, which is after the caller is known. Until then gRPC holds one window of it.

Not covered: the name that the service was called by. The library does not tell the `:authority` of a call,
so the rule for `Host` cannot hold here. No web page gets here by a name of its own all the same: what a
browser says of the page is refused as over HTTP, and nothing is answered without `te: trailers`, which no
page can send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
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
"""How long a client may take to take the next piece."""
LAST_SECONDS = 1.0
"""How long a call that is ended may take to tell so."""

MAX_READING = 4
"""Most messages of one caller that are read at one time: each takes several times its size."""
MAX_FIELDS = 2**14
"""Most fields of a message, each argument and each variable of the environment counted."""
_FIXED_BYTES = {1: 8, 5: 4}
"""Sizes of numbers by their wire type; of a type that does not exist, the parser reports it."""

RpcContext = grpc.aio.ServicerContext[Any, Any]  # Any: messages of all kinds


class Dispatcher:
    """Lets calls in, and errors out as statuses."""

    def __init__(self, service: Service, callers: Authenticator, rates: RateLimiter, relay: Relay) -> None:
        self._service = service
        self._relay = relay
        self._callers = callers
        self._rates = rates
        self._stopping = asyncio.Event()
        self._running: set[asyncio.Task[Any]] = set()
        self._reading: WeakValueDictionary[tuple[str | None, str], asyncio.Semaphore] = WeakValueDictionary()
        """Who may read a message now, by tenant and name of the caller."""

    async def close(self, grace: float) -> None:
        """Let nobody in any more; what still runs after *grace* seconds is ended, and told why."""
        self._stopping.set()
        late = await _ended(self._running, grace)
        for task in late:
            task.cancel()
        await _ended(late, LAST_SECONDS)

    async def require_known(self, name: str, context: RpcContext) -> None:
        """Do nothing if somebody calls who is known; otherwise the call *name* ends here."""
        await self._answered(name, context, lambda visit: self._let_in(context, visit))

    def handler(self, method: MethodDescriptor, function: Handler) -> grpc.RpcMethodHandler[Any, Any]:
        """What answers *method*: *function*, which is given calls by somebody who is known."""
        parse, render = _parser(method), GetMessageClass(method.output_type).SerializeToString
        name = f"/{method.containing_service.full_name}/{method.name}"
        if method.server_streaming:
            return grpc.stream_stream_rpc_method_handler(
                self._outflow(name, function), request_deserializer=parse, response_serializer=render
            )
        answer = self._inflow if method.client_streaming else self._unary
        return grpc.stream_unary_rpc_method_handler(
            answer(name, function), request_deserializer=parse, response_serializer=render
        )

    def _unary(self, name: str, function: Handler) -> Callable[[Any, RpcContext], Awaitable[Any]]:
        async def answer(requests: Any, context: RpcContext) -> Any:
            async def work(visit: CallLog) -> Any:
                call = await self._let_in(context, visit)
                request = await self._only(requests, call, visit)
                return await with_timeout(
                    function(call, request), self._service.settings.serve.timeout_seconds
                )

            return await self._answered(name, context, work)

        return answer

    def _inflow(self, name: str, function: Handler) -> Callable[[Any, RpcContext], Awaitable[Any]]:
        async def answer(requests: Any, context: RpcContext) -> Any:
            async def work(visit: CallLog) -> Any:
                call = await self._let_in(context, visit)
                return await function(call, aiter(requests))

            return await self._answered(name, context, work)

        return answer

    def _outflow(self, name: str, function: Handler) -> Callable[[Any, RpcContext], Awaitable[None]]:
        async def answer(requests: Any, context: RpcContext) -> None:
            async def work(visit: CallLog) -> None:
                call = await self._let_in(context, visit)
                request = await self._only(requests, call, visit)
                known = self._callers.revalidating(_authorization(_metadata(context)))
                async with known, aclosing(function(call, request)) as messages:
                    async for message in messages:
                        await _send(context, message)

            await self._answered(name, context, work)

        return answer

    async def _only(self, requests: Any, call: RpcCall, visit: CallLog) -> Any:  # Any: messages
        """The one message of a call; gRPC holds no more than a window of it before its turn comes.

        Raises:
            RequestError: There is none, or it cannot be read.
            LimitError: It does not come, or has too many fields.
        """
        caller = (call.caller.tenant, call.caller.name)
        turns = self._reading.setdefault(caller, asyncio.Semaphore(MAX_READING))
        async with turns:
            request = await next_message(aiter(requests))
        if request is None:
            raise RequestError("the call ended without a message")
        if isinstance(request, CarrelError):
            raise request
        visit.session_id = getattr(request, "session_id", "")
        return request

    async def _answered(
        self, name: str, context: RpcContext, work: Callable[[CallLog], Awaitable[Any]]
    ) -> Any:
        """What *work* gives; what it raises becomes a status."""
        client = self._relay.find(context.peer())
        visit = CallLog(method=name, peer=None if client is None else client.address)
        with visit.logged(), self._counted(visit):
            try:
                return await work(visit)
            except CarrelError as error:
                refused = error
            except asyncio.CancelledError:
                if context.cancelled() or not self._stopping.is_set():
                    visit.status = grpc.StatusCode.CANCELLED.name
                    raise
                refused = stopping_error()
            except Exception as error:
                # A mistake of ours, which no caller can do anything about; what it was is for the log.
                self._service.logger.log_failure("grpc.failed", error, method=name)
                refused = CarrelError("the service failed unexpectedly")
            refusal = RpcStatus.of(refused, _value(_metadata(context), "user-agent") or "")
            visit.status, visit.code = refusal.status.name, refused.code
        return await context.abort(refusal.status, refusal.details, refusal.metadata)

    @contextmanager
    def _counted(self, visit: CallLog) -> Iterator[None]:
        """Know of a call while it runs."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)
            if visit.ticket is not None:
                visit.ticket.release()

    async def _let_in(self, context: RpcContext, visit: CallLog) -> RpcCall:
        """The call, once it is known who makes it.

        Raises:
            UnauthenticatedError: Nobody that we know.
            LimitError: The caller calls too often, or there is no place.
            StoppingError: The service is about to end.
        """
        if self._stopping.is_set():
            raise stopping_error()
        visit.ticket = self._service.admission.admit()
        metadata = _metadata(context)
        caller = await self._callers.authenticate(
            authorization=_authorization(metadata),
            peer_is_local=self._callers.is_local(visit.peer, metadata),
        )
        if (client := self._relay.find(context.peer())) is not None:
            client.authenticated()
        visit.caller = caller
        visit.ticket.assign(caller)
        set_current_tenant(caller)
        self._rates.take(caller)
        return RpcCall(
            service=self._service,
            caller=caller,
            role=_value(metadata, ROLE_METADATA) or None,
            is_stopping=self._stopping.is_set,
        )


async def _ended(tasks: set[asyncio.Task[Any]], seconds: float) -> set[asyncio.Task[Any]]:
    """Those of *tasks* that have not ended after so many *seconds*."""
    return (await asyncio.wait(tasks, timeout=seconds))[1] if tasks else set()


def _parser(method: MethodDescriptor) -> Callable[[bytes], Message | CarrelError]:
    """Reads a message; what cannot be read is told where the call is answered, not by the library."""
    kind = GetMessageClass(method.input_type)

    def parse(data: bytes) -> Message | CarrelError:
        try:
            require_few_fields(data)
            return kind.FromString(data)
        except (DecodeError, IndexError):
            return RequestError(f"the bytes are no {method.input_type.name}")
        except LimitError as error:
            return error

    return parse


def require_few_fields(data: bytes) -> None:
    """Refuse a message with so many elements of lists and maps that parsing it would block the event loop.

    Raises:
        LimitError: It has more than `MAX_FIELDS`.
        IndexError: It ends in the middle of a number.
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
    """The number that begins at *position*, and where the next field begins.

    Raises:
        IndexError: It does not end.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise IndexError(position)


async def _send(context: RpcContext, message: Message) -> None:
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            await context.write(message)
    except TimeoutError:
        raise LimitError(
            "time",
            limit=STALLED_SECONDS,
            asked=None,
            message=f"nothing was taken for {STALLED_SECONDS} s",
        ) from None


def _metadata(context: RpcContext) -> list[tuple[str, str]]:
    """What the call says of itself, as texts."""
    metadata = context.invocation_metadata() or ()
    return [(name, value if isinstance(value, str) else value.decode("latin-1")) for name, value in metadata]


def _value(metadata: list[tuple[str, str]], name: str) -> str | None:
    return next((value for each, value in metadata if each == name), None)


def _authorization(metadata: list[tuple[str, str]]) -> str | None:
    return single_authorization([value for name, value in metadata if name == "authorization"])
