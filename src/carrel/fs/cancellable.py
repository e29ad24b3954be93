"""Stop file work midway: walks with a deadline, `CancellableFiles` with a check before each step.

A caller with a deadline sets it for the thread, and every walk checks it regularly. The ledger's counts and
the tree snapshots and ownership changes around unmediated runs are such walks, at any call depth.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, TypeVar

from carrel.fs.api import (
    WRITE,
    Account,
    Cause,
    Content,
    Enter,
    Existing,
    Files,
    Links,
    OnUnreadable,
    Parents,
    Reader,
    Wants,
)
from carrel.paths.parsed_path import ParsedPath
from carrel.values import Change, FileInfo, Limits, Named, Usage

if TYPE_CHECKING:
    from carrel.fs.local.external_changes import UnmediatedAccess


class WalkCancelledError(Exception):
    """The walk was cancelled; what it has found so far is incomplete.

    It is not a `CarrelError`, so that no handler on the way mistakes it for a failure of the disk.
    """


class _Thread(local):
    is_over: Callable[[], bool] | None = None


_thread = _Thread()


@contextmanager
def cancelled_when(is_over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the walks of this thread in the block as soon as *is_over* returns true."""
    before, _thread.is_over = _thread.is_over, is_over
    try:
        yield
    finally:
        _thread.is_over = before


def is_cancelled() -> bool:
    """Whether walks of this thread must stop."""
    return _thread.is_over is not None and _thread.is_over()


def checkpoint() -> None:
    """Do nothing unless walks of this thread were cancelled.

    Raises:
        WalkCancelledError: They were.
    """
    if is_cancelled():
        raise WalkCancelledError


Check = Callable[[], None]
"""Raises an exception to stop the work, or does nothing."""
Found = TypeVar("Found")


