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
    """What to pack."""

    path: str = "."
    format: ArchiveFormat = ArchiveFormat.TAR


class ExtractQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to extract an archive, and how much it may hold."""

    path: str = "."
    format: ArchiveFormat | None = None
    """What its first bytes say by default."""
    overwrite: bool = False
    archive_bytes: int | None = None
    extracted_bytes: int | None = None
    members: int | None = None
    header_bytes: int | None = None
    ratio: int | None = None


async def pack(call: Request) -> None:
    """Send a directory or a file as an archive."""
    query = call.query(PackQuery)
    async with call.open_session() as session:
        session.require(READ_TOOL)
        pieces = session.files.archive(query.path, format=query.format)
        # What makes the archive impossible is told before anything is sent.
        first = await anext(pieces, b"")
        await call.begin(
            200,
            [
                (b"content-type", MEDIA_TYPES[query.format].encode("ascii")),
                (b"content-disposition", f'attachment; filename="workspace.{query.format}"'.encode("ascii")),
                (b"cache-control", b"no-store"),
            ],
        )
        await call.stream(_from(first, pieces))


async def _from(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def extract(call: Request) -> None:
    """Make the members of an archive, all of them or none."""
    query = call.query(ExtractQuery)
    async with call.open_session() as session:
        session.require(WRITE_TOOL)
        limits = _limits(query)
        service = call.app.service

        def work(pieces: Iterator[bytes]) -> Extracted:
            return service.extract(
                call.who,
                session,
                Announced(pieces, call.content_length),
                query.path,
                format=query.format,
                overwrite=query.overwrite,
                limits=limits,
            )

        extracted = await Upload(call.pieces(), service.waiting_threads).through(work)
    await call.json(200, render(extracted))


def _limits(query: ExtractQuery) -> ExtractLimits:
    """The usual ceilings, or lower ones where the request names them.

    Raises:
        RequestError: One is no ceiling.
    """
    usual = ExtractLimits()
    asked: dict[str, int] = {}
    for name in usual.__dataclass_fields__:
        value, most = getattr(query, name), getattr(usual, name)
        if value is None:
            continue
        if not 0 <= value <= most:
            raise RequestError(f"{name} must be 0 to {most}, not {value}")
        asked[name] = value
    return ExtractLimits(**asked)
