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
    ToolEvent,
)
from carrel.remote.transport.chunks import iter_chunks
from carrel.remote.transport.grpc_channel import timeout_error, translate_error
from carrel.remote.transport.grpc_connection import GrpcConnection, Message, ServiceSilentError
from carrel.remote.transport.retry import Retrier
from carrel.values import FileInfo

if TYPE_CHECKING:
    from carrel.workspace.archive.create import LeftOut
    from carrel.workspace.extract_limits import ExtractLimits


_IDLE_STREAMS = {"CallToolStream", "Changes", "ExecuteCommandStream", "ExecutePythonStream"}
"""Streams without a read timeout, since they may be idle; keepalives notice a dead service."""
_MAX_SEQUENCE = 2**62
"""Greater than any sequence number, and still within a 64-bit integer."""


class GrpcTransport:
    """Requests to one service over gRPC."""

    def __init__(self, connection: GrpcConnection, *, retries: int) -> None:
        """Send requests over *connection*, and retry up to *retries* times when the service is busy."""
        self.address = str(connection.address)
        self._connection = connection
        self._retrier = Retrier(retries, connection.pause)

    # Sessions

    async def create(self, new: Mapping[str, Any]) -> Any:
        given = dict(new)
        limits = given.pop("limits", None)
        request = self._request(
            messages.CreateSessionRequest,
            session_id=given.get("session_id"),
            role=given.get("role"),
            labels=given.get("labels"),
            limits_json=None if limits is None else _render_json(limits),
            **(_lifetime(given["ttl_seconds"]) if "ttl_seconds" in given else {}),
        )
        return self._parse_json((await self._call("CreateSession", request)).session_json)

    async def ensure(self, session_id: str) -> Any:
        return await self._session("EnsureSession", session_id)

    async def session(self, session_id: str) -> Any:
        return await self._session("GetSession", session_id)

    async def _session(self, rpc: str, session_id: str) -> Any:
        request = self._request(messages.SessionRequest, session_id=session_id)
        return self._parse_json((await self._call(rpc, request)).session_json)

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        request = self._request(
            messages.ExtendSessionRequest, session_id=session_id, **_lifetime(ttl_seconds)
        )
        return self._parse_json((await self._call("ExtendSession", request)).session_json)

    async def sessions(self, after: str | None, count: int) -> Any:
        answer = await self._call(
            "ListSessions", self._request(messages.ListSessionsRequest, after=after, count=count)
        )
        return {"sessions": self._parse_json(answer.sessions_json), "next": answer.next or None}

    async def delete(self, session_id: str) -> None:
        await self._call("DeleteSession", self._request(messages.SessionRequest, session_id=session_id))

    async def reset(self, session_id: str) -> None:
        await self._call("ResetSession", self._request(messages.SessionRequest, session_id=session_id))

    # Files

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        request = self._request(
            messages.CallRequest,
            session_id=session_id,
            operation=operation,
            arguments_json=_render_json(arguments),
        )
        return self._parse_json((await self._call("Call", request)).result_json)

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        request = self._request(
            messages.FileReadStreamRequest, session_id=session_id, **_path(path), offset=offset, length=length
        )
        info: FileInfo | None = None
        content: list[bytes] = []
        async with aclosing(self._stream("FileReadStream", request)) as responses:
            async for response in responses:
                if response.WhichOneof("part") == "data":
                    content.append(response.data)
                else:
                    info = parse(self._parse_json(response.info_json), FileInfo)
        if info is None:
            raise self._invalid_response()
        return info, b"".join(content)

    async def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        request = self._request(
            messages.FileReadStreamRequest, session_id=session_id, **_path(path), any_size=True
        )
        async with aclosing(self._stream("FileReadStream", request)) as responses:
            async for response in responses:
                if response.data:
                    yield response.data

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
        start = self._request(
            messages.FileWriteStart,
            session_id=session_id,
            **_path(path),
            overwrite=overwrite,
            parents=parents,
            if_version=if_version,
        )
        response = await self._send("FileWriteStream", messages.FileWriteStreamRequest, start, content)
        return parse(self._parse_json(response.info_json), FileInfo)

    async def archive(
        self, session_id: str, path: str, format: str, left_out: Callable[[LeftOut], None] | None
    ) -> AsyncGenerator[bytes]:
        from carrel.workspace.archive.create import LeftOut

        request = self._request(messages.ArchiveRequest, session_id=session_id, **_path(path), format=format)
        async with aclosing(self._stream("Archive", request)) as responses:
            async for response in responses:
                if response.WhichOneof("part") == "data":
                    yield response.data
                elif left_out is not None:
                    left_out(parse(self._parse_json(response.left_out_json), LeftOut))

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
        start = self._request(
            messages.ExtractStart,
            session_id=session_id,
            **_path(path),
            format=format,
            overwrite=overwrite,
            limits_json=None if limits is None else _render_json(render(limits)),
        )
        response = await self._send("Extract", messages.ExtractRequest, start, content)
        return self._parse_json(response.result_json)

    async def changes(self, session_id: str, since: int, *, follow: bool) -> AsyncGenerator[Event]:
        request = self._request(
            messages.ChangesRequest,
            session_id=session_id,
            since=max(0, min(since, _MAX_SEQUENCE)),
            follow=follow,
        )
        async with aclosing(self._stream("Changes", request)) as responses:
            async for response in responses:
                for each in parse(self._parse_json(response.events_json), list[Event]):
                    yield each

    # Running

    async def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[ExecutionEvent]:
        is_command = "command" in work
        kind = messages.ExecuteCommandStreamRequest if is_command else messages.ExecutePythonStreamRequest
        rpc = "ExecuteCommandStream" if is_command else "ExecutePythonStream"
        request = self._request(kind, session_id=session_id, **work)
        async with aclosing(self._stream(rpc, request)) as responses:
            async for response in responses:
                yield self._parse_event(response)

    def _parse_event(self, response: Message) -> ExecutionEvent:
        match response.WhichOneof("event"):
            case "execution_id":
                return ExecutionStarted(execution_id=response.execution_id)
            case "stdout":
                return ExecutionOutput(stream="stdout", data=response.stdout)
            case "stderr":
                return ExecutionOutput(stream="stderr", data=response.stderr)
            case "result_json":
                return ExecutionEnded(result=self._parse_json(response.result_json))
        raise self._invalid_response()

    async def cancel(self, session_id: str, execution_id: str) -> None:
        request = self._request(
            messages.CancelExecutionRequest, session_id=session_id, execution_id=execution_id
        )
        await self._call("CancelExecution", request)

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        request = self._request(
            messages.ListToolsRequest,
            session_id=session_id,
            context=_context(role),
            profile=profile,
            format=format,
        )
        return self._parse_json((await self._call("ListTools", request)).tools_json)

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        request = self._tool_request(session_id, name, arguments, role, profile)
        return self._parse_tool_answer(await self._call("CallTool", request))

    async def stream_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> AsyncGenerator[ToolEvent]:
        request = self._tool_request(session_id, name, arguments, role, profile)
        async with aclosing(self._stream("CallToolStream", request)) as responses:
            async for response in responses:
                match response.WhichOneof("event"):
                    case "stdout" | "stderr" as stream:
                        yield ExecutionOutput(stream=stream, data=getattr(response, stream))
                    case "result":
                        yield ExecutionEnded(result=self._parse_tool_answer(response.result))
                        return
        raise self._invalid_response()

    def _tool_request(
        self, session_id: str, name: str, arguments: Any, role: str | None, profile: str
    ) -> Message:
        return self._request(
            messages.CallToolRequest,
            session_id=session_id,
            context=_context(role),
            name=name,
            profile=profile,
            arguments_json=None if arguments is None else _render_json(arguments),
        )

    def _parse_tool_answer(self, answer: Message) -> dict[str, Any]:
        document = {"success": answer.success, "metadata": self._parse_json(answer.metadata_json or "{}")}
        match answer.WhichOneof("payload"):
            case "output":
                document["output"] = answer.output
            case "output_json":
                document["output"] = self._parse_json(answer.output_json)
            case "data_json":
                document["data"] = self._parse_json(answer.data_json)
        if answer.images:
            document["images"] = [
                {name.name: getattr(image, name.name) for name in image.DESCRIPTOR.fields}
                for image in answer.images
            ]
        optional = ("error", "model_text")
        return document | {name: getattr(answer, name) for name in optional if answer.HasField(name)}

    async def pause(self, seconds: float) -> None:
        await self._connection.pause(seconds)

    async def close(self) -> None:
        await self._connection.close()

    # Sending requests

    def _request(self, kind: Callable[..., Message], **fields: Any) -> Message:
        """Build a request message; fields that are `None` are left out.

        Raises:
            RequestError: A field has a value that cannot be sent.
        """
        try:
            return kind(**{name: value for name, value in fields.items() if value is not None})
        except (TypeError, ValueError) as error:
            raise RequestError(f"an argument cannot be sent over gRPC: {error}") from None

    async def _call(self, rpc: str, request: Message) -> Message:
        async def attempt() -> Message:
            with self._translated_errors():
                return await self._connection.call(rpc, request)

        return await self._retrier.call(attempt)

    def _stream(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        return self._retrier.stream(lambda: self._responses(rpc, request))

    async def _responses(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        with self._translated_errors():
            seconds = None if rpc in _IDLE_STREAMS else self._connection.timeout_seconds
            async with aclosing(self._connection.stream(rpc, request, seconds=seconds)) as responses:
                async for response in responses:
                    yield response

    async def _send(
        self, rpc: str, kind: Callable[..., Message], start: Message, content: ByteSource | bytes
    ) -> Message:
        """Upload *content* between a *start* and an end message; retry only if it can be sent again."""

        async def attempt() -> Message:
            with self._translated_errors():
                return await self._connection.send(rpc, _upload_messages(kind, start, content))

        return await self._retrier.call(attempt) if isinstance(content, bytes) else await attempt()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise translate_error(
                error, self._connection.address, timeout_seconds=self._connection.timeout_seconds
            ) from None
        except ServiceSilentError:
            raise timeout_error(self._connection.address, self._connection.timeout_seconds) from None

    def _parse_json(self, text: str) -> Any:  # Any: any JSON value
        try:
            return json.loads(text)
        except ValueError:
            raise self._invalid_response() from None

    def _invalid_response(self) -> UnreachableError:
        return UnreachableError(f"the service at {self.address} sent a response that cannot be parsed")


def _upload_messages(
    kind: Callable[..., Message], start: Message, content: ByteSource | bytes
) -> Iterator[Message]:
    yield kind(start=start)
    for chunk in iter_chunks(content):
        for part in iter_chunks(chunk):
            yield kind(data=part)
    yield kind(end=True)


def _path(path: str) -> dict[str, bytes]:
    """A path in a request: as bytes, since it need not be UTF-8, and empty means the whole workspace."""
    return {"path_bytes": path.encode("utf-8", "surrogateescape")}


def _lifetime(ttl_seconds: float | None) -> dict[str, Any]:
    return {"for_ever": True} if ttl_seconds is None else {"ttl_seconds": ttl_seconds}


def _context(role: str | None) -> messages.Context | None:
    return None if role is None else messages.Context(role=role)


def _render_json(document: Any) -> str:
    """Render JSON in ASCII, which can hold surrogates that a protobuf string cannot.

    Raises:
        RequestError: The document is not a JSON value.
    """
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RequestError(f"an argument cannot be sent as JSON: {error}") from None
