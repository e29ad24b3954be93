"""Error codes of carrel as those of deepagents; the one place where they are translated."""

from __future__ import annotations

from deepagents.backends.protocol import FILE_NOT_FOUND, INVALID_PATH, IS_DIRECTORY, PERMISSION_DENIED

from carrel.errors import CarrelError

NOT_A_DIRECTORY = "not_a_directory"
"""No word of the protocol, but one that deepagents looks for in the answer of `ls`."""

_WORDS = {
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
    "edit.ambiguous": "; of multiple matches all are replaced with replace_all, or one if more of what is"
    " around it is given",
}


def protocol_error(error: CarrelError) -> str:
    """The word of the protocol for *error*, or its message where the protocol has none."""
    return _WORDS.get(error.code) or error.message + _ADVICE.get(error.code, "")


def error_message(path: str, error: CarrelError) -> str:
    """The same about the file that was asked for."""
    return message_about(path, protocol_error(error))


def message_about(path: str, what: str) -> str:
    """What is wrong with the file that was asked for."""
    return f"File '{path}': {what}"
