"""Translates error codes of carrel into those of deepagents."""

from __future__ import annotations

from deepagents.backends.protocol import FILE_NOT_FOUND, INVALID_PATH, IS_DIRECTORY, PERMISSION_DENIED

from carrel.errors import CarrelError

NOT_A_DIRECTORY = "not_a_directory"
"""Not part of the protocol, but expected by deepagents in results of `ls`."""

_CODES = {
    "path.missing": FILE_NOT_FOUND,
    "path.loop": FILE_NOT_FOUND,
    "path.not_directory": NOT_A_DIRECTORY,
    "path.is_directory": IS_DIRECTORY,
    "path.invalid": INVALID_PATH,
    "path.absolute": INVALID_PATH,
    "path.escape": INVALID_PATH,
    "path.into_itself": INVALID_PATH,
    "access.denied": PERMISSION_DENIED,
    "access.outside": PERMISSION_DENIED,
    "path.permission": PERMISSION_DENIED,
}
_ADVICE = {
    "edit.ambiguous": "; set replace_all to replace multiple matches, or include more surrounding text to"
    " match only one",
}


def protocol_error(error: CarrelError) -> str:
    """The protocol's code for *error*, or its message if there is no code."""
    return _CODES.get(error.code) or error.message + _ADVICE.get(error.code, "")


def error_message(path: str, error: CarrelError) -> str:
    """The protocol's error text for an operation on *path*."""
    return message_about(path, protocol_error(error))


def message_about(path: str, problem: str) -> str:
    """An error text in the form of deepagents."""
    return f"File '{path}': {problem}"
