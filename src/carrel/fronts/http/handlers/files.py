"""Files of a session: read, write, append, remove, move, copy and list."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import lru_cache
from urllib.parse import quote

from msgspec import Struct

from carrel.errors import ChangedError, MissingError, RequestError
from carrel.fronts.http.handlers.conditional import (
    JSON_ETAG_SUFFIX,
    PRECONDITION_ERRORS,
    ByteRange,
    RangeNotSatisfiable,
    matches_if_none_match,
    matches_if_range,
    parse_if_match,
    parse_range,
    requires_absence,
)
from carrel.fronts.http.handlers.upload import Upload
from carrel.fronts.http.media_types import content_type, is_text, media_type
from carrel.fronts.http.request import VARY, PendingResponse, Request, Response, encode, error_response
from carrel.fronts.http.router import decode_path_part
from carrel.fronts.json_document import convert_document
from carrel.fs.api import Reader
from carrel.fs.nonblocking import WouldBlock, run_nonblocking
from carrel.paths.glob import Pattern
from carrel.remote.json_codec import render
from carrel.service.operations import LIST_TOOL, READ_TOOL, WRITE_TOOL
from carrel.service.sessions.caller_session import CallerSession
from carrel.values import FileInfo
from carrel.workspace.aio import INLINE_BYTES
from carrel.workspace.search import below, is_hidden
from carrel.workspace.workspace import Workspace

PIECE_BYTES = 2**18
_KEPT = (b"cache-control", b"private, no-cache")
"""A copy may be kept, and is asked about before it is used again."""
_JSON, _OCTETS = "application/json", "application/octet-stream"
_RANGES = (b"accept-ranges", b"bytes")


class ReadQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to give a file."""

    info: bool = False
    """Whether to tell in the header `Carrel-Info` all that is known about it."""


class WriteQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to store a file."""

    overwrite: bool = True
    parents: bool = True


class RemoveQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to remove."""

    recursive: bool = False
    force: bool = False


class CopyQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to copy."""

    recursive: bool = False


class ListQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to list."""

    path: str = "."
    recursive: bool = False
    pattern: str | None = None
    """Without a slash it matches names, with one the path beneath the directory."""
    hidden: bool = True
    """Whether to show names that begin with a dot."""


class Entries(Struct, frozen=True, kw_only=True):
    """What a directory holds."""

    entries: list[FileInfo]


class Envelope(Struct, frozen=True, kw_only=True):
    """A file in JSON."""

    success: bool
    content: str
    content_type: str
    size_bytes: int
    encoding: str
    """Of `content`: `utf-8`, or `base64` where it is no text."""


# Reading


def read(call: Request) -> PendingResponse:
    """Give a file, or a part of it."""
    query = call.query(ReadQuery) if call.scope["query_string"] else ReadQuery()
    # Any file may be taken for octets, and one that is JSON is not the envelope.
    own = media_type(call.values[1])
    if call.prefers(_JSON, _OCTETS, _OCTETS if own == _JSON else own):
        return _give_envelope(call)
    session = call.get_session_if_open()
    if session is not None:
        with suppress(WouldBlock):
            return run_nonblocking(lambda: _file_response(call, session, query))
    return _open_and_give(call, query)


async def _open_and_give(call: Request, query: ReadQuery) -> None:
    async with call.open_session() as session:
        await call.go_on(
            await call.app.service.run_inline(session, lambda: _file_response(call, session, query))
        )


async def _give_envelope(call: Request) -> None:
    async with call.open_session() as session:
        session.require(READ_TOOL)
        info, content = await session.files.read_with_info(call.values[1])
    body = await convert_document(len(content), lambda: encode(_envelope(content, media_type(info.name))))
    await call.json_text(200, body, [(b"etag", f'"{info.version}{JSON_ETAG_SUFFIX}"'.encode("ascii")), VARY])


def _envelope(content: bytes, kind: str) -> Envelope:
    text = _text(content) if is_text(kind) else None
    return Envelope(
        success=True,
        content=b64encode(content).decode("ascii") if text is None else text,
        content_type=kind,
        size_bytes=len(content),
        encoding="base64" if text is None else "utf-8",
    )


