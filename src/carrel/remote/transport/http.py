"""`HttpTransport`: requests to a service over HTTP."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2

from carrel.audit.event import Event
from carrel.errors import ChangedError, ConfigError, LimitError, RequestError, UnreachableError
from carrel.paths.parsed_path import PATH_BYTES, parse_any
from carrel.remote.json_codec import parse, parse_error, render
from carrel.remote.transport.api import (
    ByteSource,
    ExecutionEnded,
    ExecutionEvent,
    ExecutionOutput,
    ExecutionStarted,
    ToolEvent,
    require_key,
)
from carrel.remote.transport.http_connection import HttpConnection
from carrel.remote.transport.http_requester import BYTES, JSON, HttpRequest, HttpRequester
from carrel.remote.transport.server_sent_events import ServerSentEvent
from carrel.values import FileInfo

if TYPE_CHECKING:
    from carrel.workspace.archive.create import LeftOut
    from carrel.workspace.extract_limits import ExtractLimits

ROLE_HEADER = "carrel-role"
"""The header that selects a role."""
_SESSIONS = "/api/v1/sessions"
_INFO = {"info": "true"}
"""Query that requests the file's info in a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChangesPage:
    """A page of the journal."""

    events: list[Event]
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    """The tools of a role."""

    tools: list[Any]  # JSON values


