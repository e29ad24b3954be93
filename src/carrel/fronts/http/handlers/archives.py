"""Download a directory as an archive, and extract an uploaded archive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from msgspec import Struct

from carrel.errors import RequestError
from carrel.fronts.http.handlers.upload import Upload
from carrel.fronts.http.request import Request
from carrel.remote.json_codec import render
from carrel.service.operations import READ_TOOL, WRITE_TOOL
from carrel.workspace.archive.create import ArchiveFormat
from carrel.workspace.archive.extract import Extracted
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import ExtractLimits

MEDIA_TYPES = {
    ArchiveFormat.TAR: "application/x-tar",
    ArchiveFormat.TAR_GZ: "application/gzip",
    ArchiveFormat.TAR_BZ2: "application/x-bzip2",
    ArchiveFormat.TAR_XZ: "application/x-xz",
    ArchiveFormat.ZIP: "application/zip",
}


class PackQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The directory to download, and the format."""

    path: str = "."
    format: ArchiveFormat = ArchiveFormat.TAR


class ExtractQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to extract an archive, and its limits."""

    path: str = "."
    format: ArchiveFormat | None = None
    """Detected from the first bytes by default."""
    overwrite: bool = False
    archive_bytes: int | None = None
    extracted_bytes: int | None = None
    members: int | None = None
    header_bytes: int | None = None
    ratio: int | None = None


async def pack(request: Request) -> None:
    """Send a directory or a file as an archive."""
    query = request.query(PackQuery)
    async with request.open_session() as session:
        session.require(READ_TOOL)
        pieces = session.files.archive(query.path, format=query.format)
        # Errors before the first piece become an error response.
        first = await anext(pieces, b"")
        await request.start_response(
            200,
            [
                (b"content-type", MEDIA_TYPES[query.format].encode("ascii")),
                (b"content-disposition", f'attachment; filename="workspace.{query.format}"'.encode("ascii")),
                (b"cache-control", b"no-store"),
            ],
        )
        await request.stream(_chain(first, pieces))


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def extract(request: Request) -> None:
    """Extract an archive, all of its members or none."""
    query = request.query(ExtractQuery)
    async with request.open_session() as session:
        session.require(WRITE_TOOL)
        limits = _limits(query)
        service = request.app.service

        def run(pieces: Iterator[bytes]) -> Extracted:
            return service.extract(
                request.acting,
                session,
                Announced(pieces, request.content_length),
                query.path,
                format=query.format,
                overwrite=query.overwrite,
                limits=limits,
            )

        extracted = await Upload(request.body_chunks(), service.waiting_threads).run(run)
    await request.send_json(200, render(extracted))


def _limits(query: ExtractQuery) -> ExtractLimits:
    """Return the default limits, lowered where the request says so.

    Raises:
        RequestError: A limit is negative, or above the default.
    """
    default = ExtractLimits()
    requested: dict[str, int] = {}
    for name in default.__dataclass_fields__:
        value, limit = getattr(query, name), getattr(default, name)
        if value is None:
            continue
        if not 0 <= value <= limit:
            raise RequestError(f"{name} must be 0 to {limit}, not {value}")
        requested[name] = value
    return ExtractLimits(**requested)