class CancellableFiles:
    """`Files` with a check before each operation, walk entry, batch of names and chunk.

    The caller gets exactly the exception that the check raises, and a change stopped by it has not happened.

    Not covered: a single system call is not interrupted, nor is the removal of one tree, the listing of one
    directory or the copy of one file within a root.
    """

    def __init__(self, inner: Files, check: Check) -> None:
        """Work on *inner*, calling *check* often."""
        self.inner = inner
        self._check = check

    @property
    def account(self) -> Account:
        """The account of the inner files."""
        return self.inner.account

    @account.setter
    def account(self, account: Account) -> None:
        self.inner.account = account

    @property
    def confinement(self) -> str:
        """How the inner files keep paths inside."""
        return self.inner.confinement

    def subtree(self, names: tuple[str, ...]) -> Files:
        """Return the files beneath the directory *names*, with the same check."""
        return CancellableFiles(self.inner.subtree(names), self._check)

    def host_path(self, path: ParsedPath, /) -> str:
        """Return the current path on the host."""
        self._check()
        return self.inner.host_path(path)

    def unmediated_access(self) -> UnmediatedAccess | None:
        """Return the operations for programs that bypass `Files`; those are not checked."""
        return self.inner.unmediated_access()

    # Reading

    def read(self, path: ParsedPath, /, *, limit: int | None, offset: int, length: int | None) -> bytes:
        """Read a regular file, whole or a window of it."""
        self._check()
        return self.inner.read(path, limit=limit, offset=offset, length=length)

    def read_with_info(
        self, path: ParsedPath, /, *, limit: int | None, offset: int, length: int | None
    ) -> tuple[FileInfo, bytes]:
        """Read a file like `read`, and return its info from just before."""
        self._check()
        return self.inner.read_with_info(path, limit=limit, offset=offset, length=length)

    def reader(self, path: ParsedPath, /) -> Reader:
        """Open a regular file for reading in chunks."""
        self._check()
        return _CancellableReader(self.inner.reader(path), self._check)

    def stat(self, path: ParsedPath, /, links: Links) -> FileInfo:
        """Return the info of one entry."""
        self._check()
        return self.inner.stat(path, links)

    def list(self, path: ParsedPath, /, *, limit: int | None) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name."""
        self._check()
        found = self.inner.list(path, limit=limit)
        self._check()
        return found

    def names(self, path: ParsedPath, /, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """List the names in a directory with their kinds."""
        self._check()
        return _checked(self.inner.names(path, limit=limit), self._check)

    def walk(
        self,
        path: ParsedPath,
        /,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Walk everything beneath a directory, parents first, never through a link."""
        self._check()
        return _checked(self.inner.walk(path, limits, unreadable=unreadable, enter=enter), self._check)

    def read_tree(
        self,
        path: ParsedPath,
        /,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """Read the regular files beneath a directory, in order of their names, never through a link."""
        self._check()
        found = self.inner.read_tree(path, limits, enter=enter, wants=wants, chunk_bytes=chunk_bytes)
        return _checked_contents(found, self._check)

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything."""
        self._check()
        return self.inner.measure(limit)

    # Writing

    def write(
        self,
        path: ParsedPath,
        /,
        data: bytes | Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
        cause: Cause = WRITE,
    ) -> Change:
        """Store *data* completely or not at all."""
        self._check()
        chunks = data if isinstance(data, bytes) else _wrap_errors(data, self._check)
        try:
            return self.inner.write(
                path, chunks, existing=existing, parents=parents, expect=expect, mode=mode, cause=cause
            )
        except _StoppedError as stopped:
            reason = stopped.reason
        raise reason

    def append(
        self, path: ParsedPath, /, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Append to a regular file that has no other name."""
        self._check()
        return self.inner.append(path, data, limit=limit, expect=expect)

    def touch(self, path: ParsedPath, /, modified_ns: int) -> FileInfo:
        """Set a modification time."""
        self._check()
        return self.inner.touch(path, modified_ns)

    def mkdir(self, path: ParsedPath, /, *, parents: Parents) -> builtins.list[str]:
        """Create a directory."""
        self._check()
        return self.inner.mkdir(path, parents=parents)

    def link(self, path: ParsedPath, /, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Create a link."""
        self._check()
        self.inner.link(path, target, existing=existing)

    def remove(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link or an empty directory."""
        self._check()
        return self.inner.remove(path, expect=expect)

    def remove_tree(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove an entry and everything in it."""
        self._check()
        return self.inner.remove_tree(path, expect=expect)

    def move(
        self, source: ParsedPath, /, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this root."""
        self._check()
        return self.inner.move(source, target, existing=existing, expect=expect)

    def copy(
        self, source: ParsedPath, /, target: ParsedPath, *, existing: Existing, limit: int | None
    ) -> Change:
        """Copy one regular file within this root."""
        self._check()
        return self.inner.copy(source, target, existing=existing, limit=limit)

    def close(self) -> None:
        """End all use of the inner files."""
        self.inner.close()


def uncancellable(files: Files) -> Files:
    """Return the files without a check, for example to clean up after a change that a check stopped."""
    while isinstance(files, CancellableFiles):
        files = files.inner
    return files


class _CancellableReader:
    """A reader with a check before every chunk."""

    def __init__(self, inner: Reader, check: Check) -> None:
        self.info = inner.info
        self._inner = inner
        self._check = check

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """Yield the content from *offset* on, at most *chunk_bytes* at a time."""
        return _checked(self._inner.chunks(chunk_bytes, offset), self._check)

    def read(self, length: int, offset: int = 0) -> bytes:
        """Read at most *length* bytes at *offset*."""
        return self._inner.read(length, offset)


def _checked(found: Iterable[Found], check: Check) -> Iterator[Found]:
    try:
        for one in found:
            check()
            yield one
    finally:
        # A kept exception keeps this frame, and with it the descriptors of the walk.
        del found


def _checked_contents(found: Iterator[Content], check: Check) -> Iterator[Content]:
    for content in _checked(found, check):
        # A tuple of chunks was already read.
        is_read = type(content.chunks) is tuple
        yield content if is_read else content._replace(chunks=_checked(content.chunks, check))


class _StoppedError(Exception):
    """Carries an exception of a check or a source past the translation of host errors."""

    def __init__(self, reason: Exception) -> None:
        super().__init__()
        self.reason = reason


def _wrap_errors(chunks: Iterable[bytes], check: Check) -> Iterator[bytes]:
    source = _checked(chunks, check)
    while True:
        try:
            chunk = next(source)
        except StopIteration:
            return
        except Exception as error:
            raise _StoppedError(error) from None
        yield chunk