class HttpTransport:
    """Requests to one service over HTTP."""

    def __init__(
        self, connection: HttpConnection, address: str, *, retries: int, timeout_seconds: float | None
    ) -> None:
        """Send requests over *connection*, and retry up to *retries* times when the service is busy."""
        self.address = address
        self._connection = connection
        self._retries = retries
        self._requester = HttpRequester(connection, address, retries=retries, timeout_seconds=timeout_seconds)

    # Sessions

    async def create(self, new: Mapping[str, Any]) -> Any:
        return await self._requester.json(HttpRequest(method="POST", path=_SESSIONS).with_json(new))

    async def ensure(self, session_id: str) -> Any:
        return await self._requester.json(HttpRequest(method="PUT", path=_session_url(session_id)))

    async def session(self, session_id: str) -> Any:
        return await self._requester.json(HttpRequest(method="GET", path=_session_url(session_id)))

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        request = HttpRequest(method="POST", path=_session_url(session_id, "extend"))
        return await self._requester.json(request.with_json({"ttl_seconds": ttl_seconds}))

    async def sessions(self, after: str | None, count: int) -> Any:
        params = {"count": str(count)} | ({} if after is None else {"after": after})
        return await self._requester.json(HttpRequest(method="GET", path=_SESSIONS, params=params))

    async def delete(self, session_id: str) -> None:
        await self._requester.json(HttpRequest(method="DELETE", path=_session_url(session_id)))

    async def reset(self, session_id: str) -> None:
        await self._requester.json(HttpRequest(method="POST", path=_session_url(session_id, "reset")))

    # Files

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        request = HttpRequest(method="POST", path=_session_url(session_id, "operations", operation))
        return await self._requester.json(request.with_json(arguments))

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        headers = dict(BYTES)
        # HTTP cannot express an empty range, so one byte is requested and dropped.
        first, count = (0, 1) if length == 0 else (offset, length)
        if first or count is not None:
            headers["range"] = f"bytes={first}-{'' if count is None else first + count - 1}"
        url = _file_url(session_id, path)
        request = HttpRequest(method="GET", path=url, headers=headers, params=_INFO, expected_status=416)
        found = await self._requester.retrier.call(lambda: self._read(request, path, limit))
        if found is None:
            # The range lies beyond the end; only the info of the file is needed.
            request = HttpRequest(method="HEAD", path=url, headers=BYTES, params=_INFO)
            found = await self._requester.retrier.call(lambda: self._head(request))
        return found[0], b"" if length == 0 else found[1]

    async def _read(
        self, request: HttpRequest, path: str, limit: int | None
    ) -> tuple[FileInfo, bytes] | None:
        """A part of a file; `None` if the range lies beyond its end."""
        async with self._requester.open(request) as response:
            if response.status_code == request.expected_status:
                return None
            size = int(response.headers.get("content-length", 0))
            if limit is not None and size > limit:
                raise LimitError(
                    "read_bytes",
                    limit=limit,
                    asked=size,
                    message=f"{path!r} is too large: {size} bytes, the limit is {limit}",
                    path=path,
                )
            return self._info(response), await self._connection.read(response)

    async def _head(self, request: HttpRequest) -> tuple[FileInfo, bytes]:
        async with self._requester.open(request) as response:
            return self._info(response), b""

    def _info(self, response: httpx2.Response) -> FileInfo:
        return parse(self._requester.parse_json(response.headers.get("carrel-info", "")), FileInfo)

    def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        return self._requester.chunks(
            HttpRequest(method="GET", path=_file_url(session_id, path), headers=BYTES)
        )

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
        request = HttpRequest(
            method="PUT",
            path=_file_url(session_id, path),
            headers=JSON if if_version is None else {**JSON, "if-match": _tag(if_version, path)},
            params={"overwrite": _flag(overwrite), "parents": _flag(parents)},
            content=content,
        )
        return parse(await self._requester.json(request), FileInfo)

    def archive(
        self, session_id: str, path: str, format: str, left_out: Callable[[LeftOut], None] | None
    ) -> AsyncGenerator[bytes]:
        if left_out is not None:
            raise RequestError("archive: left_out is not supported over HTTP; leave it out, or use gRPC")
        params = {"path": path, "format": format}
        return self._requester.chunks(
            HttpRequest(method="GET", path=_session_url(session_id, "archive"), headers=BYTES, params=params)
        )

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
        params = {"path": path, "overwrite": _flag(overwrite)}
        if format is not None:
            params["format"] = format
        if limits is not None:
            params |= {name: _ceiling(name, value) for name, value in render(limits).items()}
        return await self._requester.json(
            HttpRequest(
                method="POST", path=_session_url(session_id, "archive"), params=params, content=content
            )
        )

    async def changes(self, session_id: str, since: int, *, follow: bool) -> AsyncGenerator[Event]:
        url = _session_url(session_id, "changes")
        if follow:
            request = HttpRequest(method="GET", path=url, params={"since": str(since)})
            async with aclosing(self._requester.events(request)) as events:
                async for each in events:
                    yield parse(self._parse_document(each), Event)
            return
        while True:
            request = HttpRequest(method="GET", path=url, params={"since": str(since)})
            page = parse(await self._requester.json(request), _ChangesPage)
            for event in page.events:
                yield event
            if not page.events:
                return
            since = page.next

    # Running

    async def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[ExecutionEvent]:
        execution_id = last = ""
        request = HttpRequest(method="POST", path=_session_url(session_id, "exec")).with_json(_rendered(work))
        for _ in range(self._retries + 1):
            try:
                async with aclosing(self._requester.events(request)) as events:
                    async for event in events:
                        step, last = self._parse_event(event), event.id
                        if not isinstance(step, ExecutionStarted):
                            yield step
                        elif not execution_id:
                            execution_id = step.execution_id
                            yield step
                        if isinstance(step, ExecutionEnded):
                            return
            except UnreachableError:
                if not execution_id:
                    raise
            if not execution_id:
                break  # whether it was started is unknown
            # The connection broke, so resume after the last event received.
            url = _session_url(session_id, "exec", execution_id)
            request = HttpRequest(method="GET", path=url, headers={"last-event-id": last})
        raise self._requester.broken_connection()

    def _parse_event(self, event: ServerSentEvent) -> ExecutionEvent:
        document = self._parse_document(event)
        match event.name:
            case "start":
                return ExecutionStarted(execution_id=str(document.get("execution_id")))
            case "stdout" | "stderr":
                return ExecutionOutput(stream=event.name, data=self._parse_output(document))
            case "exit":
                return ExecutionEnded(result=document)
        raise self._requester.invalid_response()

    def _parse_document(self, event: ServerSentEvent) -> dict[str, Any]:
        """Parse the JSON object of an event.

        Raises:
            CarrelError: The event reports an error.
        """
        document = self._requester.parse_json(event.data)
        if not isinstance(document, dict):
            raise self._requester.invalid_response()
        if event.name == "error":
            raise parse_error(document)
        return document

    def _parse_output(self, document: Mapping[str, Any]) -> bytes:
        if "text" in document:
            return str(document["text"]).encode("utf-8")
        try:
            return b64decode(str(document.get("base64")), validate=True)
        except binascii.Error:
            raise self._requester.invalid_response() from None

    async def cancel(self, session_id: str, execution_id: str) -> None:
        await self._requester.json(
            HttpRequest(method="DELETE", path=_session_url(session_id, "exec", execution_id))
        )

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        params = {"profile": profile, "format": format} | ({} if role is None else {"role": role})
        request = HttpRequest(method="GET", path=_session_url(session_id, "tools"), params=params)
        return parse(await self._requester.json(request), _Tools).tools

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        request = _tool_request(session_id, name, arguments, role, profile)
        # The result of an unknown tool has the status 404.
        response = await self._requester.json(replace(request, expected_status=404))
        if isinstance(response, dict) and "success" not in response:
            raise parse_error(response.get("error"))
        return response

    async def stream_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> AsyncGenerator[ToolEvent]:
        request = _tool_request(session_id, name, arguments, role, profile)
        async with aclosing(self._requester.events(request)) as events:
            async for event in events:
                document = self._parse_document(event)
                if event.name == "result":
                    yield ExecutionEnded(result=document)
                    return
                yield ExecutionOutput(stream=event.name, data=self._parse_output(document))
        raise self._requester.broken_connection()

    async def pause(self, seconds: float) -> None:
        await self._connection.pause(seconds)

    async def close(self) -> None:
        await self._connection.close()


