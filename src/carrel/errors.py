"""The tree of errors.

Every error a caller may catch derives from `CarrelError` and from the builtin that people already catch:

    CarrelError
    ├── PathError           ValueError            path.invalid        not a valid path
    │   ├── AbsoluteError   ValueError            path.absolute       absolute where it must be relative
    │   ├── EscapeError     ValueError            path.escape         leads out of its root
    │   │   └── OutsideError    + PermissionError  access.outside     covered by no rule
    │   └── IntoItselfError ValueError, OSError   path.into_itself    a directory moved or copied into itself
    ├── AccessError         PermissionError       access.denied       denied by a rule
    ├── MissingError        FileNotFoundError     path.missing        does not exist
    ├── ExistsError         FileExistsError       path.exists         already exists
    ├── IsDirectoryError    IsADirectoryError     path.is_directory   is a directory
    ├── NotDirectoryError   NotADirectoryError    path.not_directory  is not a directory
    ├── NotRegularError     OSError               path.not_regular    a FIFO, socket or device
    ├── NotEmptyError       OSError               path.not_empty      the directory is not empty
    ├── LoopError           OSError               path.loop           too many links
    ├── HostDeniedError     PermissionError       path.permission     denied by the permissions on the host
    ├── ChangedError        OSError               path.changed        changed since the caller read it
    ├── BusyError           BlockingIOError       path.busy           try again later
    ├── LimitError          OSError               limit.*             a limit would be exceeded
    ├── QuotaError          OSError               quota.*             the session's quota would be exceeded
    ├── DiskError           OSError               disk.error          the host's disk failed
    │   ├── DiskFullError   OSError               disk.full           the host's disk is full
    │   └── DiskLowError    OSError               disk.low            less free space than must stay free
    ├── ClosedError         ValueError            workspace.closed    used after close()
    ├── UnavailableError    OSError               sessions.unavailable  the sessions directory cannot be used
    ├── SessionIdError      ValueError            session.invalid_id  not a valid session id
    ├── SessionExistsError  FileExistsError       session.exists      the id is taken
    ├── SessionMissingError FileNotFoundError     session.missing     no session has that id
    ├── TextError           ValueError            text.encoding       not text in that encoding
    ├── EditError           ValueError            edit.*              the edit cannot be applied
    ├── PatternError        ValueError            pattern.invalid     not a valid glob or regular expression
    ├── RotatedError        LookupError           journal.rotated     those records were rotated out
    ├── ArchiveError        ValueError            archive.invalid     not an archive, or a corrupt one
    ├── ConfigError         ValueError            config.invalid      a setting is invalid
    ├── ShellSyntaxError    ValueError            shell.syntax        a command line that cannot be parsed
    │   └── MetacharacterError  ValueError        shell.metacharacter  a shell operator that is not allowed
    ├── CommandDeniedError  PermissionError       shell.command       no such command, or not allowed here
    ├── ToolError           ValueError            tool.*              an invalid tool call
    ├── PolicyValidationError   ValueError        policy.invalid      a policy field is invalid
    ├── SandboxExecutionError   RuntimeError      runtime.failed      guest code cannot be run safely
    ├── RuntimeMissingError FileNotFoundError     runtime.missing     the engine is not installed
    ├── RuntimeDisabledError    PermissionError   runtime.disabled    guest code is disabled
    ├── UnauthenticatedError    PermissionError   caller.unknown      unknown caller, or no key
    ├── KeyExistsError      ValueError            key.exists          the name of the key is taken
    ├── KeyMissingError     LookupError           key.missing         no key has that name
    ├── RoleDeniedError     PermissionError       access.role         denied by the caller's role
    ├── RequestError        ValueError            request.invalid     an invalid request
    │   └── UnknownRequestError LookupError       request.unknown     no such operation
    ├── StoppingError       ConnectionAbortedError  service.stopping  the service is shutting down
    ├── UnreachableError    ConnectionRefusedError  service.unreachable  no service answers at that address
    ├── EngineError         ConnectionRefusedError  engine.*          no usable Docker engine
    └── ContainerError      OSError               container.*         a container cannot be used

`code` is a promise, wording is not. Messages hold paths as the caller wrote them, never a host path.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import ClassVar


class CarrelError(Exception):
    """Base class of every error that carrel raises."""

    code: ClassVar[str] = "carrel.error"
    number: ClassVar[int | None] = None
    """The `errno` of errors that are also an `OSError`."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        """The path as it was requested, if the error is about one."""
        if self.number is not None:
            for name, value in (("errno", self.number), ("strerror", message), ("filename", path)):
                setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return rebuild, (type(self), self.message, self.path, self.__dict__.copy())


class PathError(CarrelError, ValueError):
    """The text is not a path that carrel accepts."""

    code = "path.invalid"


class AbsoluteError(PathError):
    """The path is absolute, and absolute paths are not allowed here."""

    code = "path.absolute"


class EscapeError(PathError):
    """The path leads out of the workspace."""

    code = "path.escape"


class OutsideError(EscapeError, PermissionError):
    """The path is absolute, and no rule of the policy covers it."""

    code = "access.outside"
    number = errno.EACCES


class IntoItselfError(PathError, OSError):
    """A directory cannot be moved or copied into itself."""

    code = "path.into_itself"
    number = errno.EINVAL


class AccessError(CarrelError, PermissionError):
    """A rule of the policy does not allow this access."""

    code = "access.denied"
    number = errno.EACCES


class MissingError(CarrelError, FileNotFoundError):
    """The path does not exist."""

    code = "path.missing"
    number = errno.ENOENT


class ExistsError(CarrelError, FileExistsError):
    """The path already exists."""

    code = "path.exists"
    number = errno.EEXIST


class IsDirectoryError(CarrelError, IsADirectoryError):
    """The path is a directory, not a file."""

    code = "path.is_directory"
    number = errno.EISDIR


class NotDirectoryError(CarrelError, NotADirectoryError):
    """Not a directory."""

    code = "path.not_directory"
    number = errno.ENOTDIR


class NotRegularError(CarrelError, OSError):
    """The path is a FIFO, a socket or a device, which cannot be read or written as a file."""

    code = "path.not_regular"
    number = errno.ENXIO


class NotEmptyError(CarrelError, OSError):
    """The directory is not empty."""

    code = "path.not_empty"
    number = errno.ENOTEMPTY


class LoopError(CarrelError, OSError):
    """The path goes through too many links."""

    code = "path.loop"
    number = errno.ELOOP


class HostDeniedError(CarrelError, PermissionError):
    """The file's permissions on the host deny it."""

    code = "path.permission"
    number = errno.EACCES


