"""Error messages of commands: the usual wording of each file error."""

from __future__ import annotations

from carrel.errors import (
    AccessError,
    BusyError,
    CarrelError,
    DiskFullError,
    ExistsError,
    HostDeniedError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
    NotRegularError,
    OutsideError,
)

_WORDS: dict[type[CarrelError], str] = {
    MissingError: "No such file or directory",
    ExistsError: "File exists",
    IsDirectoryError: "Is a directory",
    NotDirectoryError: "Not a directory",
    NotEmptyError: "Directory not empty",
    NotRegularError: "No such device or address",
    LoopError: "Too many levels of symbolic links",
    HostDeniedError: "Permission denied",
    BusyError: "Resource temporarily unavailable",
    DiskFullError: "No space left on device",
}


def strerror(error: CarrelError) -> str:
    """The usual words for *error*, or its own message where there are none."""
    return _WORDS.get(type(error), error.message)


def is_denied(error: CarrelError) -> bool:
    """Whether a rule of the sandbox said no; its message is then the whole line."""
    return isinstance(error, AccessError | OutsideError)
