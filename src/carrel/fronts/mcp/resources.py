"""`Resources`: list and read the files of a session as MCP resources."""

from __future__ import annotations

import base64
import binascii
import json
from contextlib import suppress
from datetime import UTC, datetime

from mcp_types import (
    Annotations,
    BlobResourceContents,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from carrel.errors import LimitError, RequestError
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.resource_uri import SCHEME, parse_uri, render_uri
from carrel.service.service import Service
from carrel.service.sessions.caller_session import CallerSession
from carrel.tools.core.encoding import decode_content
from carrel.tools.operations.reading import require_size
from carrel.tools.results.media import media_type
from carrel.values import FileInfo

PAGE = 200
DIRECTORY = "inode/directory"
"""The media type of a directory, which is read as a list of what is in it."""
_JSON = "application/json"


class Resources:
    """Lists and reads them: the files of the session that a caller is bound to, or else its sessions."""

    def __init__(self, service: Service, *, page: int = PAGE) -> None:
        self._service = service
        self._page = page

    async def list(self, visit: ClientContext, cursor: str | None) -> ListResourcesResult:
        """Some of them in the order of their names, and where to go on."""
        after = None if cursor is None else _parse_cursor(cursor)
        if visit.caller.session is None:
            return await self._sessions(visit, after)
        async with self._service.session_access.open(
            visit.caller, visit.caller.session, create=True
        ) as session:
            session.require("file_list")
            found = await _files(session, after or "")
        page = found[: self._page]
        more = _render_cursor(page[-1].path) if len(found) > len(page) else None
        return ListResourcesResult(resources=[_resource(info) for info in page], next_cursor=more)

    async def _sessions(self, visit: ClientContext, after: str | None) -> ListResourcesResult:
        page = await self._service.sessions.list(visit.caller, after=after, count=self._page)
        listed = [
            Resource(name=each.session_id, uri=render_uri(each.session_id, "."), mime_type=DIRECTORY)
            for each in page.sessions
        ]
        return ListResourcesResult(
            resources=listed, next_cursor=None if page.next is None else _render_cursor(page.next)
        )

    def templates(self, visit: ClientContext) -> ListResourceTemplatesResult:
        """How the address of any file is made."""
        session = "" if visit.is_bound else "{session}"
        template = ResourceTemplate(
            name="file",
            title="A file or directory of a session",
            uri_template=f"{SCHEME}://{session}/{{+path}}",
            description="The path is relative to the workspace. A directory is read as a list in JSON.",
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, visit: ClientContext, uri: str) -> ReadResourceResult:
        """The content of a file, as text where it is one; or what is in a directory."""
        address = parse_uri(uri, visit.caller.session)
        async with self._service.session_access.open(visit.caller, address.session) as session:
            session.require("file_read")
            info = await session.files.stat(address.path)
            if info.is_directory:
                session.require("file_list")
                text = _listing(await session.files.list(address.path), uri)
                return _read(TextResourceContents(uri=uri, mime_type=_JSON, text=text))
            most = self._service.settings.files.max_file_bytes
            info, data = await session.files.read_with_info(address.path, length=most + 1)
        require_size(info, most, address.path)
        text_of = decode_content(data, None, "utf-8", address.path).text
        kind = media_type(info.path, data, is_text=text_of is not None)
        if text_of is not None:
            return _read(TextResourceContents(uri=uri, mime_type=kind, text=text_of))
        blob = base64.b64encode(data).decode("ascii")
        return _read(BlobResourceContents(uri=uri, mime_type=kind, blob=blob))


def _read(contents: TextResourceContents | BlobResourceContents) -> ReadResourceResult:
    return ReadResourceResult(contents=[contents])


async def _files(session: CallerSession, after: str) -> list[FileInfo]:
    """The regular files whose paths come after *after*."""
    found = []
    # What is deeper than anybody may go is left out.
    with suppress(LimitError):
        async for info in session.files.walk():
            if info.is_file and info.path > after:
                found.append(info)
    return sorted(found, key=lambda info: info.path)


def _resource(info: FileInfo) -> Resource:
    # Whether a file is text is not known before it is read; its name says it well enough.
    kind = media_type(info.path, b"", is_text=True)
    modified = datetime.fromtimestamp(info.modified_ns // 10**9, UTC).isoformat()
    return Resource(
        name=_spoken(info.path),
        uri=render_uri(None, info.path),
        mime_type=kind,
        size=info.size_bytes,
        annotations=Annotations(last_modified=modified),
    )


def _listing(entries: list[FileInfo], uri: str) -> str:
    base = uri.rstrip("/")
    return json.dumps(
        [
            {
                "name": _spoken(info.name),
                "uri": f"{base}/{render_uri(None, info.name).removeprefix(f'{SCHEME}:///')}",
                "kind": info.kind.value,
                "size_bytes": info.size_bytes,
            }
            for info in entries
        ],
        ensure_ascii=False,
    )


def _spoken(name: str) -> str:
    """A name as UTF-8 can say it; the address has it as it is."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _render_cursor(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode("utf-8", "surrogateescape")).decode("ascii")


def _parse_cursor(cursor: str) -> str:
    """What a page ended with.

    Raises:
        RequestError: No page gave this cursor.
    """
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        raise RequestError("no page gave this cursor; begin again without one") from None
