"""`HttpTransport`: requests to a service over HTTP."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
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
"""The header that chooses a role."""
_SESSIONS = "/api/v1/sessions"
_INFO = {"info": "true"}
"""Asks for all that is known about a file, in a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ChangesPage:
    """A page of the journal."""

    events: list[Event]
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    """What the tools of a role are."""

    tools: list[Any]  # whatever JSON says


class HttpTransport:
    """Requests to one service over HTTP."""

    def __init__(
        self, line: HttpConnection, address: str, *, retries: int, timeout_seconds: float | None
    ) -> None:
        """Ask over *line*, and up to *retries* times again what was refused for now."""
        self.address = address
        self._line = line
        self._retries = retries
        self._answers = HttpRequester(line, address, retries=retries, timeout_seconds=timeout_seconds)

    # Sessions

    async def create(self, new: Mapping[str, Any]) -> Any:
        return await self._answers.json(HttpRequest(method="POST", path=_SESSIONS).saying(new))

    async def ensure(self, session_id: str) -> Any:
        return await self._answers.json(HttpRequest(method="PUT", path=_session_url(session_id)))

    async def session(self, session_id: str) -> Any:
        return await self._answers.json(HttpRequest(method="GET", path=_session_url(session_id)))

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        question = HttpRequest(method="POST", path=_session_url(session_id, "extend"))
        return await self._answers.json(question.saying({"ttl_seconds": ttl_seconds}))

    async def sessions(self, after: str | None, count: int) -> Any:
        params = {"count": str(count)} | ({} if after is None else {"after": after})
        return await self._answers.json(HttpRequest(method="GET", path=_SESSIONS, params=params))

    async def delete(self, session_id: str) -> None:
        await self._answers.json(HttpRequest(method="DELETE", path=_session_url(session_id)))

    async def reset(self, session_id: str) -> None:
        await self._answers.json(HttpRequest(method="POST", path=_session_url(session_id, "reset")))

    # Files

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        question = HttpRequest(method="POST", path=_session_url(session_id, "operations", operation))
        return await self._answers.json(question.saying(arguments))

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        headers = dict(BYTES)
        # HTTP has no words for a part without a byte, so one is asked for and not given.
        first, count = (0, 1) if length == 0 else (offset, length)
        if first or count is not None:
            headers["range"] = f"bytes={first}-{'' if count is None else first + count - 1}"
        url = _file_url(session_id, path)
        question = HttpRequest(method="GET", path=url, headers=headers, params=_INFO, also=416)
        found = await self._answers.patience.ask(lambda: self._read(question, path, limit))
        if found is None:
            # The part lies beyond the end, where only the file can be told of.
            question = HttpRequest(method="HEAD", path=url, headers=BYTES, params=_INFO)
            found = await self._answers.patience.ask(lambda: self._head(question))
        return found[0], b"" if length == 0 else found[1]

    async def _read(
        self, question: HttpRequest, path: str, limit: int | None
    ) -> tuple[FileInfo, bytes] | None:
        """A part of a file; `None` if it has none there."""
        async with self._answers.opened(question) as response:
            if response.status_code == question.also:
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
            return self._info(response), await self._line.read(response)

    async def _head(self, question: HttpRequest) -> tuple[FileInfo, bytes]:
        async with self._answers.opened(question) as response:
            return self._info(response), b""

    def _info(self, response: httpx2.Response) -> FileInfo:
        return parse(self._answers.loaded(response.headers.get("carrel-info", "")), FileInfo)

    def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        return self._answers.pieces(
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
        question = HttpRequest(
            method="PUT",
            path=_file_url(session_id, path),
            headers=JSON if if_version is None else {**JSON, "if-match": _tag(if_version, path)},
            params={"overwrite": _flag(overwrite), "parents": _flag(parents)},
            content=content,
        )
        return parse(await self._answers.json(question), FileInfo)

    def archive(
        self, session_id: str, path: str, format: str, left_out: Callable[[LeftOut], None] | None
    ) -> AsyncGenerator[bytes]:
        if left_out is not None:
            raise RequestError("archive: left_out is not told over HTTP; do without it, or use gRPC")
        params = {"path": path, "format": format}
        return self._answers.pieces(
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
        return await self._answers.json(
            HttpRequest(
                method="POST", path=_session_url(session_id, "archive"), params=params, content=content
            )
        )

    async def changes(self, session_id: str, since: int, *, follow: bool) -> AsyncGenerator[Event]:
        url = _session_url(session_id, "changes")
        if follow:
            question = HttpRequest(method="GET", path=url, params={"since": str(since)})
            async with aclosing(self._answers.events(question)) as told:
                async for each in told:
                    yield parse(self._told(each), Event)
            return
        while True:
            question = HttpRequest(method="GET", path=url, params={"since": str(since)})
            page = parse(await self._answers.json(question), _ChangesPage)
            for event in page.events:
                yield event
            if not page.events:
                return
            since = page.next

    # Running

    async def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[ExecutionEvent]:
        execution_id = last = ""
        question = HttpRequest(method="POST", path=_session_url(session_id, "exec")).saying(_rendered(work))
        for _ in range(self._retries + 1):
            try:
                async with aclosing(self._answers.events(question)) as events:
                    async for event in events:
                        step, last = self._step(event), event.id
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
            # The connection broke, so go on after what was told.
            place = _session_url(session_id, "exec", execution_id)
            question = HttpRequest(method="GET", path=place, headers={"last-event-id": last})
        raise self._answers.broken()

    def _step(self, event: ServerSentEvent) -> ExecutionEvent:
        document = self._told(event)
        match event.name:
            case "start":
                return ExecutionStarted(execution_id=str(document.get("execution_id")))
            case "stdout" | "stderr":
                return ExecutionOutput(stream=event.name, data=self._printed(document))
            case "exit":
                return ExecutionEnded(result=document)
        raise self._answers.garbled()

    def _told(self, event: ServerSentEvent) -> dict[str, Any]:
        """What an event says.

        Raises:
            CarrelError: The service tells of an error.
        """
        document = self._answers.loaded(event.data)
        if not isinstance(document, dict):
            raise self._answers.garbled()
        if event.name == "error":
            raise parse_error(document)
        return document

    def _printed(self, document: Mapping[str, Any]) -> bytes:
        if "text" in document:
            return str(document["text"]).encode("utf-8")
        try:
            return b64decode(str(document.get("base64")), validate=True)
        except binascii.Error:
            raise self._answers.garbled() from None

    async def cancel(self, session_id: str, execution_id: str) -> None:
        await self._answers.json(
            HttpRequest(method="DELETE", path=_session_url(session_id, "exec", execution_id))
        )

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        params = {"profile": profile, "format": format} | ({} if role is None else {"role": role})
        question = HttpRequest(method="GET", path=_session_url(session_id, "tools"), params=params)
        return parse(await self._answers.json(question), _Tools).tools

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        document: dict[str, Any] = {"arguments": {} if arguments is None else arguments}
        if role is not None:
            document["context"] = {"role": role}
        # A tool that is not there is not found, which is also how it answers.
        question = HttpRequest(
            method="POST", path=_session_url(session_id, "tools", name), params={"profile": profile}, also=404
        )
        answer = await self._answers.json(question.saying(document))
        if isinstance(answer, dict) and "success" not in answer:
            raise parse_error(answer.get("error"))
        return answer

    async def pause(self, seconds: float) -> None:
        await self._line.pause(seconds)

    async def close(self) -> None:
        await self._line.close()


def _session_url(session_id: str, *parts: str) -> str:
    return "/".join((_SESSIONS, _encoded(session_id), *map(_encoded, parts)))


def _file_url(session_id: str, path: str) -> str:
    if len(path) > PATH_BYTES:
        # No URL holds it, so it is refused here, in the words of the library.
        parse_any(path)
    return f"{_session_url(session_id)}/files/{'/'.join(map(_encoded, path.split('/')))}"


def _encoded(part: str) -> str:
    """A part of a path as it must be in a URL, where nobody takes it for a step to another place."""
    text = quote(part.encode("utf-8", "surrogateescape"), safe="")
    return text.replace(".", "%2E") if text in (".", "..") else text


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _tag(version: str, path: str) -> str:
    if not (version.isascii() and version.isprintable()) or '"' in version or version == "*":
        # Nothing ever had that version.
        raise ChangedError(f"{path!r} was changed meanwhile", path=path)
    return f'"{version}"'


def _rendered(work: Mapping[str, Any]) -> dict[str, Any]:
    if "stdin" not in work:
        return dict(work)
    return {**work, "stdin": b64encode(work["stdin"]).decode("ascii"), "stdin_encoding": "base64"}


def _ceiling(name: str, value: object) -> str:
    if value is None:
        raise RequestError(f"extract: limits.{name} must be a number: a service does without none of them")
    return str(value)


def caller_headers(key: str | None, role: str | None) -> dict[str, str]:
    """What every request says about its caller.

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
            # Not what it is: nobody else may know a key.
            raise ConfigError(f"the {name} holds a sign that cannot be sent")
        headers[header] = value
    return headers
