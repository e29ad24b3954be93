"""Stop file work midway: walks with a deadline, `CancellableFiles` with a check before each step.

A caller with a deadline sets it for the thread, and every walk checks it now and then. Counts of the ledger,
surveys and the hand-over of files are such walks, however many calls lie in between.
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
    """The walk was cancelled; what it has found so far is not all.

    No `CarrelError`, since nobody on the way may take it for a failure of the disk.
    """


class _Thread(local):
    is_over: Callable[[], bool] | None = None


_thread = _Thread()


@contextmanager
def cancelled_when(is_over: Callable[[], bool]) -> Iterator[None]:
    """Cancel the walks that this thread makes in the block as soon as *is_over* says so."""
    before, _thread.is_over = _thread.is_over, is_over
    try:
        yield
    finally:
        _thread.is_over = before


def is_cancelled() -> bool:
    """Whether a walk of this thread has to end."""
    return _thread.is_over is not None and _thread.is_over()


def checkpoint() -> None:
    """Do nothing while walks go on.

    Raises:
        WalkCancelledError: They have to end.
    """
    if is_cancelled():
        raise WalkCancelledError


Check = Callable[[], None]
"""Does nothing, or raises to stop the work."""
Found = TypeVar("Found")


class CancellableFiles:
    """The same files, with a check before each operation, each entry of a walk, some names and each chunk.

    What the check raises comes to the caller as it is, and a change that it stops has not happened.

    Not covered: one call of the host is not interrupted, nor is the removal of one tree, the listing of one
    directory or the copy of one file within a root.
    """

    def __init__(self, inner: Files, check: Check) -> None:
        """Work on *inner*, calling *check* often."""
        self.inner = inner
        self._check = check

    @property
    def account(self) -> Account:
        """That of the files within."""
        return self.inner.account

    @account.setter
    def account(self, account: Account) -> None:
        self.inner.account = account

    @property
    def confinement(self) -> str:
        """How paths are kept inside."""
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
        """Content of a regular file, whole or a window of it."""
        self._check()
        return self.inner.read(path, limit=limit, offset=offset, length=length)

    def read_with_info(
        self, path: ParsedPath, /, *, limit: int | None, offset: int, length: int | None
    ) -> tuple[FileInfo, bytes]:
        """The same with what the file was just before."""
        self._check()
        return self.inner.read_with_info(path, limit=limit, offset=offset, length=length)

    def reader(self, path: ParsedPath, /) -> Reader:
        """Open a regular file to be read by chunks."""
        self._check()
        return _CancellableReader(self.inner.reader(path), self._check)

    def stat(self, path: ParsedPath, /, links: Links) -> FileInfo:
        """What is there."""
        self._check()
        return self.inner.stat(path, links)

    def list(self, path: ParsedPath, /, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        self._check()
        found = self.inner.list(path, limit=limit)
        self._check()
        return found

    def names(self, path: ParsedPath, /, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """The names in a directory, each with its kind."""
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
        """Everything beneath a directory, parents first, never through a link."""
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
        """The regular files beneath a directory, names in order, never through a link."""
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
        """Store *data* at once or not at all."""
        self._check()
        pieces = data if isinstance(data, bytes) else _guarded(data, self._check)
        try:
            return self.inner.write(
                path, pieces, existing=existing, parents=parents, expect=expect, mode=mode, cause=cause
            )
        except _StoppedError as stopped:
            reason = stopped.reason
        raise reason

    def append(
        self, path: ParsedPath, /, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Add to a regular file that has no other name."""
        self._check()
        return self.inner.append(path, data, limit=limit, expect=expect)

    def touch(self, path: ParsedPath, /, modified_ns: int) -> FileInfo:
        """Set when something was changed last."""
        self._check()
        return self.inner.touch(path, modified_ns)

    def mkdir(self, path: ParsedPath, /, *, parents: Parents) -> builtins.list[str]:
        """Make a directory."""
        self._check()
        return self.inner.mkdir(path, parents=parents)

    def link(self, path: ParsedPath, /, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Make a link."""
        self._check()
        self.inner.link(path, target, existing=existing)

    def remove(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link or an empty directory."""
        self._check()
        return self.inner.remove(path, expect=expect)

    def remove_tree(self, path: ParsedPath, /, *, expect: str | None = None) -> FileInfo:
        """Remove whatever is there, with everything in it."""
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
        """End all use of the files within."""
        self.inner.close()


def uncancellable(files: Files) -> Files:
    """The files without a check, to take away what a stopped change had made so far."""
    while isinstance(files, CancellableFiles):
        files = files.inner
    return files


class _CancellableReader:
    """An open file whose every chunk is preceded by a check."""

    def __init__(self, inner: Reader, check: Check) -> None:
        self.info = inner.info
        self._inner = inner
        self._check = check

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """The content from *offset* on, at most *chunk_bytes* at a time."""
        return _checked(self._inner.chunks(chunk_bytes, offset), self._check)

    def read(self, length: int, offset: int = 0) -> bytes:
        """So much of the content from *offset* on, or what there is of it."""
        return self._inner.read(length, offset)


def _checked(found: Iterable[Found], check: Check) -> Iterator[Found]:
    try:
        for one in found:
            check()
            yield one
    finally:
        # Whoever keeps the error of a check would keep this frame, and the descriptors of what is walked.
        del found


def _checked_contents(found: Iterator[Content], check: Check) -> Iterator[Content]:
    for content in _checked(found, check):
        # What came at once is there already.
        is_read = type(content.chunks) is tuple
        yield content if is_read else content._replace(chunks=_checked(content.chunks, check))


class _StoppedError(Exception):
    """Carries what a check or a source raised past the translation of host errors, which it may look like."""

    def __init__(self, reason: Exception) -> None:
        super().__init__()
        self.reason = reason


def _guarded(pieces: Iterable[bytes], check: Check) -> Iterator[bytes]:
    source = _checked(pieces, check)
    while True:
        try:
            piece = next(source)
        except StopIteration:
            return
        except Exception as error:
            raise _StoppedError(error) from None
        yield piece
