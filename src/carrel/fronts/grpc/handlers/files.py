"""Files, directory trees, archives and the journal, as streams."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from typing import Any

from carrel.errors import RequestError
from carrel.fronts.grpc.call import RpcCall, reject_invalid_values, request_path, stopping_error
from carrel.fronts.grpc.json_fields import parse_value, render_json
from carrel.fronts.grpc.streams import UploadStream, closing_stream, slices
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.operations import LIST_TOOL, READ_TOOL, WRITE_TOOL
from carrel.service.sessions.caller_session import CallerSession
from carrel.values import FileInfo
from carrel.workspace.archive.create import LeftOut
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import ExtractLimits

CHUNK_BYTES = 2**16
LARGE_BYTES = 2**20
"""Files above this size are not read into memory."""
ENTRIES = 256
"""Maximum number of entries in one message of a walk."""


async def file_read_stream(
    call: RpcCall, request: messages.FileReadStreamRequest
) -> AsyncIterator[messages.FileReadStreamResponse]:
    """Send a file: first its properties, then its content."""
    part = messages.FileReadStreamResponse
    is_window = request.HasField("offset") or request.HasField("length")
    if request.any_size and is_window:
        raise RequestError("any_size is for whole files, without offset and length")
    async with call.open_session(request) as session:
        session.require(READ_TOOL)
        path = request_path(request)
        if request.any_size or (not is_window and await _is_large(session, path)):
            # Inspected before reading, so that the version is never newer than the content.
            yield part(info_json=render_json(await session.files.stat(path)))
            async with closing_stream(session.files.read_chunks(path, chunk_bytes=CHUNK_BYTES)) as chunks:
                async for chunk in chunks:
                    yield part(data=chunk)
            return
        with reject_invalid_values():
            info, data = await session.files.read_with_info(
                path,
                offset=request.offset,
                length=request.length if request.HasField("length") else None,
            )
        yield part(info_json=render_json(info))
        for piece in slices(data, CHUNK_BYTES):
            yield part(data=piece)


async def _is_large(session: CallerSession, path: str) -> bool:
    """Whether a file within the read limit is large enough to be read in chunks."""
    size, limit = (await session.files.stat(path)).size_bytes, session.workspace.limits.read_bytes
    return size > LARGE_BYTES and (limit is None or size <= limit)


async def file_write_stream(
    call: RpcCall, requests: AsyncIterator[messages.FileWriteStreamRequest]
) -> messages.FileWriteStreamResponse:
    """Write a file atomically."""
    upload = UploadStream(requests)
    start: messages.FileWriteStart = await upload.start()

    def write(pieces: Iterator[bytes]) -> FileInfo:
        return session.workspace.write_chunks(
            request_path(start),
            pieces,
            overwrite=start.overwrite if start.HasField("overwrite") else True,
            parents=start.parents if start.HasField("parents") else True,
            if_version=start.if_version if start.HasField("if_version") else None,
        )

    async with call.open_session(start) as session:
        session.require(WRITE_TOOL)
        info = await upload.into(call, session, write)
    return messages.FileWriteStreamResponse(info_json=render_json(info))


async def walk(call: RpcCall, request: messages.WalkRequest) -> AsyncIterator[messages.WalkResponse]:
    """Send the properties of everything beneath a directory."""
    async with call.open_session(request) as session:
        session.require(LIST_TOOL)
        entries: list[FileInfo] = []
        async for info in session.files.walk(request_path(request, ".")):
            entries.append(info)
            if len(entries) == ENTRIES:
                yield messages.WalkResponse(entries_json=render_json(entries))
                entries.clear()
        if entries:
            yield messages.WalkResponse(entries_json=render_json(entries))


async def archive(call: RpcCall, request: messages.ArchiveRequest) -> AsyncIterator[messages.ArchiveResponse]:
    """Send a directory or a file as an archive, and report what was left out."""
    part = messages.ArchiveResponse
    left_out: deque[LeftOut] = deque()
    async with call.open_session(request) as session:
        session.require(READ_TOOL)
        with reject_invalid_values():
            pieces = session.files.archive(
                request_path(request, "."), format=request.format or "tar", left_out=left_out.append
            )
            async with closing_stream(pieces):
                async for piece in pieces:
                    for chunk in slices(piece, CHUNK_BYTES):
                        yield part(data=chunk)
                    while left_out:
                        yield part(left_out_json=render_json(left_out.popleft()))
        while left_out:
            yield part(left_out_json=render_json(left_out.popleft()))


async def extract(
    call: RpcCall, requests: AsyncIterator[messages.ExtractRequest]
) -> messages.ExtractResponse:
    """Extract an archive, all of its members or none."""
    upload = UploadStream(requests)
    start: messages.ExtractStart = await upload.start()
    limits = await parse_value(start.limits_json, "limits_json", ExtractLimits)
    if call.caller.role is not None:
        _require_within_default(limits)

    def unpack(pieces: Iterator[bytes]) -> Any:  # Any: the result of the library
        with reject_invalid_values():
            return call.service.extract(
                call.caller,
                session,
                Announced(pieces, None),
                request_path(start, "."),
                format=start.format or None,
                overwrite=start.overwrite,
                limits=limits,
            )

    async with call.open_session(start) as session:
        session.require(WRITE_TOOL)
        extracted = await upload.into(call, session, unpack)
    return messages.ExtractResponse(result_json=render_json(extracted))


def _require_within_default(limits: ExtractLimits | None) -> None:
    """Require that no limit is above its default.

    Raises:
        RequestError: One is.
    """
    for each in () if limits is None else fields(ExtractLimits):
        requested, default = getattr(limits, each.name), each.default
        if requested is None or requested > default:
            raise RequestError(f"limits_json: {each.name} must be at most {default}, not {requested}")


async def changes(call: RpcCall, request: messages.ChangesRequest) -> AsyncIterator[messages.ChangesResponse]:
    """Send the journal records after a sequence number, and new ones if the request follows the journal."""
    service, session_id, role = call.service, request.session_id, call.role_of(request)
    since = request.since
    if since < 0:
        raise RequestError(f"since must be at least 0, not {since}")
    if request.follow:
        async with closing_stream(service.follow(call.caller, session_id, since, role=role)) as pages:
            async for page in pages:
                if call.is_stopping():
                    raise stopping_error()
                if page.next > since:
                    since = page.next
                    yield messages.ChangesResponse(events_json=render_json(page.events), next=since)
        return
    while (page := await service.changes(call.caller, session_id, since, role=role)).next > since:
        since = page.next
        yield messages.ChangesResponse(events_json=render_json(page.events), next=since)
