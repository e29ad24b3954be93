"""The errors of file operations.

`translated` turns an `OSError` of the host into a `CarrelError`; nothing else does. The functions at the end
make the errors that every implementation of `Files` raises itself.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from carrel.errors import (
    AccessError,
    BusyError,
    CarrelError,
    ChangedError,
    ClosedError,
    DiskError,
    DiskFullError,
    EscapeError,
    ExistsError,
    HostDeniedError,
    IntoItselfError,
    IsDirectoryError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
    NotRegularError,
    PathError,
    QuotaError,
    UnavailableError,
)
from carrel.paths.parsed_path import ParsedPath

Params = ParamSpec("Params")
Self = TypeVar("Self")
Result = TypeVar("Result")
Found = TypeVar("Found")


class ExcludedPathError(OSError):
    """The path belongs to another rule."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, os.strerror(errno.EACCES))


_TABLE: dict[int, tuple[type[CarrelError], str]] = {
    errno.EXDEV: (EscapeError, "path {} escapes session workspace"),
    errno.ENOENT: (MissingError, "no such file or directory: {}"),
    errno.EEXIST: (ExistsError, "{} already exists"),
    errno.EISDIR: (IsDirectoryError, "{} is a directory, not a file"),
    errno.ENOTDIR: (NotDirectoryError, "{} is not a directory, or a part of its path is not"),
    errno.ENOTEMPTY: (NotEmptyError, "directory {} is not empty"),
    errno.ELOOP: (LoopError, "too many links in path {}"),
    errno.EACCES: (HostDeniedError, "permission denied: {}"),
    errno.EPERM: (HostDeniedError, "operation not permitted: {}"),
    errno.EROFS: (HostDeniedError, "read-only file system: {}"),
    errno.ENXIO: (NotRegularError, "{} is not a regular file"),
    errno.ENAMETOOLONG: (PathError, "path {} is too long"),
    errno.EINVAL: (IntoItselfError, "a directory cannot be put inside itself: {}"),
    errno.EAGAIN: (BusyError, "{} is busy; try again"),
    errno.EBUSY: (BusyError, "{} is busy; try again"),
    errno.ETXTBSY: (BusyError, "{} is busy; try again"),
    errno.EMFILE: (BusyError, "too many open files to reach {}; try again"),
    errno.ENFILE: (BusyError, "too many open files to reach {}; try again"),
    errno.ENOSPC: (DiskFullError, "no space left on the disk for {}"),
    errno.EDQUOT: (DiskFullError, "no space left on the disk for {}"),
    errno.ESTALE: (UnavailableError, "the disk with {} is gone"),
    errno.ENOTCONN: (UnavailableError, "the disk with {} is not connected"),
    errno.ENODEV: (UnavailableError, "the disk with {} is gone"),
    errno.ESHUTDOWN: (UnavailableError, "the disk with {} was shut down"),
}


def os_error(number: int) -> OSError:
    """Return the error that the kernel raises for *number*."""
    return OSError(number, os.strerror(number))


def translate(number: int | None, path: ParsedPath) -> CarrelError:
    """Return the error for the host's *number*, with the path as it was requested."""
    kind, wording = _TABLE.get(number or 0, (DiskError, ""))
    if not wording:
        wording = "the disk failed on {}: " + os.strerror(number or errno.EIO)
    return kind(wording.format(repr(path.requested)), path=path.requested)


def translated(
    method: Callable[Concatenate[Self, ParsedPath, Params], Result],
) -> Callable[Concatenate[Self, ParsedPath, Params], Result]:
    """Make *method* raise only errors of `carrel.errors`, without the host's error as their context."""

    @wraps(method)
    def call(self: Self, path: ParsedPath, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return method(self, path, *args, **kwargs)
        except CarrelError as error:
            problem = error
            if isinstance(problem, QuotaError) and problem.path is None:
                problem.path = problem.filename = path.requested
        except ExcludedPathError:
            problem = AccessError(
                f"sandbox: access denied for {path.requested!r}: it belongs to another rule",
                path=path.requested,
            )
        except OSError as error:
            problem = translate(error.errno, path)
        # Raised outside the handlers, so that the host's error does not become its context, and without the
        # inner frames, so that a caller who keeps the error does not keep their descriptors open.
        try:
            raise problem.with_traceback(None)
        finally:
            del problem

    return call


def translating(found: Iterator[Found], path: ParsedPath) -> Iterator[Found]:
    """Yield everything in *found*, translating the errors that iterating raises."""
    try:
        yield from found
    except OSError as error:
        if isinstance(error, CarrelError):
            raise
        number = error.errno
    else:
        return
    raise translate(number, path)


def closed_error(path: ParsedPath) -> ClosedError:
    """Return the error for an operation after `close`."""
    return ClosedError(f"workspace is closed: {path.requested!r}", path=path.requested)


def not_on_disk_error() -> UnavailableError:
    """Return the error for an operation that only a directory of the host offers."""
    return UnavailableError("the workspace is not on the host's disk")


def changed_error(path: ParsedPath, version: str | None) -> ChangedError:
    """Return the error for a file that has another *version* now, or `None` if it is gone."""
    return ChangedError(
        f"{path.requested!r} was changed in the meantime", path=path.requested, version=version
    )


def not_a_file_error(found: os.stat_result, path: ParsedPath) -> IsDirectoryError | NotRegularError:
    """Return the error for something that is not a regular file."""
    if stat.S_ISDIR(found.st_mode):
        return IsDirectoryError(f"{path.requested!r} is a directory, not a file", path=path.requested)
    return NotRegularError(f"{path.requested!r} is not a regular file", path=path.requested)


def size_limit_error(what: str, limit: int, asked: int, path: ParsedPath) -> LimitError:
    """Return the error for content of *asked* bytes where at most *limit* are allowed."""
    return LimitError(
        what,
        limit=limit,
        asked=asked,
        message=f"{path.requested!r} is too large: {asked} bytes, the limit is {limit}",
        path=path.requested,
    )


def list_limit_error(limit: int, prefix: str) -> LimitError:
    """Return the error for a directory with more entries than a listing may have."""
    top = prefix.rstrip("/") or "."
    return LimitError(
        "list_entries",
        limit=limit,
        asked=None,
        message=f"directory {top!r} has more than {limit} entries, the limit of a listing",
        path=top,
    )


def walk_limit_error(limit: int, prefix: str) -> LimitError:
    """Return the error for a tree with more entries than a walk may visit."""
    top = prefix.rstrip("/") or "."
    return LimitError(
        "walk_entries",
        limit=limit,
        asked=None,
        message=f"directory tree {top!r} has more than {limit} entries, the limit of a walk",
        path=top,
    )


def depth_limit_error(limit: int, path: str) -> LimitError:
    """Return the error for a tree with more levels than a walk may descend."""
    return LimitError(
        "depth",
        limit=limit,
        asked=None,
        message=f"directory tree is deeper than {limit} levels, the limit of a walk; it continues at"
        f" {path[:80]!r}",
        path=path,
    )
