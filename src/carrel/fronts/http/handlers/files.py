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

CHUNK_BYTES = 2**18
_REVALIDATE = (b"cache-control", b"private, no-cache")
"""A client may cache a copy, but must revalidate it before each use."""
_JSON, _OCTETS = "application/json", "application/octet-stream"
_RANGES = (b"accept-ranges", b"bytes")


class ReadQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to send a file."""

    info: bool = False
    """Whether to send the properties of the file in the header `Carrel-Info`."""


class WriteQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to store a file."""

    overwrite: bool = True
    parents: bool = True


class RemoveQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to remove."""

    recursive: bool = False
    force: bool = False


class CopyQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to copy."""

    recursive: bool = False


class ListQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to list."""

    path: str = "."
    recursive: bool = False
    pattern: str | None = None
    """A pattern without a slash matches names, one with a slash the path beneath the directory."""
    hidden: bool = True
    """Whether to include names that begin with a dot."""


class Entries(Struct, frozen=True, kw_only=True):
    """The entries of a directory."""

    entries: list[FileInfo]


class Envelope(Struct, frozen=True, kw_only=True):
    """A file as JSON."""

    success: bool
    content: str
    content_type: str
    size_bytes: int
    encoding: str
    """Encoding of `content`: `utf-8`, or `base64` if it is not text."""


# Reading


def read(request: Request) -> PendingResponse:
    """Send a file, or a range of it."""
    query = request.query(ReadQuery) if request.scope["query_string"] else ReadQuery()
    # Any file can be sent as octets; a client that prefers the type of a JSON file gets the file itself.
    own = media_type(request.path_values[1])
    if request.prefers(_JSON, _OCTETS, _OCTETS if own == _JSON else own):
        return _send_envelope(request)
    session = request.get_session_if_open()
    if session is not None:
        with suppress(WouldBlock):
            return run_nonblocking(lambda: _file_response(request, session, query))
    return _open_and_send(request, query)


async def _open_and_send(request: Request, query: ReadQuery) -> None:
    async with request.open_session() as session:
        await request.send_pending(
            await request.app.service.run_inline(session, lambda: _file_response(request, session, query))
        )


async def _send_envelope(request: Request) -> None:
    async with request.open_session() as session:
        session.require(READ_TOOL)
        info, content = await session.files.read_with_info(request.path_values[1])
    body = await convert_document(len(content), lambda: encode(_envelope(content, media_type(info.name))))
    await request.send_encoded_json(
        200, body, [(b"etag", f'"{info.version}{JSON_ETAG_SUFFIX}"'.encode("ascii")), VARY]
    )


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


def _file_response(request: Request, session: CallerSession, query: ReadQuery) -> PendingResponse:
    session.require(READ_TOOL)
    reader = session.workspace.reader(request.path_values[1])
    info = reader.info
    version = info.version
    headers = [(b"etag", b'"%s"' % version.encode("ascii")), _REVALIDATE, VARY]
    if query.info:
        headers.append((b"carrel-info", _info_header(info)))
    if matches_if_none_match(request.header(b"if-none-match"), version):
        return Response(304, tuple(headers))
    size = info.size_bytes
    try:
        byte_range = parse_range(_range_header(request, info), size)
    except RangeNotSatisfiable as error:
        problem = RequestError(str(error))
        return error_response(problem, status=416, headers=[(b"content-range", b"bytes */%d" % size)])
    headers += [_RANGES, (b"content-type", content_type(info.name)), _attachment(info.name)]
    status = 200
    if byte_range is None:
        byte_range = ByteRange(0, size)
    else:
        status = 206
        last = byte_range.offset + byte_range.length - 1
        headers.append((b"content-range", b"bytes %d-%d/%d" % (byte_range.offset, last, size)))
    headers.append((b"content-length", b"%d" % byte_range.length))
    if request.is_head:
        return Response(status, tuple(headers))
    if byte_range.length > INLINE_BYTES:
        return _stream(request, Response(status, tuple(headers)), reader, byte_range)
    # A small read takes less time than handing it to a thread.
    data = reader.read(byte_range.length, byte_range.offset)
    if len(data) < byte_range.length:
        raise _truncated_error(reader)
    return Response(status, tuple(headers), data)


async def _stream(request: Request, head: Response, reader: Reader, byte_range: ByteRange) -> None:
    # Keeps the session open while the file is sent.
    async with request.open_session():
        await request.start_response(head.status, head.headers)
        await request.stream(_chunks(reader, byte_range))


def _range_header(request: Request, info: FileInfo) -> str | None:
    condition = request.header(b"if-range")
    if condition is not None and not matches_if_range(condition, info.version):
        return None
    return request.header(b"range")


async def _chunks(reader: Reader, byte_range: ByteRange) -> AsyncIterator[bytes]:
    """Yield a range of a file, read in worker threads; exactly as many bytes as were announced.

    Raises:
        ChangedError: The file was truncated.
    """
    left = byte_range.length
    chunks = reader.chunks(CHUNK_BYTES, byte_range.offset)
    while left:
        chunk = await asyncio.to_thread(next, chunks, b"")
        if not chunk:
            raise _truncated_error(reader)
        yield chunk[:left]
        left -= min(left, len(chunk))


def _truncated_error(reader: Reader) -> ChangedError:
    return ChangedError("the file was truncated while it was sent", path=reader.info.path)


# Writing


async def write(request: Request) -> None:
    """Write a file atomically."""
    query = request.query(WriteQuery)
    _require_plain_body(request)
    _reject_headers(request, "if-unmodified-since")
    new_only = requires_absence(request.header(b"if-none-match"))
    async with request.open_session() as session:
        session.require(WRITE_TOOL)
        try:
            info = await _write(request, session, query, overwrite=query.overwrite and not new_only)
        except PRECONDITION_ERRORS as error:
            if not new_only:
                raise
            await request.send_response(error_response(error, status=412))
            return
    await _send_info(request, 201 if new_only else 200, info)


def _require_plain_body(request: Request) -> None:
    """Require that the body is the whole content, neither encoded nor a range.

    Raises:
        RequestError: A header says otherwise.
    """
    for name in ("content-encoding", "content-range"):
        if (request.header(name.encode("ascii")) or "identity") != "identity":
            raise RequestError(
                f"the header {name.title()} is not supported: send the whole content unencoded"
            )


def _reject_headers(request: Request, *names: str) -> None:
    """Reject preconditions that the method does not support, since the client may rely on them.

    Raises:
        RequestError: The request has one of these headers.
    """
    for name in names:
        if request.header(name.encode("ascii")) is not None:
            raise RequestError(f"the header {name.title()} is not supported with {request.scope['method']}")


async def _write(request: Request, session: CallerSession, query: WriteQuery, *, overwrite: bool) -> FileInfo:
    path = request.path_values[1]
    service, workspace = request.app.service, session.workspace
    version = await service.run_inline(session, lambda: _required_version(request, workspace, path))
    if _is_small(request):
        data = await request.body()
        return await service.run_inline(
            session,
            lambda: workspace.write(
                path, data, overwrite=overwrite, parents=query.parents, if_version=version
            ),
        )
    return await Upload(request.body_chunks(), request.app.service.waiting_threads).run(
        lambda chunks: workspace.write_chunks(
            path, chunks, overwrite=overwrite, parents=query.parents, if_version=version
        )
    )


def _is_small(request: Request) -> bool:
    length = request.header(b"content-length")
    return length is not None and length.isdecimal() and int(length) <= INLINE_BYTES


async def append(request: Request) -> None:
    """Append to a file, created if it is missing."""
    path = request.path_values[1]
    _require_plain_body(request)
    _reject_headers(request, "if-none-match", "if-unmodified-since")
    async with request.open_session() as session:
        session.require(WRITE_TOOL)
        data = await request.body()

        def add() -> FileInfo:
            version = _required_version(request, session.workspace, path)
            return session.workspace.append(path, data, if_version=version)

        run = (
            request.app.service.run_inline if len(data) <= INLINE_BYTES else request.app.service.run_in_thread
        )
        info = await run(session, add)
    await _send_info(request, 200, info)


async def remove(request: Request) -> None:
    """Remove a file, a link or a directory."""
    query = request.query(RemoveQuery)
    _reject_headers(request, "if-none-match", "if-unmodified-since")
    version = parse_if_match(request.header(b"if-match"))
    arguments = {"path": request.path_values[1], "recursive": query.recursive, "force": query.force}
    if version not in (None, "*"):
        arguments["if_version"] = version
    await request.app.service.call(request.acting, request.session_id, "remove", arguments)
    await request.send_no_content()


async def move(request: Request) -> None:
    """Move a file or a directory."""
    _reject_headers(request, "if-none-match", "if-unmodified-since")
    target = _destination(request)
    version = parse_if_match(request.header(b"if-match"))
    arguments = {"source": request.path_values[1], "target": target, "overwrite": _overwrites(request)}
    if version not in (None, "*"):
        arguments["if_version"] = version
    await _transfer(request, "move", arguments)


async def copy(request: Request) -> None:
    """Copy a file or a directory."""
    query = request.query(CopyQuery)
    _reject_headers(request, "if-match", "if-none-match", "if-unmodified-since")
    await _transfer(
        request,
        "copy",
        {
            "source": request.path_values[1],
            "target": _destination(request),
            "overwrite": _overwrites(request),
            "recursive": query.recursive,
        },
    )


async def _transfer(request: Request, operation: str, arguments: dict[str, object]) -> None:
    await request.app.service.call(request.acting, request.session_id, operation, arguments)
    await request.send_no_content()


def _required_version(request: Request, workspace: Workspace, path: str) -> str | None:
    """Return the version that the request requires, or `None` for any.

    Raises:
        ChangedError: The request requires that the file exists, and it does not.
    """
    version = parse_if_match(request.header(b"if-match"))
    if version != "*":
        return version
    try:
        return workspace.stat(path).version
    except MissingError as error:
        raise ChangedError(error.message, path=error.path) from None


def _destination(request: Request) -> str:
    """Return the path in a `Destination` header: the URL of a file of the same session, or a path."""
    header = request.header(b"destination")
    if header is None:
        raise RequestError("the header Destination is missing")
    raw = header.strip().encode("latin-1")
    if b"://" in raw:
        raw = b"/" + raw.partition(b"://")[2].partition(b"/")[2]
    if not raw.startswith(b"/"):
        return decode_path_part(raw)
    methods, values = request.app.router.find(raw)
    if "MOVE" not in methods or values[0] != request.session_id:
        raise RequestError("the Destination must be a file of the same session")
    return values[1]


def _overwrites(request: Request) -> bool:
    header = (request.header(b"overwrite") or "F").strip().upper()
    if header not in ("T", "F"):
        raise RequestError("the header Overwrite must be T or F")
    return header == "T"


# Listing


async def list_entries(request: Request) -> None:
    """List a directory, optionally with everything beneath it."""
    query = request.query(ListQuery)
    async with request.open_session() as session:
        session.require(LIST_TOOL)
        # Rendering many entries takes as long as finding them.
        body = await request.app.service.run_in_thread(session, lambda: _listing(session.workspace, query))
    await request.send_encoded_json(200, body)


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


async def _send_info(request: Request, status: int, info: FileInfo) -> None:
    await request.send_json(status, render(info), [_tag(info)])


def _tag(info: FileInfo) -> tuple[bytes, bytes]:
    return b"etag", f'"{info.version}"'.encode("ascii")


def _info_header(info: FileInfo) -> bytes:
    """Render the properties of a file as JSON in ASCII."""
    return json.dumps(render(info), separators=(",", ":")).encode("ascii")


@lru_cache(maxsize=1024)
def _attachment(name: str) -> tuple[bytes, bytes]:
    """Return a header with which a browser saves the file instead of showing it."""
    plain = quote(name.encode("utf-8", "surrogateescape"), safe="")
    return b"content-disposition", f"attachment; filename*=UTF-8''{plain}".encode("ascii")
