"""`carrel://SESSION/PATH`: the URI of a file as an MCP resource."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from carrel.errors import RequestError
from carrel.paths.session_id import require_session_id

SCHEME = "carrel"
SHOWN_CHARACTERS = 200
"""How much of an invalid URI an error message repeats."""

_ADDRESS = re.compile(rf"{SCHEME}://([^/?#]*)(?:/([^?#]*))?", re.IGNORECASE | re.DOTALL)


class ResourceUri(NamedTuple):
    """A file or directory of a session, which may not exist, or be outside of the workspace."""

    session: str
    path: str
    """A path for the workspace; `.` for its root."""


def render_uri(session: str | None, path: str) -> str:
    """Return the URI of *path*; without a session for clients that are bound to one."""
    quoted = "" if path == "." else quote_from_bytes(path.encode("utf-8", "surrogateescape"))
    return f"{SCHEME}://{session or ''}/{quoted}"


def parse_uri(uri: str, bound: str | None) -> ResourceUri:
    """Parse a URI for a caller that is *bound* to a session, or to none.

    It is decoded once, and only here: anything that is still encoded afterwards is part of a name.

    Raises:
        RequestError: It is not a URI of a file, or the session is missing.
        SessionIdError: The session id is invalid.
    """
    found = _ADDRESS.fullmatch(uri)
    if found is None:
        raise RequestError(f"not the URI of a file: {uri[:SHOWN_CHARACTERS]!r}")
    session = found[1] or bound
    if session is None:
        raise RequestError(f"the URI names no session: {uri[:SHOWN_CHARACTERS]!r}")
    path = unquote_to_bytes(found[2] or "").decode("utf-8", "surrogateescape")
    return ResourceUri(require_session_id(session), path or ".")
