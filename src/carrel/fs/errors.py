"""Translate an `OSError` of the host into a `CarrelError`; the only place that does."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from carrel.errors import (
    AccessError,
    BusyError,
    CarrelError,
    DiskError,
    DiskFullError,
    EscapeError,
    ExistsError,
    HostDeniedError,
    IntoItselfError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
    NotRegularError,
    PathError,
    QuotaError,
    UnavailableError,
)
from carrel.fs.local.excluded_paths import ExcludedPathError
from carrel.paths.parsed_path import ParsedPath

Params = ParamSpec("Params")
Self = TypeVar("Self")
Result = TypeVar("Result")
Found = TypeVar("Found")

_TABLE: dict[int, tuple[type[CarrelError], str]] = {
    errno.EXDEV: (EscapeError, "path {} escapes session workspace"),
    errno.ENOENT: (MissingError, "no such file or directory: {}"),
    errno.EEXIST: (ExistsError, "{} already exists"),
    errno.EISDIR: (IsDirectoryError, "{} is a directory, not a file"),
    errno.ENOTDIR: (NotDirectoryError, "{} is not a directory, or something in its path is none"),
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
    errno.ESTALE: (UnavailableError, "the disk with {} is not there any more"),
    errno.ENOTCONN: (UnavailableError, "the disk with {} is not connected"),
    errno.ENODEV: (UnavailableError, "the disk with {} is not there any more"),
    errno.ESHUTDOWN: (UnavailableError, "the disk with {} was shut down"),
}


def translate(number: int | None, where: ParsedPath) -> CarrelError:
    """The error of ours for the host's *number*, about the path as it was asked for."""
    kind, wording = _TABLE.get(number or 0, (DiskError, ""))
    if not wording:
        wording = "the disk failed on {}: " + os.strerror(number or errno.EIO)
    return kind(wording.format(repr(where.requested)), path=where.requested)


def translated(
    method: Callable[Concatenate[Self, ParsedPath, Params], Result],
) -> Callable[Concatenate[Self, ParsedPath, Params], Result]:
    """Let *method* raise errors of ours only, without the host's error behind them."""

    @wraps(method)
    def call(self: Self, where: ParsedPath, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        try:
            return method(self, where, *args, **kwargs)
        except CarrelError as error:
            problem = error
            if isinstance(problem, QuotaError) and problem.path is None:
                problem.path = problem.filename = where.requested
        except ExcludedPathError:
            problem = AccessError(
                f"sandbox: access denied for {where.requested!r}: it belongs to another rule",
                path=where.requested,
            )
        except OSError as error:
            problem = translate(error.errno, where)
        # Outside the handlers, so that no host error hangs on to ours as its context; and without the
        # frames inside, so that no descriptor stays open as long as somebody keeps the error.
        try:
            raise problem.with_traceback(None)
        finally:
            del problem

    return call


def translating(found: Iterator[Found], where: ParsedPath) -> Iterator[Found]:
    """Pass on what is found; what the host or a container answers meanwhile is an error of ours."""
    try:
        yield from found
    except OSError as error:
        if isinstance(error, CarrelError):
            raise
        number = error.errno
    else:
        return
    raise translate(number, where)
