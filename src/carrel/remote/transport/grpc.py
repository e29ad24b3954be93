"""`GrpcTransport`: requests to a service over gRPC."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

import grpc

from carrel.audit.event import Event
from carrel.errors import RequestError, UnreachableError
from carrel.remote.json_codec import parse, render
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.transport.api import (
    ByteSource,
    ExecutionEnded,
    ExecutionEvent,
    ExecutionOutput,
    ExecutionStarted,
)
from carrel.remote.transport.chunks import iter_chunks
from carrel.remote.transport.grpc_channel import timeout_error, translate_error
from carrel.remote.transport.grpc_connection import GrpcConnection, Message, ServiceSilentError
from carrel.remote.transport.retry import Retrier
from carrel.values import FileInfo

if TYPE_CHECKING:
    from carrel.workspace.archive.create import LeftOut
    from carrel.workspace.extract_limits import ExtractLimits


_QUIET = {"Changes", "ExecuteCommandStream", "ExecutePythonStream"}
"""Streams that are silent while nothing happens; that the service is gone is noticed by the connection."""
_LATEST = 2**62
"""Greater than the number of any record, and nothing that a message could not hold."""


class GrpcTransport:
    """Requests to one service over gRPC."""

    def __init__(self, line: GrpcConnection, *, retries: int) -> None:
        """Ask over *line*, and up to *retries* times again what was refused for now."""
        self.address = str(line.address)
        self._line = line
        self._patience = Retrier(retries, line.pause)

    # Sessions

    async def create(self, new: Mapping[str, Any]) -> Any:
        given = dict(new)
        limits = given.pop("limits", None)
        request = self._message(
            messages.CreateSessionRequest,
            session_id=given.get("session_id"),
            role=given.get("role"),
            labels=given.get("labels"),
            limits_json=None if limits is None else _dumped(limits),
            **(_lifetime(given["ttl_seconds"]) if "ttl_seconds" in given else {}),
        )
        return self._loaded((await self._ask("CreateSession", request)).session_json)

    async def ensure(self, session_id: str) -> Any:
        return await self._session("EnsureSession", session_id)

    async def session(self, session_id: str) -> Any:
        return await self._session("GetSession", session_id)

    async def _session(self, rpc: str, session_id: str) -> Any:
        request = self._message(messages.SessionRequest, session_id=session_id)
        return self._loaded((await self._ask(rpc, request)).session_json)

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        request = self._message(
            messages.ExtendSessionRequest, session_id=session_id, **_lifetime(ttl_seconds)
        )
        return self._loaded((await self._ask("ExtendSession", request)).session_json)

    async def sessions(self, after: str | None, count: int) -> Any:
        answer = await self._ask(
            "ListSessions", self._message(messages.ListSessionsRequest, after=after, count=count)
        )
        return {"sessions": self._loaded(answer.sessions_json), "next": answer.next or None}

    async def delete(self, session_id: str) -> None:
        await self._ask("DeleteSession", self._message(messages.SessionRequest, session_id=session_id))

    async def reset(self, session_id: str) -> None:
        await self._ask("ResetSession", self._message(messages.SessionRequest, session_id=session_id))

    # Files

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        request = self._message(
            messages.CallRequest,
            session_id=session_id,
            operation=operation,
            arguments_json=_dumped(arguments),
        )
        return self._loaded((await self._ask("Call", request)).result_json)

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        request = self._message(
            messages.FileReadStreamRequest, session_id=session_id, **_path(path), offset=offset, length=length
        )
        info: FileInfo | None = None
        content: list[bytes] = []
        async with aclosing(self._stream("FileReadStream", request)) as answers:
            async for answer in answers:
                if answer.WhichOneof("part") == "data":
                    content.append(answer.data)
                else:
                    info = parse(self._loaded(answer.info_json), FileInfo)
        if info is None:
            raise self._garbled()
        return info, b"".join(content)

    async def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        request = self._message(
            messages.FileReadStreamRequest, session_id=session_id, **_path(path), any_size=True
        )
        async with aclosing(self._stream("FileReadStream", request)) as answers:
            async for answer in answers:
                if answer.data:
                    yield answer.data

    async def write(
        self,
        session_id: str,
        path: str,
        content: ByteSource | bytes,
        *,
        overwrite: bool,
        parents: bool,
        if_version: str | None,
    ) -> FileInfo:
        start = self._message(
            messages.FileWriteStart,
            session_id=session_id,
            **_path(path),
            overwrite=overwrite,
            parents=parents,
            if_version=if_version,
        )
        answer = await self._send("FileWriteStream", messages.FileWriteStreamRequest, start, content)
        return parse(self._loaded(answer.info_json), FileInfo)

    async def archive(
        self, session_id: str, path: str, format: str, left_out: Callable[[LeftOut], None] | None
    ) -> AsyncGenerator[bytes]:
        from carrel.workspace.archive.create import LeftOut

        request = self._message(messages.ArchiveRequest, session_id=session_id, **_path(path), format=format)
        async with aclosing(self._stream("Archive", request)) as answers:
            async for answer in answers:
                if answer.WhichOneof("part") == "data":
                    yield answer.data
                elif left_out is not None:
                    left_out(parse(self._loaded(answer.left_out_json), LeftOut))

    async def extract(
        self,
        session_id: str,
        path: str,
        content: ByteSource | bytes,
        *,
        format: str | None,
        overwrite: bool,
        limits: ExtractLimits | None,
    ) -> Any:
        start = self._message(
            messages.ExtractStart,
            session_id=session_id,
            **_path(path),
            format=format,
            overwrite=overwrite,
            limits_json=None if limits is None else _dumped(render(limits)),
        )
        answer = await self._send("Extract", messages.ExtractRequest, start, content)
        return self._loaded(answer.result_json)

    async def changes(self, session_id: str, since: int, *, follow: bool) -> AsyncGenerator[Event]:
        request = self._message(
            messages.ChangesRequest, session_id=session_id, since=max(0, min(since, _LATEST)), follow=follow
        )
        async with aclosing(self._stream("Changes", request)) as answers:
            async for answer in answers:
                for each in parse(self._loaded(answer.events_json), list[Event]):
                    yield each

    # Running

    async def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[ExecutionEvent]:
        is_command = "command" in work
        kind = messages.ExecuteCommandStreamRequest if is_command else messages.ExecutePythonStreamRequest
        rpc = "ExecuteCommandStream" if is_command else "ExecutePythonStream"
        request = self._message(kind, session_id=session_id, **work)
        async with aclosing(self._stream(rpc, request)) as answers:
            async for answer in answers:
                yield self._step(answer)

    def _step(self, answer: Message) -> ExecutionEvent:
        match answer.WhichOneof("event"):
            case "execution_id":
                return ExecutionStarted(execution_id=answer.execution_id)
            case "stdout":
                return ExecutionOutput(stream="stdout", data=answer.stdout)
            case "stderr":
                return ExecutionOutput(stream="stderr", data=answer.stderr)
            case "result_json":
                return ExecutionEnded(result=self._loaded(answer.result_json))
        raise self._garbled()

    async def cancel(self, session_id: str, execution_id: str) -> None:
        request = self._message(
            messages.CancelExecutionRequest, session_id=session_id, execution_id=execution_id
        )
        await self._ask("CancelExecution", request)

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        request = self._message(
            messages.ListToolsRequest,
            session_id=session_id,
            context=_context(role),
            profile=profile,
            format=format,
        )
        return self._loaded((await self._ask("ListTools", request)).tools_json)

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        request = self._message(
            messages.CallToolRequest,
            session_id=session_id,
            context=_context(role),
            name=name,
            profile=profile,
            arguments_json=None if arguments is None else _dumped(arguments),
        )
        answer = await self._ask("CallTool", request)
        document = {"success": answer.success, "metadata": self._loaded(answer.metadata_json or "{}")}
        match answer.WhichOneof("payload"):
            case "output":
                document["output"] = answer.output
            case "output_json":
                document["output"] = self._loaded(answer.output_json)
            case "data_json":
                document["data"] = self._loaded(answer.data_json)
        return document | ({"error": answer.error} if answer.HasField("error") else {})

    async def pause(self, seconds: float) -> None:
        await self._line.pause(seconds)

    async def close(self) -> None:
        await self._line.close()

    # What all of these do

    def _message(self, kind: Callable[..., Message], **given: Any) -> Message:
        """A request; what is `None` is left out.

        Raises:
            RequestError: Something in it cannot be sent.
        """
        try:
            return kind(**{name: value for name, value in given.items() if value is not None})
        except (TypeError, ValueError) as error:
            raise RequestError(f"that cannot be sent to a service over gRPC: {error}") from None

    async def _ask(self, rpc: str, request: Message) -> Message:
        async def asked() -> Message:
            with self._translated():
                return await self._line.ask(rpc, request)

        return await self._patience.ask(asked)

    def _stream(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        return self._patience.stream(lambda: self._answers(rpc, request))

    async def _answers(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        with self._translated():
            seconds = None if rpc in _QUIET else self._line.timeout_seconds
            async with aclosing(self._line.stream(rpc, request, seconds=seconds)) as answers:
                async for answer in answers:
                    yield answer

    async def _send(
        self, rpc: str, kind: Callable[..., Message], start: Message, content: ByteSource | bytes
    ) -> Message:
        """Send *start*, *content* and the end of it, again only where all of it can be sent again."""

        async def sent() -> Message:
            with self._translated():
                return await self._line.send(rpc, _parts(kind, start, content))

        return await self._patience.ask(sent) if isinstance(content, bytes) else await sent()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as failure:
            raise translate_error(
                failure, self._line.address, timeout_seconds=self._line.timeout_seconds
            ) from None
        except ServiceSilentError:
            raise timeout_error(self._line.address, self._line.timeout_seconds) from None

    def _loaded(self, text: str) -> Any:  # Any: whatever JSON says
        try:
            return json.loads(text)
        except ValueError:
            raise self._garbled() from None

    def _garbled(self) -> UnreachableError:
        return UnreachableError(f"the service at {self.address} gave an answer that cannot be read")


def _parts(kind: Callable[..., Message], start: Message, content: ByteSource | bytes) -> Iterator[Message]:
    yield kind(start=start)
    for piece in iter_chunks(content):
        for part in iter_chunks(piece):
            yield kind(data=part)
    yield kind(end=True)


def _path(path: str) -> dict[str, bytes]:
    """A path in a request: in bytes, since it may be no UTF-8, or empty where that stands for all."""
    return {"path_bytes": path.encode("utf-8", "surrogateescape")}


def _lifetime(ttl_seconds: float | None) -> dict[str, Any]:
    return {"for_ever": True} if ttl_seconds is None else {"ttl_seconds": ttl_seconds}


def _context(role: str | None) -> messages.Context | None:
    return None if role is None else messages.Context(role=role)


def _dumped(document: Any) -> str:
    """JSON in ASCII, which can say what a string of protobuf cannot.

    Raises:
        RequestError: It is nothing that JSON can say.
    """
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"that cannot be sent to a service: {error}") from None