def _text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _file_response(call: Request, session: CallerSession, query: ReadQuery) -> PendingResponse:
    session.require(READ_TOOL)
    reader = session.workspace.reader(call.values[1])
    info = reader.info
    version = info.version
    headers = [(b"etag", b'"%s"' % version.encode("ascii")), _KEPT, VARY]
    if query.info:
        headers.append((b"carrel-info", _info_header(info)))
    if matches_if_none_match(call.header(b"if-none-match"), version):
        return Response(304, tuple(headers))
    size = info.size_bytes
    try:
        window = parse_range(_range(call, info), size)
    except RangeNotSatisfiable as error:
        problem = RequestError(str(error))
        return error_response(problem, status=416, headers=[(b"content-range", b"bytes */%d" % size)])
    headers += [_RANGES, (b"content-type", content_type(info.name)), _attachment(info.name)]
    status = 200
    if window is None:
        window = ByteRange(0, size)
    else:
        status = 206
        last = window.offset + window.length - 1
        headers.append((b"content-range", b"bytes %d-%d/%d" % (window.offset, last, size)))
    headers.append((b"content-length", b"%d" % window.length))
    if call.is_head:
        return Response(status, tuple(headers))
    if window.length > INLINE_BYTES:
        return _stream(call, Response(status, tuple(headers)), reader, window)
    # Reading so little takes less than handing it to a thread would.
    data = reader.read(window.length, window.offset)
    if len(data) < window.length:
        raise _shorter(reader)
    return Response(status, tuple(headers), data)


async def _stream(call: Request, head: Response, reader: Reader, window: ByteRange) -> None:
    # The session stays open meanwhile.
    async with call.open_session():
        await call.begin(head.status, head.headers)
        await call.stream(_pieces(reader, window))


def _range(call: Request, info: FileInfo) -> str | None:
    condition = call.header(b"if-range")
    if condition is not None and not matches_if_range(condition, info.version):
        return None
    return call.header(b"range")


async def _pieces(reader: Reader, window: ByteRange) -> AsyncIterator[bytes]:
    """A part of a file, read in worker threads; never more than was announced.

    Raises:
        ChangedError: It is less than was announced.
    """
    left = window.length
    chunks = reader.chunks(PIECE_BYTES, window.offset)
    while left:
        piece = await asyncio.to_thread(next, chunks, b"")
        if not piece:
            raise _shorter(reader)
        yield piece[:left]
        left -= min(left, len(piece))


def _shorter(reader: Reader) -> ChangedError:
    return ChangedError("the file became shorter while it was sent", path=reader.info.path)


# Writing


async def write(call: Request) -> None:
    """Store a file, at once or not at all."""
    query = call.query(WriteQuery)
    _require_plain(call)
    _require_met(call, "if-unmodified-since")
    new_only = requires_absence(call.header(b"if-none-match"))
    async with call.open_session() as session:
        session.require(WRITE_TOOL)
        try:
            info = await _store(call, session, query, overwrite=query.overwrite and not new_only)
        except PRECONDITION_ERRORS as error:
            if not new_only:
                raise
            await call.error(error, status=412)
            return
    await _tell(call, 201 if new_only else 200, info)


def _require_plain(call: Request) -> None:
    """Do nothing if the body is what is to be stored, and not a part or a form of it.

    Raises:
        RequestError: A header says otherwise.
    """
    for name in ("content-encoding", "content-range"):
        if (call.header(name.encode("ascii")) or "identity") != "identity":
            raise RequestError(
                f"the header {name.title()} is not understood: send all of the content as it is"
            )


def _require_met(call: Request, *conditions: str) -> None:
    """Do nothing if the request sets none of those *conditions* that nobody looks at.

    Raises:
        RequestError: It sets one, and may rely on it.
    """
    for name in conditions:
        if call.header(name.encode("ascii")) is not None:
            raise RequestError(f"the header {name.title()} is not understood with {call.scope['method']}")


async def _store(call: Request, session: CallerSession, query: WriteQuery, *, overwrite: bool) -> FileInfo:
    path = call.values[1]
    service, workspace = call.app.service, session.workspace
    version = await service.run_inline(session, lambda: _required_version(call, workspace, path))
    if _is_small(call):
        data = await call.body()
        return await service.run_inline(
            session,
            lambda: workspace.write(
                path, data, overwrite=overwrite, parents=query.parents, if_version=version
            ),
        )
    return await Upload(call.pieces(), call.app.service.waiting_threads).through(
        lambda chunks: workspace.write_chunks(
            path, chunks, overwrite=overwrite, parents=query.parents, if_version=version
        )
    )


def _is_small(call: Request) -> bool:
    length = call.header(b"content-length")
    return length is not None and length.isdecimal() and int(length) <= INLINE_BYTES


async def append(call: Request) -> None:
    """Add to the end of a file, which is made if it is missing."""
    path = call.values[1]
    _require_plain(call)
    _require_met(call, "if-none-match", "if-unmodified-since")
    async with call.open_session() as session:
        session.require(WRITE_TOOL)
        data = await call.body()

        def add() -> FileInfo:
            version = _required_version(call, session.workspace, path)
            return session.workspace.append(path, data, if_version=version)

        run = call.app.service.run_inline if len(data) <= INLINE_BYTES else call.app.service.run_in_thread
        info = await run(session, add)
    await _tell(call, 200, info)


