"""The way to a service over HTTP."""

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
from carrel.paths.rel import PATH_BYTES, parse_any
from carrel.remote.api import Ended, Printed, Source, Started, Step, require_key
from carrel.remote.forms import parse, parse_error, render
from carrel.remote.http_answers import BYTES, JSON, Answers, Question
from carrel.remote.http_line import Line
from carrel.remote.server_events import ServerEvent
from carrel.values import FileInfo

if TYPE_CHECKING:
    from carrel.workspace.archive import LeftOut
    from carrel.workspace.extract_limits import ExtractLimits

ROLE = "carrel-role"
"""The header that chooses a role."""
_SESSIONS = "/api/v1/sessions"
_INFO = {"info": "true"}
"""Asks for all that is known about a file, in a header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """A page of the journal."""

    events: list[Event]
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tools:
    """What the tools of a role are."""

    tools: list[Any]  # whatever JSON says


class HttpTransport:
    """Requests to one service over HTTP."""

    def __init__(self, line: Line, address: str, *, retries: int, timeout_seconds: float | None) -> None:
        """Ask over *line*, and up to *retries* times again what was refused for now."""
        self.address = address
        self._line = line
        self._retries = retries
        self._answers = Answers(line, address, retries=retries, timeout_seconds=timeout_seconds)

    # Sessions

    async def create(self, new: Mapping[str, Any]) -> Any:
        return await self._answers.json(Question(method="POST", path=_SESSIONS).saying(new))

    async def ensure(self, session_id: str) -> Any:
        return await self._answers.json(Question(method="PUT", path=_at(session_id)))

    async def session(self, session_id: str) -> Any:
        return await self._answers.json(Question(method="GET", path=_at(session_id)))

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        question = Question(method="POST", path=_at(session_id, "extend"))
        return await self._answers.json(question.saying({"ttl_seconds": ttl_seconds}))

    async def sessions(self, after: str | None, count: int) -> Any:
        params = {"count": str(count)} | ({} if after is None else {"after": after})
        return await self._answers.json(Question(method="GET", path=_SESSIONS, params=params))

    async def delete(self, session_id: str) -> None:
        await self._answers.json(Question(method="DELETE", path=_at(session_id)))

    async def reset(self, session_id: str) -> None:
        await self._answers.json(Question(method="POST", path=_at(session_id, "reset")))

    # Files

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        question = Question(method="POST", path=_at(session_id, "operations", operation))
        return await self._answers.json(question.saying(arguments))

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        headers = dict(BYTES)
        # HTTP has no words for a part without a byte, so one is asked for and not given.
        first, count = (0, 1) if length == 0 else (offset, length)
        if first or count is not None:
            headers["range"] = f"bytes={first}-{'' if count is None else first + count - 1}"
        url = _file(session_id, path)
        question = Question(method="GET", path=url, headers=headers, params=_INFO, also=416)
        found = await self._answers.patience.ask(lambda: self._read(question, path, limit))
        if found is None:
            # The part lies beyond the end, where only the file can be told of.
            question = Question(method="HEAD", path=url, headers=BYTES, params=_INFO)
            found = await self._answers.patience.ask(lambda: self._head(question))
        return found[0], b"" if length == 0 else found[1]

    async def _read(self, question: Question, path: str, limit: int | None) -> tuple[FileInfo, bytes] | None:
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

    async def _head(self, question: Question) -> tuple[FileInfo, bytes]:
        async with self._answers.opened(question) as response:
            return self._info(response), b""

    def _info(self, response: httpx2.Response) -> FileInfo:
        return parse(self._answers.loaded(response.headers.get("carrel-info", "")), FileInfo)

    def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        return self._answers.pieces(Question(method="GET", path=_file(session_id, path), headers=BYTES))

    async def write(
        self,
        session_id: str,
        path: str,
        content: Source | bytes,
        *,
        overwrite: bool,
        parents: bool,
        if_version: str | None,
    ) -> FileInfo:
        question = Question(
            method="PUT",
            path=_file(session_id, path),
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
            Question(method="GET", path=_at(session_id, "archive"), headers=BYTES, params=params)
        )

    async def extract(
        self,
        session_id: str,
        path: str,
        content: Source | bytes,
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
            Question(method="POST", path=_at(session_id, "archive"), params=params, content=content)
        )

    async def changes(self, session_id: str, since: int, *, follow: bool) -> AsyncGenerator[Event]:
        url = _at(session_id, "changes")
        if follow:
            question = Question(method="GET", path=url, params={"since": str(since)})
            async with aclosing(self._answers.events(question)) as told:
                async for each in told:
                    yield parse(self._told(each), Event)
            return
        while True:
            question = Question(method="GET", path=url, params={"since": str(since)})
            page = parse(await self._answers.json(question), _Changes)
            for event in page.events:
                yield event
            if not page.events:
                return
            since = page.next

    # Running

    async def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[Step]:
        execution_id = last = ""
        question = Question(method="POST", path=_at(session_id, "exec")).saying(_rendered(work))
        for _ in range(self._retries + 1):
            try:
                async with aclosing(self._answers.events(question)) as events:
                    async for event in events:
                        step, last = self._step(event), event.id
                        if not isinstance(step, Started):
                            yield step
                        elif not execution_id:
                            execution_id = step.execution_id
                            yield step
                        if isinstance(step, Ended):
                            return
            except UnreachableError:
                if not execution_id:
                    raise
            # The connection broke, so go on after what was told.
            place = _at(session_id, "exec", execution_id)
            question = Question(method="GET", path=place, headers={"last-event-id": last})
        raise self._answers.broken()

    def _step(self, event: ServerEvent) -> Step:
        document = self._told(event)
        match event.name:
            case "start":
                return Started(execution_id=str(document.get("execution_id")))
            case "stdout" | "stderr":
                return Printed(stream=event.name, data=self._printed(document))
            case "exit":
                return Ended(result=document)
        raise self._answers.garbled()

    def _told(self, event: ServerEvent) -> dict[str, Any]:
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
        await self._answers.json(Question(method="DELETE", path=_at(session_id, "exec", execution_id)))

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        params = {"profile": profile, "format": format} | ({} if role is None else {"role": role})
        question = Question(method="GET", path=_at(session_id, "tools"), params=params)
        return parse(await self._answers.json(question), _Tools).tools

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        document: dict[str, Any] = {"arguments": {} if arguments is None else arguments}
        if role is not None:
            document["context"] = {"role": role}
        # A tool that is not there is not found, which is also how it answers.
        question = Question(
            method="POST", path=_at(session_id, "tools", name), params={"profile": profile}, also=404
        )
        answer = await self._answers.json(question.saying(document))
        if isinstance(answer, dict) and "success" not in answer:
            raise parse_error(answer.get("error"))
        return answer

    async def pause(self, seconds: float) -> None:
        await self._line.pause(seconds)

    async def close(self) -> None:
        await self._line.close()


def _at(session_id: str, *parts: str) -> str:
    return "/".join((_SESSIONS, _encoded(session_id), *map(_encoded, parts)))


def _file(session_id: str, path: str) -> str:
    if len(path) > PATH_BYTES:
        # No URL holds it, so it is refused here, in the words of the library.
        parse_any(path)
    return f"{_at(session_id)}/files/{'/'.join(map(_encoded, path.split('/')))}"


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


def headers_of(key: str | None, role: str | None) -> dict[str, str]:
    """What every request says about its caller.

    Raises:
        ConfigError: The key or the role cannot be sent.
    """
    require_key(key)
    headers: dict[str, str] = {}
    for name, header, value in (
        ("key", "authorization", None if key is None else f"Bearer {key}"),
        ("role", ROLE, role),
    ):
        if value is None:
            continue
        if not (value.isascii() and value.isprintable()):
            # Not what it is: nobody else may know a key.
            raise ConfigError(f"the {name} holds a sign that cannot be sent")
        headers[header] = value
    return headers
