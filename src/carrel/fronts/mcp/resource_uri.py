"""`carrel://SESSION/PATH`: the URI of a file as an MCP resource."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from carrel.errors import RequestError
from carrel.paths.session_id import require_session_id

SCHEME = "carrel"
SHOWN_CHARACTERS = 200
"""So much of an address that cannot be used is told again."""

_ADDRESS = re.compile(rf"{SCHEME}://([^/?#]*)(?:/([^?#]*))?", re.IGNORECASE | re.DOTALL)


class ResourceUri(NamedTuple):
    """A file or directory of a session; nothing says yet that it is there, or inside."""

    session: str
    path: str
    """As a workspace takes it, `.` for the whole."""


def render_uri(session: str | None, path: str) -> str:
    """The address of *path*; without a session for whoever is bound to one."""
    quoted = "" if path == "." else quote_from_bytes(path.encode("utf-8", "surrogateescape"))
    return f"{SCHEME}://{session or ''}/{quoted}"


def parse_uri(uri: str, bound: str | None) -> ResourceUri:
    """What *uri* means to a caller who is *bound* to a session, or to none.

    It is decoded once, and only here: whatever is still encoded then is a part of a name.

    Raises:
        RequestError: It is no such address, or names no session where one is needed.
        SessionIdError: The session it names cannot be one.
    """
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        raise RequestError(f"not an address of a file: {uri[:SHOWN_CHARACTERS]!r}")
    session = found[1] or bound
    if session is None:
        raise RequestError(f"the address names no session: {uri[:SHOWN_CHARACTERS]!r}")
    path = unquote_to_bytes(found[2] or "").decode("utf-8", "surrogateescape")
    return ResourceUri(require_session_id(session), path or ".")