async def remove(call: Request) -> None:
    """Remove a file, a link or a directory."""
    query = call.query(RemoveQuery)
    _require_met(call, "if-none-match", "if-unmodified-since")
    version = parse_if_match(call.header(b"if-match"))
    arguments = {"path": call.values[1], "recursive": query.recursive, "force": query.force}
    if version not in (None, "*"):
        arguments["if_version"] = version
    await call.app.service.call(call.who, call.session_id, "remove", arguments)
    await call.empty()


async def move(call: Request) -> None:
    """Give a file or a directory another name."""
    _require_met(call, "if-none-match", "if-unmodified-since")
    target = _destination(call)
    version = parse_if_match(call.header(b"if-match"))
    arguments = {"source": call.values[1], "target": target, "overwrite": _overwrites(call)}
    if version not in (None, "*"):
        arguments["if_version"] = version
    await _transfer(call, "move", arguments)


async def copy(call: Request) -> None:
    """Copy a file or a directory."""
    query = call.query(CopyQuery)
    _require_met(call, "if-match", "if-none-match", "if-unmodified-since")
    await _transfer(
        call,
        "copy",
        {
            "source": call.values[1],
            "target": _destination(call),
            "overwrite": _overwrites(call),
            "recursive": query.recursive,
        },
    )


async def _transfer(call: Request, operation: str, arguments: dict[str, object]) -> None:
    await call.app.service.call(call.who, call.session_id, operation, arguments)
    await call.empty()


def _required_version(call: Request, workspace: Workspace, path: str) -> str | None:
    """The version that the request wants to change, or `None` for whatever is there.

    Raises:
        ChangedError: Something is to be there, and there is nothing.
    """
    version = parse_if_match(call.header(b"if-match"))
    if version != "*":
        return version
    try:
        return workspace.stat(path).version
    except MissingError as error:
        raise ChangedError(error.message, path=error.path) from None


def _destination(call: Request) -> str:
    """The path that a `Destination` header names: a URL of the same session, or a path of its workspace."""
    header = call.header(b"destination")
    if header is None:
        raise RequestError("the header Destination is missing")
    raw = header.strip().encode("latin-1")
    if b"://" in raw:
        raw = b"/" + raw.partition(b"://")[2].partition(b"/")[2]
    if not raw.startswith(b"/"):
        return decode_path_part(raw)
    methods, values = call.app.router.find(raw)
    if "MOVE" not in methods or values[0] != call.session_id:
        raise RequestError("the Destination must be a file of the same session")
    return values[1]


def _overwrites(call: Request) -> bool:
    header = (call.header(b"overwrite") or "F").strip().upper()
    if header not in ("T", "F"):
        raise RequestError("the header Overwrite must be T or F")
    return header == "T"


# Listing


async def list_entries(call: Request) -> None:
    """What a directory holds, directly or at every depth."""
    query = call.query(ListQuery)
    async with call.open_session() as session:
        session.require(LIST_TOOL)
        # Many entries take as long to be written as to be found.
        body = await call.app.service.run_in_thread(session, lambda: _listing(session.workspace, query))
    await call.json_text(200, body)


def _listing(workspace: Workspace, query: ListQuery) -> bytes:
    return encode({"entries": render(_entries(workspace, query))})


def _entries(workspace: Workspace, query: ListQuery) -> list[FileInfo]:
    pattern = None if query.pattern is None else Pattern(query.pattern)
    top = workspace.stat(query.path)

    def is_shown(info: FileInfo) -> bool:
        return query.hidden or not is_hidden(info.name)

    found = workspace.walk(query.path, enter=is_shown) if query.recursive else workspace.list(query.path)
    return [
        info for info in found if is_shown(info) and (pattern is None or pattern.matches(below(top, info)))
    ]


# Headers


async def _tell(call: Request, status: int, info: FileInfo) -> None:
    await call.json(status, render(info), [_tag(info)])


def _tag(info: FileInfo) -> tuple[bytes, bytes]:
    return b"etag", f'"{info.version}"'.encode("ascii")


def _info_header(info: FileInfo) -> bytes:
    """All that is known about a file, as JSON in ASCII."""
    return json.dumps(render(info), separators=(",", ":")).encode("ascii")


@lru_cache(maxsize=1024)
def _attachment(name: str) -> tuple[bytes, bytes]:
    """A browser stores the file, and does not show it."""
    plain = quote(name.encode("utf-8", "surrogateescape"), safe="")
    return b"content-disposition", f"attachment; filename*=UTF-8''{plain}".encode("ascii")
