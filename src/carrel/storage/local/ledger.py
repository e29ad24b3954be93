"""`FileLedger`: the usage of a session, exact across all threads and processes.

There is one lock per session. Its holder looks up what a change replaces, charges the difference, marks the
ledger, writes the journal, makes the change, and writes the new usage. A mark that is found was left by a
process that was killed in between. Then the records since the mark are compared with the tree, those whose
change was not made are recorded as undone, and the tree is counted, once.

Where changes must survive a power loss, the marked ledger is on the disk before the records are, the records
before the change is made, and the change before the mark is removed. So what the disk has of a change that
was not acknowledged is settled like one that was interrupted by a kill. The usage without a mark is not
flushed: it is not relied on after a reboot anyway.

A tree that is removed goes to the trash first, and its usage is released when it is gone. Until then it is a
pending deletion; if no live process is removing it, the workspace is counted.

A file that replaces another is charged the difference. While it is written both are on the disk, so the sum
of what all writers of large files have written so far must fit as well. Writes up to 1 MiB skip that check.

Not covered: files that are created or removed on the host without the gate are not counted until `recount`.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from typing import Unpack
from weakref import ref

from carrel.audit.event import Event, is_cut
from carrel.errors import (
    CarrelError,
    ClosedError,
    MissingError,
    RotatedError,
    SessionMissingError,
    UnavailableError,
)
from carrel.fs.api import ChangeDetails, Links
from carrel.fs.cancellable import WalkCancelledError
from carrel.fs.handle import Handle
from carrel.fs.host.durability import Durability, unwritten
from carrel.fs.local.draft import Draft
from carrel.fs.local.root import Root
from carrel.fs.local.scratch import Scratch
from carrel.fs.nonblocking import require_may_block
from carrel.paths.parsed_path import parse
from carrel.storage.local.at_fork import fork_guard
from carrel.storage.local.ledger_page import (
    DELETED,
    EMPTY,
    OPEN,
    UNMEDIATED,
    LedgerPage,
    read_page,
    write_page,
)
from carrel.storage.local.lock import SessionLock
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder, effective_changes
from carrel.storage.reentry import ReentryGuard
from carrel.values import FileInfo, FileKind, Usage

_MASK = (1 << 64) - 1


class FileLedger:
    """The account of one session, kept in its state directory."""

    def __init__(
        self,
        root: Root,
        lock: SessionLock,
        *,
        recorder: Recorder,
        quota: Quota,
        scratch: Scratch,
        on_close: Callable[[], None],
        stop_programs: Callable[[], bool] | None = None,
        durability: Durability = Durability.PROCESS,
    ) -> None:
        """Account for the changes of *root*, whose `account` this becomes. Closing calls *on_close*.

        Before a count, *stop_programs* stops programs that still run although the process that started them
        was killed; it returns false if that failed.
        """
        self._on_close = on_close
        self._stop_programs = stop_programs or _none_left
        self._root_ref = ref(root)
        self._lock = lock
        self._recorder = recorder
        self._quota = quota
        self._scratch: Scratch | None = scratch
        self._page: LedgerPage | None = None
        """While the lock is held: the content of the file."""
        self._next: LedgerPage | None = None
        """Content of the file once the change is made."""
        self._is_dirty = False
        """Whether the next caller has to count."""
        self._durability = durability
        self._pending: list[Event] = []
        """Events of the change that are not written yet."""
        self._recorded: list[Event] = []
        """Events of the change that are written."""
        self._is_recording = False
        self._changed: list[Handle] = []
        """Files and directories to flush before the change is acknowledged."""
        self._reentry = ReentryGuard()
        self._unmediated: Handle | None = None
        """Held while programs change files without the gate."""
        fork_guard().watch(lock)

    # One change

    def __enter__(self) -> FileLedger:
        self._reentry.require_none()
        self._lock.acquire()
        try:
            self._reset()
            self._page = self._recover(read_page(self._lock.fd))
            self._reentry.begin()
        except BaseException as error:
            self._reentry.end()
            self._lock.release()
            if isinstance(error, OSError) and not isinstance(error, CarrelError):
                raise UnavailableError(
                    f"the ledger of the session cannot be read: {error.strerror}"
                ) from None
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None or issubclass(kind, Exception):
                self._finish(is_made=kind is None)
            # Otherwise it is unknown how far the change came: the mark stays, and the next caller settles it.
        finally:
            self._reentry.end()
            self._reset()
            self._is_dirty = False
            self._lock.release()

    def _reset(self) -> None:
        self._page = self._next = None
        self._is_recording = False
        for collected in (self._pending, self._recorded, self._changed):
            collected.clear()

    def _finish(self, *, is_made: bool) -> None:
        if is_made:
            if self._pending:
                self.prepare()
            for held in self._changed:
                # If that fails it is unknown what the disk has, and the mark stays.
                self._durability.flush_held(held.fd)
        elif self._is_recording and self._next is not None:
            # It is unknown what the journal has of it: the mark stays, and the next caller settles it.
            return
        else:
            for event in self._recorded:
                self._recorder.record_undone(event)
        if self._next is None:
            return
        page = self._next if is_made else self._current
        if self._is_dirty:
            page = page._replace(mark=page.mark | OPEN, position=self._recorder.position())
        write_page(self._lock.fd, page)

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        mark, disk_bytes, entries, pending, recounts, _, _ = page = self._current
        self._quota.require(disk_bytes, entries, more_bytes, more_entries)
        self._durability.require_waiting()
        position = self._recorder.position()
        write_page(
            self._lock.fd, LedgerPage(mark | OPEN, disk_bytes, entries, pending, recounts, position, inode)
        )
        self._next = page.plus(more_bytes, more_entries)

    def record(self, operation: str, path: str, **details: Unpack[ChangeDetails]) -> None:
        self._pending.append(self._recorder.event(operation, path, **details))

    def prepare(self) -> None:
        events, self._pending = self._pending, []
        if events:
            # The page has the mark of this change or none; a mark of an older one must not be on the disk.
            self._flush_page()
            self._recorded += events
            self._is_recording = True
            self._recorder.write(*events)
            self._is_recording = False

    def _flush_page(self) -> None:
        try:
            self._durability.flush_data(self._lock.fd)
        except OSError as error:
            problem = unwritten("the ledger of the session", error)
        else:
            return
        raise problem

    def flush_on_exit(self, *handles: Handle) -> None:
        self._changed += handles

    def flush(self, fd: int) -> None:
        self._durability.require_waiting()
        self._durability.flush(fd)

    def mark_dirty(self) -> None:
        self._is_dirty = True

    def defer_release(self) -> int:
        page = self._next or self._current
        self._next = page._replace(pending_deletions=page.pending_deletions + 1)
        return page.recounts

    def release(self, mark: int, freed: Usage) -> None:
        try:
            with self:
                page = self._current
                if page.recounts == mark:
                    page = page.plus(-freed.disk_bytes, -freed.entries)
                    self._next = page._replace(pending_deletions=max(0, page.pending_deletions - 1))
        except SessionMissingError:
            return

    # Usage

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        used = self.usage()
        scratch = self._scratch
        others = 0 if scratch is None else scratch.drafted_bytes() - drafted_bytes
        self._quota.require(used.disk_bytes + others, used.entries, more_bytes, more_entries)

    def spool(self) -> Draft | None:
        """Create a file beside the drafts of the session."""
        return None if self._scratch is None else self._scratch.spool()

    def require_spool(self, size_bytes: int, *, coming_bytes: int = 0, replacing: bool) -> None:
        """Refuse an archive that cannot fit, together with all drafts of the session."""
        scratch = self._scratch
        spooled = size_bytes if scratch is None else max(size_bytes, scratch.drafted_bytes())
        self._quota.require_spool(0 if replacing else self.usage().disk_bytes, spooled, coming_bytes)

    def usage(self) -> Usage:
        """Return the usage of the session; the files are counted only after a crash."""
        page = self._page
        if page is not None:
            return page.usage
        with self:
            return self._current.usage

    def known_entries(self) -> int | None:
        """Return the number of entries, or `None` if it cannot be known without waiting."""
        try:
            page = read_page(self._lock.fd)
        except OSError:
            # The lock was never taken, or it was closed.
            return None
        return page.entries if page is not None and page.is_settled else None

    def recount(self) -> Usage:
        """Count the files, including those that did not come through the gate."""
        with self:
            self._page = self._count(self._current)
            return self._page.usage

    def begin_unmediated(self) -> None:
        """Mark that programs change files without the gate; if this process is killed, the next counts."""
        with self:
            self.charge(0, 0)
            self._unmediated = self._lock.join_unmediated()
            self._next = self._current._replace(mark=UNMEDIATED)
        # Their changes must not be taken for the end of an earlier change.
        self._flush_page()

    def flush_unmediated(self) -> None:
        """Flush what programs changed without the gate, if the durability level requires it."""
        if self._durability is Durability.DISK:
            self._root.unmediated_access().flush()

    def end_unmediated(self) -> Usage:
        """Remove the mark of `begin_unmediated` and count the files."""
        held, self._unmediated = self._unmediated, None
        with self:
            if held is not None:
                # Unlocks it for a child too that was forked in the meantime and has the file open.
                fcntl.flock(held.fd, fcntl.LOCK_UN)
            self._page = self._count(self._current)
            return self._page.usage

    def close(self) -> None:
        """Close the ledger file and all directories."""
        self._unmediated = None
        self._stop_programs = _none_left
        self._lock.close()
        self._on_close()
        self._scratch = None
        self._quota = Quota(disk_bytes=0, entries=0)

    @property
    def _root(self) -> Root:
        """The root. It refers to this as its account, so the reference back is weak."""
        root = self._root_ref()
        if root is None:
            raise ClosedError("workspace is closed")
        return root

    @property
    def _current(self) -> LedgerPage:
        if self._page is None:
            raise ClosedError("the ledger is used outside `with`")
        return self._page

    # Recovery

    def _recover(self, page: LedgerPage | None) -> LedgerPage:
        """Settle what other processes left unfinished; return the page after that."""
        if page is not None and page.mark & DELETED:
            raise SessionMissingError(f"no such session: {self._recorder.session_id!r}: it was deleted")
        if page is None:
            require_may_block()
            self.flush_unmediated()
            return self._count(EMPTY)
        if page.mark & OPEN:
            require_may_block()
            self.flush_unmediated()
            self._settle(page)
            return self._count(page)
        if page.mark & UNMEDIATED and not self._lock.has_unmediated():
            require_may_block()
            return self._count(page)
        pending = page.pending_deletions
        if pending and self._scratch and self._scratch.count_removals() < pending:
            require_may_block()
            return self._count(page)
        return page

    def _count(self, page: LedgerPage) -> LedgerPage:
        """Count the workspace and write the result; if the walk is cancelled, the next caller counts."""
        are_stopped = self._stop_programs()
        try:
            found = self._root.measure()
        except WalkCancelledError:
            position = self._recorder.position()
            write_page(self._lock.fd, page._replace(mark=page.mark | OPEN, position=position))
            raise
        # What programs write from now on is not in this count.
        mark = page.mark & UNMEDIATED if self._lock.has_unmediated() else 0
        page = LedgerPage(mark, found.disk_bytes, found.entries, 0, page.recounts + 1, 0, 0)
        if not are_stopped:
            page = page._replace(mark=mark | OPEN, position=self._recorder.position())
        try:
            write_page(self._lock.fd, page)
        except OSError as error:
            raise UnavailableError(f"the ledger of the session cannot be written: {error.strerror}") from None
        self._recorder.logger.log_event(
            "session.recounted",
            session_id=self._recorder.session_id,
            size_bytes=found.disk_bytes,
            entries=found.entries,
        )
        return page

    def _settle(self, page: LedgerPage) -> None:
        """Record as undone the events since the mark whose change was not made."""
        try:
            events = effective_changes(self._recorder.events(page.position, refusals=False))
        except RotatedError:
            return
        for event in events:
            if not self._was_made(event, page.inode):
                self._recorder.record_undone(event)

    def _was_made(self, event: Event, inode: int) -> bool:
        """Whether the tree shows the change of *event*."""
        if (event.other_path or event.path).startswith("/") or is_cut(event.path) or is_cut(event.other_path):
            # The path cannot be looked up.
            return True
        if event.operation == "remove":
            return self._stat(event.path) is None
        if event.operation == "mkdir":
            found = self._stat(event.path)
            return found is not None and found.is_directory
        if event.operation == "link":
            found = self._stat(event.path)
            return found is not None and found.target == event.other_path
        if event.operation == "append" and event.before_bytes is not None:
            return self._append_was_made(event, event.before_bytes)
        if event.operation == "touch":
            found = self._stat(event.path, Links.FOLLOW)
            return found is not None and found.modified_ns & _MASK != inode
        found = self._stat(event.other_path or event.path)
        return found is not None and found.inode == inode

    def _append_was_made(self, event: Event, before_bytes: int) -> bool:
        """Whether all was appended, through a link as well; a partial append is truncated."""
        found = self._stat(event.path, Links.FOLLOW)
        if found is None or found.kind is not FileKind.FILE:
            return False
        if before_bytes < found.size_bytes < (event.after_bytes or 0):
            self._root.truncate(parse(event.path), before_bytes)
            return False
        return found.size_bytes == event.after_bytes

    def _stat(self, path: str, links: Links = Links.KEEP) -> FileInfo | None:
        try:
            return self._root.stat(parse(path), links)
        except MissingError:
            return None
        except CarrelError as error:
            if isinstance(error, UnavailableError):
                raise
            return None


def _none_left() -> bool:
    """Return true: without containers, no programs can be left."""
    return True
