"""The tree of errors.

Every error a caller may catch derives from `CarrelError` and from the builtin that people already catch:

    CarrelError
    ├── PathError           ValueError            path.invalid        the text is not a path we accept
    │   ├── AbsoluteError   ValueError            path.absolute       it is absolute where it must not be
    │   ├── EscapeError     ValueError            path.escape         it leads out of its root
    │   │   └── OutsideError    + PermissionError  access.outside     no rule has it
    │   └── IntoItselfError ValueError, OSError   path.into_itself    a directory into its own inside
    ├── AccessError         PermissionError       access.denied       a rule says no
    ├── MissingError        FileNotFoundError     path.missing        nothing has that name
    ├── ExistsError         FileExistsError       path.exists         something has that name already
    ├── IsDirectoryError    IsADirectoryError     path.is_directory   a file was wanted
    ├── NotDirectoryError   NotADirectoryError    path.not_directory  a directory was wanted
    ├── NotRegularError     OSError               path.not_regular    a FIFO, socket or device
    ├── NotEmptyError       OSError               path.not_empty      the directory holds something
    ├── LoopError           OSError               path.loop           too many links
    ├── HostDeniedError     PermissionError       path.permission     the host's own permissions say no
    ├── ChangedError        OSError               path.changed        somebody else changed it meanwhile
    ├── BusyError           BlockingIOError       path.busy           try again later
    ├── LimitError          OSError               limit.*             a ceiling would be passed
    ├── QuotaError          OSError               quota.*             the session would hold too much
    ├── DiskError           OSError               disk.error          the host's disk failed
    │   ├── DiskFullError   OSError               disk.full           the host's disk is full
    │   └── DiskLowError    OSError               disk.low            it has less free than it must keep
    ├── ClosedError         ValueError            workspace.closed    used after close()
    ├── UnavailableError    OSError               sessions.unavailable  the sessions directory cannot be used
    ├── SessionIdError      ValueError            session.invalid_id  the id breaks the rule
    ├── SessionExistsError  FileExistsError       session.exists      the id is taken
    ├── SessionMissingError FileNotFoundError     session.missing     no session has that id
    ├── TextError           ValueError            text.encoding       bytes and encoding do not fit
    ├── EditError           ValueError            edit.*              the edit cannot be made
    ├── PatternError        ValueError            pattern.invalid     a glob or regular expression is wrong
    ├── RotatedError        LookupError           journal.rotated     those records are no longer kept
    ├── ArchiveError        ValueError            archive.invalid     no archive we read, or one that lies
    ├── ConfigError         ValueError            config.invalid      a setting is wrong
    ├── ShellSyntaxError    ValueError            shell.syntax        a command line that cannot be read
    │   └── MetacharacterError  ValueError        shell.metacharacter  a sign that is not allowed in one
    ├── CommandDeniedError  PermissionError       shell.command       no command that may be run here
    ├── ToolError           ValueError            tool.*              a tool cannot be called like this
    ├── PolicyValidationError   ValueError        policy.invalid      a field of a policy is wrong
    ├── SandboxExecutionError   RuntimeError      runtime.failed      guest code cannot run as it must
    ├── RuntimeMissingError FileNotFoundError     runtime.missing     the engine is not there
    ├── RuntimeDisabledError    PermissionError   runtime.disabled    guest code is switched off
    ├── UnauthenticatedError    PermissionError   caller.unknown      nobody we know, or no key at all
    ├── KeyExistsError      ValueError            key.exists          the name of the key is taken
    ├── KeyMissingError     LookupError           key.missing         no key has that name
    ├── RoleDeniedError     PermissionError       access.role         the role of the caller says no
    ├── RequestError        ValueError            request.invalid     a request that makes no sense
    │   └── UnknownRequestError LookupError       request.unknown     nothing of that name is offered
    ├── StoppingError       ConnectionAbortedError  service.stopping  the service takes no more calls
    ├── UnreachableError    ConnectionRefusedError  service.unreachable  no service answers there
    ├── EngineError         ConnectionRefusedError  engine.*          no Docker engine that can be used
    └── ContainerError      OSError               container.*         a container cannot be used as it must

`code` is a promise, wording is not. Messages hold paths as the caller wrote them, never a host path.
"""

from __future__ import annotations

import errno
from functools import cache
from typing import ClassVar


