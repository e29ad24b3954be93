"""Error messages of commands: the wording of `strerror` for each file error."""

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

_MESSAGES: dict[type[CarrelError], str] = {
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
    """Return the wording of `strerror` for *error*, or its own message if there is none."""
    return _MESSAGES.get(type(error), error.message)


def is_denied(error: CarrelError) -> bool:
    """Whether a rule of the sandbox denied the operation; the message of the error is then the whole line."""
    return isinstance(error, AccessError | OutsideError)
