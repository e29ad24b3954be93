"""`FileLedger`: what a session holds, exact across all threads and processes.

One lock a session: whoever has it looks at what a change replaces, charges the difference, marks the ledger,
writes the journal, makes the change, and writes the new count. A mark that is found there was left by one
who was killed in between. Then the records since the mark are compared with the tree, those that did not come
true are taken back, and the tree is counted, once.

Where changes must survive a power loss, the ledger with its mark is on the disk before the records are, these
before the change is made, and the change before the mark goes. So what the disk has of a change that was not
acknowledged is settled like one that was cut short by a kill. The count without a mark is not flushed: that
of another run of the host is not relied on anyway.

A tree that is removed goes to the trash first and is given back when it is gone. Until then it is owed;
if nobody alive is removing it, the workspace is counted as well.

A file that takes the place of another is charged the difference. While it is written both are on the disk,
so what all writers of large files have written so far must fit as well; small ones (up to 1 MiB) are not
asked.

Not covered: files that somebody on the host makes or removes without the gate are not counted until
`recount`.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple
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
from carrel.fs.api import Links
from carrel.fs.cancellable import WalkCancelledError
from carrel.fs.handle import Handle
from carrel.fs.host.durability import Durability, unwritten
from carrel.fs.local.draft import Draft
from carrel.fs.local.root import Root
from carrel.fs.local.scratch import Scratch
from carrel.fs.nonblocking import require_may_block
from carrel.paths.parsed_path import parse
from carrel.storage.local.at_fork import fork_guard
from carrel.storage.local.lock import SessionLock
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder, effective_changes
from carrel.storage.reentry import ReentryGuard
from carrel.values import FileInfo, FileKind, Usage

_HEADER = struct.Struct("<8sQQQQQQQ16s")
_MAGIC = b"carrel\0\1"
_MASK = (1 << 64) - 1


_OPEN = 1
"""Somebody is in the middle of a change, or was killed there."""
_GONE = 2
"""The session was deleted."""
_DIRECT = 4
"""Programs change the files without the gate, or did so when whoever let them run was killed."""


class LedgerPage(NamedTuple):
    """What the file holds."""

    mark: int
    """0, or some of the above."""
    disk_bytes: int
    entries: int
    owed: int
    """Trees in the trash that are not given back yet."""
    recounts: int
    """How often the workspace was counted; what was owed before is settled."""
    position: int
    """Of the journal, before the change that is open."""
    inode: int
    """What stands at the recorded path if the change came true; 0 if that is not known before. Of a touch,
    the time that is no longer there then."""

    def plus(self, more_bytes: int, more_entries: int) -> LedgerPage:
        """With so much more; never less than nothing, whatever the host removed."""
        mark, disk_bytes, entries, owed, recounts, position, inode = self
        disk_bytes, entries = max(0, disk_bytes + more_bytes), max(0, entries + more_entries)
        return LedgerPage(mark, disk_bytes, entries, owed, recounts, position, inode)

    @property
    def is_settled(self) -> bool:
        """Whether the count can be relied on as it is."""
        return not self.mark and not self.owed

    @property
    def usage(self) -> Usage:
        """The count alone."""
        return Usage(disk_bytes=self.disk_bytes, entries=self.entries)


class FileLedger:
    """The count of one session, in its state directory."""

    def __init__(
        self,
        root: Root,
        lock: SessionLock,
        *,
        recorder: Recorder,
        quota: Quota,
        scratch: Scratch,
        at_end: Callable[[], None],
        end_programs: Callable[[], bool] | None = None,
        durability: Durability = Durability.PROCESS,
    ) -> None:
        """Answer for the changes of *root*, whose `account` this is to be; closing calls *at_end*.

        Before a count, *end_programs* ends what goes on though whoever let it run was killed, and says
        whether nothing does.
        """
        self._at_end = at_end
        self._end_programs = end_programs or _nothing_runs
        self._root_ref = ref(root)
        self._lock = lock
        self._recorder = recorder
        self._quota = quota
        self._scratch: Scratch | None = scratch
        self._page: LedgerPage | None = None
        """While the lock is held: what the file holds."""
        self._next: LedgerPage | None = None
        """What it will hold when the change is made."""
        self._spoiled = False
        self._durability = durability
        self._pending: list[Event] = []
        """Said, and not written down yet."""
        self._recorded: list[Event] = []
        """Written down."""
        self._is_recording = False
        self._changed: list[Handle] = []
        """To be flushed before the change is acknowledged."""
        self._reentry = ReentryGuard()
        self._direct: Handle | None = None
        """Held while programs that this one lets run change the files."""
        fork_guard().watch(lock.turn)

    # One change

    def __enter__(self) -> FileLedger:
        self._reentry.require_none()
        self._lock.acquire()
        try:
            self._forget()
            self._page = self._turned(read_page(self._lock.fd))
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
                self._end(is_made=kind is None)
            # Otherwise nobody knows how far the change came: the mark stays, and the next one looks.
        finally:
            self._reentry.end()
            self._forget()
            self._spoiled = False
            self._lock.release()

    def _forget(self) -> None:
        self._page = self._next = None
        self._is_recording = False
        for noted in (self._pending, self._recorded, self._changed):
            noted.clear()

    def _end(self, *, is_made: bool) -> None:
        if is_made:
            self.prepare()
            for held in self._changed:
                # If that fails nobody knows what the disk has, and the mark stays.
                self._durability.flush_held(held.fd)
        elif self._is_recording and self._next is not None:
            # Nobody knows what the journal has of it: the mark stays, and the next one looks.
            return
        else:
            for event in self._recorded:
                self._recorder.take_back(event)
        if self._next is None:
            return
        page = self._next if is_made else self._held
        if self._spoiled:
            page = page._replace(mark=page.mark | _OPEN, position=self._recorder.position())
        write_page(self._lock.fd, page)

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        mark, disk_bytes, entries, owed, recounts, _, _ = page = self._held
        self._quota.require(disk_bytes, entries, more_bytes, more_entries)
        self._durability.require_waiting()
        position = self._recorder.position()
        write_page(
            self._lock.fd, LedgerPage(mark | _OPEN, disk_bytes, entries, owed, recounts, position, inode)
        )
        self._next = page.plus(more_bytes, more_entries)

    def record(
        self,
        operation: str,
        path: str,
        *,
        other: str | None = None,
        before_bytes: int | None = None,
        after_bytes: int | None = None,
    ) -> None:
        event = self._recorder.event(
            operation, path, other=other, before_bytes=before_bytes, after_bytes=after_bytes
        )
        self._pending.append(event)

    def prepare(self) -> None:
        events, self._pending = self._pending, []
        if events:
            # Whatever it holds: a mark of this change, or none, which must not be an older one on the disk.
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
        self._spoiled = True

    def defer_release(self) -> int:
        page = self._next or self._held
        self._next = page._replace(owed=page.owed + 1)
        return page.recounts

    def release(self, mark: int, freed: Usage) -> None:
        try:
            with self:
                page = self._held
                if page.recounts == mark:
                    page = page.plus(-freed.disk_bytes, -freed.entries)
                    self._next = page._replace(owed=max(0, page.owed - 1))
        except SessionMissingError:
            return

    # What there is

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        used = self.usage()
        scratch = self._scratch
        others = 0 if scratch is None else scratch.drafted_bytes() - drafted_bytes
        self._quota.require(used.disk_bytes + others, used.entries, more_bytes, more_entries)

    def spool(self) -> Draft | None:
        """A file beside the drafts of the session."""
        return None if self._scratch is None else self._scratch.spool()

    def require_spool(self, size_bytes: int, *, coming_bytes: int = 0, replacing: bool) -> None:
        """Refuse an archive that cannot fit, with all that the session has in drafts."""
        scratch = self._scratch
        spooled = size_bytes if scratch is None else max(size_bytes, scratch.drafted_bytes())
        self._quota.require_spool(0 if replacing else self.usage().disk_bytes, spooled, coming_bytes)

    def usage(self) -> Usage:
        """What the session holds; nothing is counted but after a crash."""
        page = self._page
        if page is not None:
            return page.usage
        with self:
            return self._held.usage

    def known_entries(self) -> int | None:
        """How many entries there are, if that can be told without waiting for anybody."""
        try:
            page = read_page(self._lock.fd)
        except OSError:
            # Nobody has counted yet, or it was closed.
            return None
        return page.entries if page is not None and page.is_settled else None

    def recount(self) -> Usage:
        """Count what is there, also what did not come through the gate."""
        with self:
            self._page = self._counted(self._held)
            return self._page.usage

    def begin_direct(self) -> None:
        """Programs change the files by themselves from now on; if this one is killed, the next one counts."""
        with self:
            self.charge(0, 0)
            self._direct = self._lock.join_direct()
            self._next = self._held._replace(mark=_DIRECT)
        # What they do must not be taken for the end of an earlier change.
        self._flush_page()

    def flush_files(self) -> None:
        """Flush all that programs changed by themselves, where that is due."""
        if self._durability is Durability.DISK:
            self._root.unmediated_access().flush()

    def end_direct(self) -> Usage:
        """They do no longer; count what there is."""
        held, self._direct = self._direct, None
        with self:
            if held is not None:
                # Also for a child that was forked meanwhile and has it open.
                fcntl.flock(held.fd, fcntl.LOCK_UN)
            self._page = self._counted(self._held)
            return self._page.usage

    def close(self) -> None:
        """Let go of the file and of all directories."""
        self._direct = None
        self._end_programs = _nothing_runs
        self._lock.close()
        self._at_end()
        self._scratch = None
        self._quota = Quota(disk_bytes=0, entries=0)

    @property
    def _root(self) -> Root:
        """The root; it has this as its account, so it is not held, and both go when nobody uses them."""
        root = self._root_ref()
        if root is None:
            raise ClosedError("workspace is closed")
        return root

    @property
    def _held(self) -> LedgerPage:
        if self._page is None:
            raise ClosedError("the ledger is used outside `with`")
        return self._page

    # After a crash

    def _turned(self, page: LedgerPage | None) -> LedgerPage:
        """What the file holds, once everything that others left unfinished is settled."""
        if page is not None and page.mark & _GONE:
            raise SessionMissingError(f"no such session: {self._recorder.session_id!r}: it was deleted")
        if page is None:
            require_may_block()
            self.flush_files()
            return self._counted(_EMPTY)
        if page.mark & _OPEN:
            require_may_block()
            self.flush_files()
            self._settle(page)
            return self._counted(page)
        if page.mark & _DIRECT and not self._lock.has_direct():
            require_may_block()
            return self._counted(page)
        if page.owed and self._scratch and self._scratch.count_removals() < page.owed:
            require_may_block()
            return self._counted(page)
        return page

    def _counted(self, page: LedgerPage) -> LedgerPage:
        """Count the workspace, and write that down; if there is no time for that, the next one counts."""
        is_calm = self._end_programs()
        try:
            found = self._root.measure()
        except WalkCancelledError:
            position = self._recorder.position()
            write_page(self._lock.fd, page._replace(mark=page.mark | _OPEN, position=position))
            raise
        # What programs write from now on is not in this count either.
        mark = page.mark & _DIRECT if self._lock.has_direct() else 0
        page = LedgerPage(mark, found.disk_bytes, found.entries, 0, page.recounts + 1, 0, 0)
        if not is_calm:
            page = page._replace(mark=mark | _OPEN, position=self._recorder.position())
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
        """Take back the records since the mark that did not come true."""
        try:
            events = effective_changes(self._recorder.events(page.position, refusals=False))
        except RotatedError:
            return
        for event in events:
            if not self._came_true(event, page.inode):
                self._recorder.take_back(event)

    def _came_true(self, event: Event, inode: int) -> bool:
        if (event.other_path or event.path).startswith("/") or is_cut(event.path) or is_cut(event.other_path):
            # Nobody can look.
            return True
        if event.operation == "remove":
            return self._look(event.path) is None
        if event.operation == "mkdir":
            found = self._look(event.path)
            return found is not None and found.is_directory
        if event.operation == "link":
            found = self._look(event.path)
            return found is not None and found.target == event.other_path
        if event.operation == "append" and event.before_bytes is not None:
            return self._append_came_true(event, event.before_bytes)
        if event.operation == "touch":
            found = self._look(event.path, Links.FOLLOW)
            return found is not None and found.modified_ns & _MASK != inode
        found = self._look(event.other_path or event.path)
        return found is not None and found.inode == inode

    def _append_came_true(self, event: Event, before_bytes: int) -> bool:
        """Whether all was appended, through a link as well; what was appended in part is taken away."""
        found = self._look(event.path, Links.FOLLOW)
        if found is None or found.kind is not FileKind.FILE:
            return False
        if before_bytes < found.size_bytes < (event.after_bytes or 0):
            self._root.truncate(parse(event.path), before_bytes)
            return False
        return found.size_bytes == event.after_bytes

    def _look(self, path: str, links: Links = Links.KEEP) -> FileInfo | None:
        try:
            return self._root.stat(parse(path), links)
        except MissingError:
            return None
        except CarrelError as error:
            if isinstance(error, UnavailableError):
                raise
            return None


def begin(fd: int) -> None:
    """Write the ledger of a session that is empty."""
    write_page(fd, _EMPTY)


def end(fd: int) -> None:
    """Write that the session was deleted; everybody who still uses it will hear of it."""
    write_page(fd, _EMPTY._replace(mark=_GONE))


_EMPTY = LedgerPage(0, 0, 0, 0, 0, 0, 0)


def read_page(fd: int) -> LedgerPage | None:
    """What the file holds; `None` if that cannot be relied on: it is new, damaged, or the host went down."""
    found = os.pread(fd, _HEADER.size, 0)
    if len(found) != _HEADER.size:
        return None
    magic, mark, *numbers, boot = _HEADER.unpack(found)
    if magic != _MAGIC:
        return None
    page = LedgerPage(mark, *numbers)
    # A mark means the same whenever it is found.
    return page if page.mark or boot == _boot_id() else None


def write_page(fd: int, page: LedgerPage) -> None:
    """Replace what the file holds."""
    os.pwrite(fd, _HEADER.pack(_MAGIC, *page, _boot_id()), 0)


@cache
def _boot_id() -> bytes:
    """Tells one run of the host from another; what was not on the disk when it went down is lost."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)


def _nothing_runs() -> bool:
    """Where no programs can be left."""
    return True