class CarrelError(Exception):
    """Anything that carrel refuses or fails to do."""

    code: ClassVar[str] = "carrel.error"
    number: ClassVar[int | None] = None
    """The `errno` of those that are also an `OSError`."""

    def __init__(self, message: str, *, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        """The path as it was asked for, if the error is about one."""
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
    """The path is absolute, and no rule of the policy has it."""

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
    """Nothing has that name."""

    code = "path.missing"
    number = errno.ENOENT


class ExistsError(CarrelError, FileExistsError):
    """Something has that name already."""

    code = "path.exists"
    number = errno.EEXIST


class IsDirectoryError(CarrelError, IsADirectoryError):
    """A file was wanted, and this is a directory."""

    code = "path.is_directory"
    number = errno.EISDIR


class NotDirectoryError(CarrelError, NotADirectoryError):
    """A directory was wanted, and this is none."""

    code = "path.not_directory"
    number = errno.ENOTDIR


class NotRegularError(CarrelError, OSError):
    """A FIFO, a socket or a device: nothing that can be read or written as a file."""

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
    """The permissions of the file on the host do not allow it."""

    code = "path.permission"
    number = errno.EACCES


class ChangedError(CarrelError, OSError):
    """Somebody else changed the file between reading and writing it."""

    code = "path.changed"
    number = errno.ESTALE

    def __init__(self, message: str, *, path: str | None = None, version: str | None = None) -> None:
        super().__init__(message, path=path)
        self.version = version
        """The version it has now, or `None` if it is gone or nobody looked."""


class BusyError(CarrelError, BlockingIOError):
    """Something else holds or moves it just now; the same call may work later."""

    code = "path.busy"
    number = errno.EAGAIN


class LimitError(CarrelError, OSError):
    """A ceiling would be passed; the message says which one and what was asked."""

    number = errno.EFBIG
    retry_after_seconds: float | None = None
    """When the same call may work, if time alone helps."""

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
        self.code = f"limit.{what}"  # type: ignore[misc]  # one class, a code per ceiling
        self.limit = limit
        self.asked = asked
        self.retry_after_seconds = retry_after_seconds
        """When the same may be allowed; `None` if that is not known, or never."""


class QuotaError(CarrelError, OSError):
    """The session would hold more than it may; the message says how much and what the limit is."""

    number = errno.EDQUOT

    def __init__(self, what: str, *, limit: int, asked: int, message: str, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.code = f"quota.{what}"  # type: ignore[misc]  # one class, a code per quota
        self.limit = limit
        self.asked = asked


class DiskError(CarrelError, OSError):
    """The host's disk did not do what it was asked."""

    code = "disk.error"
    number = errno.EIO


class DiskFullError(DiskError):
    """The host's disk is full."""

    code = "disk.full"
    number = errno.ENOSPC


class DiskLowError(DiskError):
    """The host's disk has less free space than it must keep."""

    code = "disk.low"
    number = errno.ENOSPC


class ClosedError(CarrelError, ValueError):
    """The workspace was closed before this call."""

    code = "workspace.closed"


class UnavailableError(CarrelError, OSError):
    """The sessions directory cannot be used, or not safely."""

    code = "sessions.unavailable"
    number = errno.EIO


class SessionIdError(CarrelError, ValueError):
    """The text is not a session id."""

    code = "session.invalid_id"


class SessionExistsError(CarrelError, FileExistsError):
    """A session, or something else, has that id already."""

    code = "session.exists"
    number = errno.EEXIST


class SessionMissingError(CarrelError, FileNotFoundError):
    """No session has that id."""

    code = "session.missing"
    number = errno.ENOENT


class TextError(CarrelError, ValueError):
    """The bytes are not text in that encoding, or the encoding is not offered."""

    code = "text.encoding"


class EditError(CarrelError, ValueError):
    """The edit cannot be made as asked; the file is unchanged."""

    def __init__(self, problem: str, message: str, *, path: str) -> None:
        super().__init__(message, path=path)
        self.code = f"edit.{problem}"  # type: ignore[misc]  # one class, a code per problem


class PatternError(CarrelError, ValueError):
    """A glob or a regular expression that cannot be used."""

    code = "pattern.invalid"


class RotatedError(CarrelError, LookupError):
    """The journal no longer holds the records that were asked for; begin again from what is there now."""

    code = "journal.rotated"


class ArchiveError(CarrelError, ValueError):
    """The bytes are no archive that carrel reads, or the archive is broken or contradicts itself."""

    code = "archive.invalid"


class ConfigError(CarrelError, ValueError):
    """A setting that cannot be used."""

    code = "config.invalid"


class ShellSyntaxError(CarrelError, ValueError):
    """The command line cannot be read; nothing was run."""

    code = "shell.syntax"

    def __init__(self, message: str, *, position: int | None = None, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.position = position
        """The character at which it goes wrong, counted from 1."""


class MetacharacterError(ShellSyntaxError):
    """The command line holds a sign that is not allowed; nothing was run."""

    code = "shell.metacharacter"
    character: str | None = None

    @classmethod
    def of(cls, character: str, position: int, why: str = "") -> MetacharacterError:
        """The error about *character* at *position*; *why* says more."""
        error = cls(
            f"Shell metacharacter not allowed: {character} (at character {position}{why})", position=position
        )
        error.character = character
        return error


class CommandDeniedError(CarrelError, PermissionError):
    """There is no such command, or it may not be run here."""

    code = "shell.command"
    number = errno.EACCES


class ToolError(CarrelError, ValueError):
    """A tool cannot be called like this; nothing was done."""

    def __init__(self, problem: str, message: str, *, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.code = f"tool.{problem}"  # type: ignore[misc]  # one class, a code per problem


class PolicyValidationError(CarrelError, ValueError):
    """A policy for guest code that cannot be used; `field` names what is wrong in it."""

    code = "policy.invalid"

    def __init__(self, message: str, *, field: str | None = None, path: str | None = None) -> None:
        super().__init__(message, path=path)
        self.field = field
        """The field that is wrong, or `None` if the whole cannot be read."""


class SandboxExecutionError(CarrelError, RuntimeError):
    """The engine cannot run guest code as it must, so it runs none."""

    code = "runtime.failed"


class RuntimeMissingError(CarrelError, FileNotFoundError):
    """The engine for guest code is not installed, or its files are gone."""

    code = "runtime.missing"
    number = errno.ENOENT


class RuntimeDisabledError(CarrelError, PermissionError):
    """The configuration switches guest code off."""

    code = "runtime.disabled"
    number = errno.EACCES


class UnauthenticatedError(CarrelError, PermissionError):
    """The caller is nobody that the service knows; the words are the same whatever was wrong."""

    code = "caller.unknown"
    number = errno.EACCES


class KeyExistsError(CarrelError, ValueError):
    """There is a key of that name already."""

    code = "key.exists"


class KeyMissingError(CarrelError, LookupError):
    """No key that is in force has that name or id."""

    code = "key.missing"


class RoleDeniedError(CarrelError, PermissionError):
    """The role of the caller does not allow this, or the caller may not choose that role."""

    code = "access.role"
    number = errno.EACCES


class RequestError(CarrelError, ValueError):
    """A request to a service that makes no sense; nothing was done."""

    code = "request.invalid"


class UnknownRequestError(RequestError, LookupError):
    """The service offers nothing of that name."""

    code = "request.unknown"


class StoppingError(CarrelError, ConnectionAbortedError):
    """The service is about to end and takes no more calls."""

    code = "service.stopping"
    number = errno.ECONNABORTED


class UnreachableError(CarrelError, ConnectionRefusedError):
    """No service answers at that address."""

    code = "service.unreachable"
    number = errno.ECONNREFUSED


class EngineError(CarrelError, ConnectionRefusedError):
    """There is no Docker engine that can be used: missing, refusing, slow, of another version, or failed."""

    number = errno.ECONNREFUSED
    detail: str = ""
    """What the engine said in its own words; for the operator alone, it may name paths of the host."""

    def __init__(self, problem: str, message: str, *, path: str | None = None, detail: str = "") -> None:
        self.code = f"engine.{problem}"  # type: ignore[misc]  # one class, a code per problem
        super().__init__(message, path=path)
        if detail:
            self.detail = detail

    @property
    def problem(self) -> str:
        """What is wrong: the code without its area."""
        return self.code.partition(".")[2]


class ContainerError(CarrelError, OSError):
    """A container cannot be used as it must: missing, without its image, or not in a state for that."""

    number = errno.EIO
    detail: str = ""
    """What the engine said in its own words; for the operator alone, it may name paths of the host."""

    def __init__(self, problem: str, message: str, *, path: str | None = None, detail: str = "") -> None:
        self.code = f"container.{problem}"  # type: ignore[misc]  # one class, a code per problem
        super().__init__(message, path=path)
        if detail:
            self.detail = detail

    @property
    def problem(self) -> str:
        """What is wrong: the code without its area."""
        return self.code.partition(".")[2]


def class_of(code: str) -> type[CarrelError]:
    """The class of the errors with that *code*; `CarrelError` for one that this version does not know."""
    return _classes().get(code) or _AREAS.get(code.partition(".")[0], CarrelError)


_AREAS: dict[str, type[CarrelError]] = {
    "limit": LimitError,
    "quota": QuotaError,
    "edit": EditError,
    "tool": ToolError,
    "engine": EngineError,
    "container": ContainerError,
}
"""Those with a code per case."""


@cache
def _classes() -> dict[str, type[CarrelError]]:
    found: dict[str, type[CarrelError]] = {}
    kinds = [CarrelError]
    while kinds:
        kind = kinds.pop()
        found[kind.code] = kind
        # Not those that other modules made for themselves.
        kinds.extend(each for each in kind.__subclasses__() if each.__module__ == __name__)
    found.pop(CarrelError.code)
    return found


def rebuild(kind: type[CarrelError], message: str, path: str | None, state: dict[str, object]) -> CarrelError:
    """Make an error again on the other side of a pickle or a wire, whatever its constructor takes."""
    base = OSError if issubclass(kind, OSError) else Exception
    error = base.__new__(kind)
    assert isinstance(error, CarrelError)  # noqa: S101  # for the type checker
    CarrelError.__init__(error, message, path=path)
    error.__dict__.update(state)
    return error