def _tool_request(session_id: str, name: str, arguments: Any, role: str | None, profile: str) -> HttpRequest:
    document: dict[str, Any] = {"arguments": {} if arguments is None else arguments}
    if role is not None:
        document["context"] = {"role": role}
    url = _session_url(session_id, "tools", name)
    return HttpRequest(method="POST", path=url, params={"profile": profile}).with_json(document)


def _session_url(session_id: str, *parts: str) -> str:
    return "/".join((_SESSIONS, _encoded(session_id), *map(_encoded, parts)))


def _file_url(session_id: str, path: str) -> str:
    if len(path) > PATH_BYTES:
        # Too long for a URL, so it is refused here with the error of the library.
        parse_any(path)
    return f"{_session_url(session_id)}/files/{'/'.join(map(_encoded, path.split('/')))}"


def _encoded(part: str) -> str:
    """URL-encode a path segment, so that no server or proxy resolves it as `.` or `..`."""
    text = quote(part.encode("utf-8", "surrogateescape"), safe="")
    return text.replace(".", "%2E") if text in (".", "..") else text


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _tag(version: str, path: str) -> str:
    if not (version.isascii() and version.isprintable()) or '"' in version or version == "*":
        # No file ever had such a version.
        raise ChangedError(f"{path!r} was changed in the meantime", path=path)
    return f'"{version}"'


def _rendered(work: Mapping[str, Any]) -> dict[str, Any]:
    if "stdin" not in work:
        return dict(work)
    return {**work, "stdin": b64encode(work["stdin"]).decode("ascii"), "stdin_encoding": "base64"}


def _ceiling(name: str, value: object) -> str:
    if value is None:
        raise RequestError(f"extract: limits.{name} must be a number: a service has no unlimited value")
    return str(value)


def caller_headers(key: str | None, role: str | None) -> dict[str, str]:
    """The headers that identify the caller.

    Raises:
        ConfigError: The key or the role cannot be sent.
    """
    require_key(key)
    headers: dict[str, str] = {}
    for name, header, value in (
        ("key", "authorization", None if key is None else f"Bearer {key}"),
        ("role", ROLE_HEADER, role),
    ):
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()):
            # The value is not repeated: keys are secret.
            raise ConfigError(f"the {name} holds a character that cannot be sent")
        headers[header] = value
    return headers