class ChangedError(CarrelError, OSError):
    """Someone else changed the file after the caller read it."""

    code = "path.changed"
    number = errno.ESTALE

    def __init__(self, message: str, *, path: str | None = None, version: str | None = None) -> None:
        super().__init__(message, path=path)
        self.version = version
        """The current version, or `None` if the file is gone or its version is unknown."""


class BusyError(CarrelError, BlockingIOError):
    """Something else is using or moving it; the same call may succeed later."""

    code = "path.busy"
    number = errno.EAGAIN


class LimitError(CarrelError, OSError):
    """A limit would be exceeded; the message names the limit and the requested amount."""

    number = errno.EFBIG
    retry_after_seconds: float | None = None
    """Seconds after which the same call may succeed; `None` if unknown or never."""

    def __init__(
        self,
        what: str,
        *,
        limit: int,
        asked: int | None,
        message: str,
        path: str | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message, path=path)
        self.code = f"limit.{what}"  # type: ignore[misc]  # one class, a code per limit
        self.limit = limit
        self.asked = asked
        self.retry_after_seconds = retry_after_seconds


class QuotaError(CarrelError, OSError):
    """The session's quota would be exceeded; the message has the amount and the limit."""

    number = errno.EDQUOT

    def __init__(self, what: str, *, limit: int, asked: int, message: str, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.code = f"quota.{what}"  # type: ignore[misc]  # one class, a code per quota
        self.limit = limit
        self.asked = asked


class DiskError(CarrelError, OSError):
    """The host's disk failed to carry out an operation."""

    code = "disk.error"
    number = errno.EIO


class DiskFullError(DiskError):
    """The host's disk is full."""

    code = "disk.full"
    number = errno.ENOSPC


class DiskLowError(DiskError):
    """The host's disk has less free space than must stay free."""

    code = "disk.low"
    number = errno.ENOSPC


class ClosedError(CarrelError, ValueError):
    """The workspace is closed."""

    code = "workspace.closed"


class UnavailableError(CarrelError, OSError):
    """The sessions directory cannot be used safely."""

    code = "sessions.unavailable"
    number = errno.EIO


class SessionIdError(CarrelError, ValueError):
    """The text is not a valid session id."""

    code = "session.invalid_id"


class SessionExistsError(CarrelError, FileExistsError):
    """The session id is already taken."""

    code = "session.exists"
    number = errno.EEXIST


class SessionMissingError(CarrelError, FileNotFoundError):
    """No session has that id."""

    code = "session.missing"
    number = errno.ENOENT


class TextError(CarrelError, ValueError):
    """The bytes are not text in that encoding, or the encoding is not supported."""

    code = "text.encoding"


class EditError(CarrelError, ValueError):
    """The edit cannot be applied; the file is unchanged."""

    def __init__(self, problem: str, message: str, *, path: str) -> None:
        super().__init__(message, path=path)
        self.code = f"edit.{problem}"  # type: ignore[misc]  # one class, a code per problem


class PatternError(CarrelError, ValueError):
    """The glob or regular expression is invalid."""

    code = "pattern.invalid"


class RotatedError(CarrelError, LookupError):
    """The requested journal records were rotated out; start again from the oldest record that is kept."""

    code = "journal.rotated"


class ArchiveError(CarrelError, ValueError):
    """Not an archive in a supported format, or one that is corrupt or contradicts itself."""

    code = "archive.invalid"


class ConfigError(CarrelError, ValueError):
    """A setting is invalid."""

    code = "config.invalid"


class ShellSyntaxError(CarrelError, ValueError):
    """The command line cannot be parsed; nothing was run."""

    code = "shell.syntax"

    def __init__(self, message: str, *, position: int | None = None, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.position = position
        """The character where parsing failed, counted from 1."""


class MetacharacterError(ShellSyntaxError):
    """The command line contains a shell operator that is not allowed; nothing was run."""

    code = "shell.metacharacter"
    character: str | None = None

    @classmethod
    def of(cls, character: str, position: int, why: str = "") -> MetacharacterError:
        """Return the error about *character* at *position*; *why* adds a reason to the message."""
        error = cls(
            f"Shell metacharacter not allowed: {character} (at character {position}{why})", position=position
        )
        error.character = character
        return error


class CommandDeniedError(CarrelError, PermissionError):
    """The command does not exist or is not allowed here."""

    code = "shell.command"
    number = errno.EACCES


class ToolError(CarrelError, ValueError):
    """The tool call is invalid; nothing was done."""

    def __init__(self, problem: str, message: str, *, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.code = f"tool.{problem}"  # type: ignore[misc]  # one class, a code per problem


class PolicyValidationError(CarrelError, ValueError):
    """The policy for guest code is invalid; `field` names the field."""

    code = "policy.invalid"

    def __init__(self, message: str, *, field: str | None = None, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.field = field
        """The invalid field, or `None` if the policy cannot be parsed at all."""


class SandboxExecutionError(CarrelError, RuntimeError):
    """The engine cannot run guest code with all its guarantees, so it does not run it."""

    code = "runtime.failed"


class RuntimeMissingError(CarrelError, FileNotFoundError):
    """The engine for guest code is not installed, or its files are missing."""

    code = "runtime.missing"
    number = errno.ENOENT


class RuntimeDisabledError(CarrelError, PermissionError):
    """Guest code is disabled by the configuration."""

    code = "runtime.disabled"
    number = errno.EACCES


class UnauthenticatedError(CarrelError, PermissionError):
    """The caller could not be authenticated; the message is the same whatever the reason."""

    code = "caller.unknown"
    number = errno.EACCES


class KeyExistsError(CarrelError, ValueError):
    """A key with that name already exists."""

    code = "key.exists"


class KeyMissingError(CarrelError, LookupError):
    """No active key has that name or id."""

    code = "key.missing"


class RoleDeniedError(CarrelError, PermissionError):
    """The caller's role does not allow this, or the caller may not use that role."""

    code = "access.role"
    number = errno.EACCES


class RequestError(CarrelError, ValueError):
    """The request to the service is invalid; nothing was done."""

    code = "request.invalid"


class UnknownRequestError(RequestError, LookupError):
    """The service has no such operation or resource."""

    code = "request.unknown"


class StoppingError(CarrelError, ConnectionAbortedError):
    """The service is shutting down and accepts no more calls."""

    code = "service.stopping"
    number = errno.ECONNABORTED


class UnreachableError(CarrelError, ConnectionRefusedError):
    """No service answers at that address."""

    code = "service.unreachable"
    number = errno.ECONNREFUSED


class EngineError(CarrelError, ConnectionRefusedError):
    """No usable Docker engine: it is missing, refuses the connection, is too slow or too old, or failed."""

    number = errno.ECONNREFUSED
    detail: str = ""
    """The engine's own message; for the operator only, because it may contain host paths."""

    def __init__(self, problem: str, message: str, *, path: str | None = None, detail: str = "") -> None:
        self.code = f"engine.{problem}"  # type: ignore[misc]  # one class, a code per problem
        super().__init__(message, path=path)
        if detail:
            self.detail = detail

    @property
    def problem(self) -> str:
        """The code without its area, such as `missing`."""
        return self.code.partition(".")[2]


class ContainerError(CarrelError, OSError):
    """The container cannot be used: it or its image is missing, or it is in the wrong state."""

    number = errno.EIO
    detail: str = ""
    """The engine's own message; for the operator only, because it may contain host paths."""

    def __init__(self, problem: str, message: str, *, path: str | None = None, detail: str = "") -> None:
        self.code = f"container.{problem}"  # type: ignore[misc]  # one class, a code per problem
        super().__init__(message, path=path)
        if detail:
            self.detail = detail

    @property
    def problem(self) -> str:
        """The code without its area, such as `missing`."""
        return self.code.partition(".")[2]


def class_of(code: str) -> type[CarrelError]:
    """Return the class of errors with that *code*; `CarrelError` for a code unknown to this version."""
    return _classes().get(code) or _AREAS.get(code.partition(".")[0], CarrelError)


_AREAS: dict[str, type[CarrelError]] = {
    "limit": LimitError,
    "quota": QuotaError,
    "edit": EditError,
    "tool": ToolError,
    "engine": EngineError,
    "container": ContainerError,
}
"""Classes with one code per case, by their area."""


@cache
def _classes() -> dict[str, type[CarrelError]]:
    found: dict[str, type[CarrelError]] = {}
    kinds = [CarrelError]
    while kinds:
        kind = kinds.pop()
        found[kind.code] = kind
        # Subclasses in other modules are private to them.
        kinds.extend(each for each in kind.__subclasses__() if each.__module__ == __name__)
    found.pop(CarrelError.code)
    return found


def rebuild(kind: type[CarrelError], message: str, path: str | None, state: dict[str, object]) -> CarrelError:
    """Rebuild an error after pickling or transport, whatever arguments its constructor takes."""
    base = OSError if issubclass(kind, OSError) else Exception
    error = base.__new__(kind)
    assert isinstance(error, CarrelError)  # noqa: S101  # for the type checker
    CarrelError.__init__(error, message, path=path)
    error.__dict__.update(state)
    return error
