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
"""The media type of a directory, which is read as a list of its entries."""
_JSON = "application/json"


class Resources:
    """Lists and reads the files of the session that a client is bound to, or else the caller's sessions."""

    def __init__(self, service: Service, *, page: int = PAGE) -> None:
        self._service = service
        self._page = page

    async def list(self, client: ClientContext, cursor: str | None) -> ListResourcesResult:
        """Return a page of resources ordered by name, and the cursor of the next page."""
        after = None if cursor is None else _parse_cursor(cursor)
        if client.caller.session is None:
            return await self._sessions(client, after)
        async with self._service.session_access.open(
            client.caller, client.caller.session, create=True
        ) as session:
            session.require("file_list")
            found = await _files(session, after or "")
        page = found[: self._page]
        more = _render_cursor(page[-1].path) if len(found) > len(page) else None
        return ListResourcesResult(resources=[_resource(info) for info in page], next_cursor=more)

    async def _sessions(self, client: ClientContext, after: str | None) -> ListResourcesResult:
        page = await self._service.sessions.list(client.caller, after=after, count=self._page)
        listed = [
            Resource(name=each.session_id, uri=render_uri(each.session_id, "."), mime_type=DIRECTORY)
            for each in page.sessions
        ]
        return ListResourcesResult(
            resources=listed, next_cursor=None if page.next is None else _render_cursor(page.next)
        )

    def templates(self, client: ClientContext) -> ListResourceTemplatesResult:
        """Return the template of the URI of any file."""
        session = "" if client.is_bound else "{session}"
        template = ResourceTemplate(
            name="file",
            title="A file or directory of a session",
            uri_template=f"{SCHEME}://{session}/{{+path}}",
            description="The path is relative to the workspace. A directory is read as a list in JSON.",
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, client: ClientContext, uri: str) -> ReadResourceResult:
        """Return the content of a file, as text if possible, or the entries of a directory."""
        address = parse_uri(uri, client.caller.session)
        async with self._service.session_access.open(client.caller, address.session) as session:
            session.require("file_read")
            info = await session.files.stat(address.path)
            if info.is_directory:
                session.require("file_list")
                text = _listing(await session.files.list(address.path), uri)
                return _read(TextResourceContents(uri=uri, mime_type=_JSON, text=text))
            max_bytes = self._service.settings.files.max_file_bytes
            info, data = await session.files.read_with_info(address.path, length=max_bytes + 1)
        require_size(info, max_bytes, address.path)
        content = decode_content(data, None, "utf-8", address.path).text
        kind = media_type(info.path, data, is_text=content is not None)
        if content is not None:
            return _read(TextResourceContents(uri=uri, mime_type=kind, text=content))
        blob = base64.b64encode(data).decode("ascii")
        return _read(BlobResourceContents(uri=uri, mime_type=kind, blob=blob))


def _read(contents: TextResourceContents | BlobResourceContents) -> ReadResourceResult:
    return ReadResourceResult(contents=[contents])


async def _files(session: CallerSession, after: str) -> list[FileInfo]:
    """Return the regular files whose paths come after *after*."""
    found = []
    # Files beyond the depth limit are left out.
    with suppress(LimitError):
        async for info in session.files.walk():
            if info.is_file and info.path > after:
                found.append(info)
    return sorted(found, key=lambda info: info.path)


def _resource(info: FileInfo) -> Resource:
    # Whether a file is text is known only after reading it; its name is a good enough guess.
    kind = media_type(info.path, b"", is_text=True)
    modified = datetime.fromtimestamp(info.modified_ns // 10**9, UTC).isoformat()
    return Resource(
        name=_printable(info.path),
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
                "name": _printable(info.name),
                "uri": f"{base}/{render_uri(None, info.name).removeprefix(f'{SCHEME}:///')}",
                "kind": info.kind.value,
                "size_bytes": info.size_bytes,
            }
            for info in entries
        ],
        ensure_ascii=False,
    )


def _printable(name: str) -> str:
    """Escape the bytes of a name that are not UTF-8; the URI has the exact name."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _render_cursor(last: str) -> str:
    return base64.urlsafe_b64encode(last.encode("utf-8", "surrogateescape")).decode("ascii")


def _parse_cursor(cursor: str) -> str:
    """Return the name after which a page begins.

    Raises:
        RequestError: The cursor is invalid.
    """
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        raise RequestError("the cursor is invalid; begin again without one") from None
