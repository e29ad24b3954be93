"""The rule for session ids."""

from __future__ import annotations

import re

from carrel.errors import SessionIdError

ID_CHARACTERS = 128

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*", re.ASCII)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\.|$)", re.ASCII | re.IGNORECASE)


def require_session_id(session_id: object) -> str:
    """Return *session_id* if it is valid in every interface.

    An id has 1 to 128 letters, digits, `-`, `_` and single dots in between; it begins with a letter, a digit
    or `_` and is not a device name of Windows.

    Raises:
        SessionIdError: It is invalid; the message says why.
    """
    if not isinstance(session_id, str):
        raise SessionIdError(f"session id must be str, not {type(session_id).__name__}")
    session_id = str.__str__(session_id)
    if problem := id_problem(session_id):
        shown = session_id if len(session_id) <= ID_CHARACTERS else session_id[:20] + "..."
        raise SessionIdError(f"invalid session id {shown!r}: {problem}")
    return session_id


def id_problem(session_id: str) -> str | None:
    """Return why *session_id*, or another name under the same rule, is invalid; `None` if it is valid."""
    if not session_id:
        return "it is empty"
    if len(session_id) > ID_CHARACTERS:
        return f"too long (max {ID_CHARACTERS} chars)"
    if "/" in session_id or "\\" in session_id:
        return "it must not contain path separators"
    if not _ID.fullmatch(session_id):
        return "only letters, digits, '-', '_' and single dots inside are allowed"
    if _DEVICE.match(session_id):
        return "it is a device name on Windows"
    return None
