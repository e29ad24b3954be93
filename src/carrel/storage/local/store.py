"""The sessions directory, and the state that is stored beside the sessions.

    <sessions directory>/
      <session id>/           a workspace: only the session's own files
      .carrel/
        id                    a link whose text identifies this store
        registry.db           records of all sessions
        trash/                trees that are being removed
        sessions/<session id>/
          ledger              usage of the session, and its lock
          direct              locked while programs change files without the gate
          lease               locked by everyone who has the session open; modified at the last use
          journal.N           records of changes
          refusals.N          records of refusals
          head                the latest record of each
          .carrel-draft-…     unfinished files

An id cannot begin with a dot, so no session can name `.carrel`, and nothing of ours is inside a workspace.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from carrel.errors import BusyError, CarrelError, SessionMissingError, UnavailableError
from carrel.fs.handle import Handle, directories_in, names_in
from carrel.fs.host.durability import Durability
from carrel.fs.host.trusted_dirs import make_trusted_subdir, open_trusted_dir, open_trusted_subdir
from carrel.fs.local.removal import SCAN
from carrel.fs.local.scratch import Scratch, TrashedTree, empty_trash, open_child
from carrel.fs.rules import DRAFT_PREFIX
from carrel.storage.local.at_fork import fork_guard
from carrel.storage.local.ledger_page import write_deleted, write_empty
from carrel.storage.local.lock import FILE as LEDGER
from carrel.storage.local.lock import WAIT_SECONDS, SessionLock

STATE = ".carrel"
LEASE = "lease"

_ID = "id"
_TRIES = 100
_LEASE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Store:
    """The directories of all sessions, reopened after their disk was unmounted."""

    def __init__(self, root: Path, durability: Durability = Durability.PROCESS) -> None:
        """Use the directory *root*, which is created if it is missing.

        Raises:
            UnavailableError: It is a link, owned by another user, writable for others, or cannot be used.
        """
        self.root = root
        self.durability = durability
        self._path = os.fspath(root)
        self._opened = _Opened(root, durability)

    @property
    def directory(self) -> Handle:
        """The current sessions directory.

        Raises:
            UnavailableError: It is missing, or another one is in its place.
        """
        return self._current().directory

    def _current(self) -> _Opened:
        """Return the open directories, reopened if they were replaced."""
        # Without a lock, which a forked child would inherit.
        opened = self._opened
        try:
            now = os.lstat(self._path)
        except OSError as error:
            raise self._unavailable(error) from None
        if not opened.is_current(now):
            self._require_same_store()
            opened = self._opened = _Opened(self.root, self.durability)
        return opened

    def _require_same_store(self) -> None:
        if self._opened.id is not None and _read_id(self.root) != self._opened.id:
            raise UnavailableError(
                f"sessions directory {self.root.name!r} cannot be used:"
                " it is not the one that was there before; is its disk mounted?"
            )

    def state(self) -> Handle:
        """Return our own directory, which is created with the first session."""
        return self._current().state()

    # One session

    @contextmanager
    def claim(self, session_id: str, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[Claim]:
        """Lock the session, so that no other caller can create, open, change or delete it.

        When the claim ends, the state of a session without a workspace is removed.

        Raises:
            BusyError: Another caller held the lock for too long.
        """
        problem: UnavailableError | None = None
        try:
            claim = self._claim(session_id, wait_seconds)
            try:
                yield claim
            finally:
                claim.release()
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            problem = self._unavailable(error)
        if problem is not None:
            raise problem

    def _claim(self, session_id: str, wait_seconds: float) -> Claim:
        for _ in range(_TRIES):
            opened = self._current()
            states = opened.states()
            state = make_trusted_subdir(states, session_id, self.durability)
            lock = SessionLock(state, wait_seconds=wait_seconds)
            # If it is gone, the session was deleted in the meantime, and its state with it.
            with suppress(SessionMissingError):
                if _is_locked_at(lock, state, states, session_id):
                    return Claim(opened, session_id, state, lock)
        raise BusyError(f"session {session_id!r} is busy; try again")

    def empty_trash(self) -> None:
        """Remove the trees that killed processes left in the trash."""
        empty_trash(self._current().trash())

    def leftover_states(self) -> list[str]:
        """Return the ids of states without a workspace or with drafts, which killed processes leave."""
        states = self._current().states()
        existing = set(self.workspaces())
        return [name for name in self._names(states) if name not in existing or _has_drafts(states, name)]

    def workspaces(self) -> list[str]:
        """Return the names of all directories that could be workspaces."""
        return self._names(self.directory)

    def _names(self, directory: Handle) -> list[str]:
        """Return the sorted names of the directories in *directory*."""
        try:
            return sorted(directories_in(directory.fd))
        except OSError as error:
            raise self._unavailable(error) from None

    def _unavailable(self, error: OSError) -> UnavailableError:
        reason = os.strerror(error.errno or errno.EIO)
        if error.errno in (errno.EACCES, errno.EPERM):
            reason = "Access denied"
        elif error.errno == errno.ENOENT:
            reason = "it is not there; is its disk mounted?"
        return UnavailableError(f"sessions directory {self.root.name!r} cannot be used: {reason}")


class _Opened:
    """Handles of the sessions directory and of our directories in it."""

    def __init__(self, root: Path, durability: Durability) -> None:
        self.directory = open_trusted_dir(root, durability)
        self.durability = durability
        self.id = _read_id(root)
        """The id of the store; `None` before the first session."""
        self._own: dict[str, Handle] = {}
        found = os.fstat(self.directory.fd)
        self._identity = found.st_dev, found.st_ino
        self._mount = _mount_of(self.directory)

    def is_current(self, now: os.stat_result) -> bool:
        """Whether the directory is still the one in *now*, and its disk was not unmounted in the meantime."""
        return (now.st_dev, now.st_ino) == self._identity and _mount_of(self.directory) == self._mount

    def state(self) -> Handle:
        """Return our own directory, which is created if it is missing."""
        found = self._own.get(STATE)
        if found is None:
            found = make_trusted_subdir(self.directory, STATE, self.durability)
            self.id = _agree_on_id(found)
            self._own[STATE] = found
        return found

    def trash(self) -> Handle:
        """Return the directory that removed trees are moved to."""
        return self._own_directory("trash")

    def states(self) -> Handle:
        """Return the directory that holds the state directory of each session."""
        return self._own_directory("sessions")

    def _own_directory(self, name: str) -> Handle:
        found = self._own.get(name)
        if found is None:
            found = self._own[name] = make_trusted_subdir(self.state(), name, self.durability)
        return found


class Claim:
    """The lock on one session, and the operations that need it."""

    def __init__(self, opened: _Opened, session_id: str, state: Handle, lock: SessionLock) -> None:
        self.session_id = session_id
        self.state = state
        self._opened = opened
        self._lock = lock
        self._has_created_workspace = False
        self._trashed: list[TrashedTree] = []
        self._trashed_workspace: TrashedTree | None = None
        self.freed_bytes = 0
        """Bytes that the removal of the workspace freed on the host."""

    def release(self) -> None:
        """Release the lock, and remove what was moved to the trash."""
        try:
            if not self._has_workspace():
                self._trash_state()
        finally:
            self._lock.release()
            self._lock.close()
            self._empty_trash()

    def _empty_trash(self) -> None:
        for tree in self._trashed:
            # A tree that cannot be removed stays in the trash.
            with suppress(OSError):
                freed = tree.remove()
                if tree is self._trashed_workspace:
                    self.freed_bytes = freed.disk_bytes

    def _has_workspace(self) -> bool:
        """Whether the state must be kept; also true if a link or a file has the name of the workspace."""
        try:
            found = os.stat(self.session_id, dir_fd=self._opened.directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        # An empty ledger was created by this claim, so there never was a session.
        return stat.S_ISDIR(found.st_mode) or os.fstat(self.ledger_fd).st_size > 0

    @property
    def ledger_fd(self) -> int:
        """Descriptor of the ledger, for reading and writing."""
        return self._lock.fd

    def open_state(self) -> int:
        """Return a new descriptor of the state directory, which the caller closes."""
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.state.fd)

    @property
    def scratch(self) -> Scratch:
        """The directories for the session's unfinished files and removed trees."""
        return Scratch(drafts=self.state, trash=self._opened.trash(), tag=self.session_id)

    def workspace(self) -> Handle | None:
        """Open the directory of the workspace; return `None` if it is missing.

        Raises:
            UnavailableError: The name is that of a link, a file or a directory of another user.
        """
        return open_trusted_subdir(self._opened.directory, self.session_id)

    def create_workspace(self) -> None:
        """Create the directory of the workspace and an empty ledger."""
        directory = self._opened.directory
        os.mkdir(self.session_id, 0o700, dir_fd=directory.fd)
        self._has_created_workspace = True
        self._flush(directory, self.state)
        write_empty(self.ledger_fd)

    def undo_create_workspace(self) -> None:
        """Remove the workspace if this claim has created it."""
        if self._has_created_workspace:
            self.trash_workspace()

    def last_use_ns(self, now_ns: int) -> int:
        """Return the time of the last use that the state shows; 0 if it shows none.

        A use in the future (the clock was set back) is changed to *now_ns*.
        """
        used = 0
        for name in (LEASE, LEDGER):
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=self.state.fd, follow_symlinks=False)
                if name == LEDGER and not found.st_size:
                    # It was created by this claim.
                    continue
                if found.st_mtime_ns > now_ns:
                    with suppress(OSError):
                        os.utime(name, ns=(now_ns, now_ns), dir_fd=self.state.fd, follow_symlinks=False)
                used = max(used, min(found.st_mtime_ns, now_ns))
        return used

    def is_in_use(self) -> bool:
        """Whether the session is open in any process."""
        try:
            held = Handle(os.open(LEASE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.state.fd))
            fcntl.flock(held.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False

    def lease(self, now_ns: int) -> Lease:
        """Take a lease, which marks the session as open."""
        lease = Lease(self.state)
        lease.renew(now_ns)
        return lease

    def trash_workspace(self) -> None:
        """Move the workspace to the trash.

        The state follows when the claim ends, because the lock is part of it: later callers start afresh.
        """
        if self.workspace() is not None:
            self._trashed_workspace = self._trash(self._opened.directory)

    def _trash_state(self) -> None:
        """Move the state to the trash, marked so that everyone who still uses the session finds out."""
        write_deleted(self.ledger_fd)
        self._trash(self._opened.states())

    def _trash(self, directory: Handle) -> TrashedTree:
        """Move the entry of the session in *directory* to the trash."""
        scratch = self.scratch
        tree = scratch.move_to_trash(open_child, directory, self.session_id.encode())
        self._trashed.append(tree)
        self._flush(directory, scratch.trash)
        return tree

    def _flush(self, *directories: Handle) -> None:
        for directory in directories:
            self._opened.durability.flush(directory.fd)


class Lease:
    """Marks a session as open in this process; forked children have no part in it.

    A lock belongs to every process that inherited the open file. So a child closes the file at once: it would
    keep the session in use after its parent is done, and record uses of its own.
    """

    def __init__(self, state: Handle) -> None:
        """Lock the lease file in the directory *state*, which is created if it is missing."""
        self._lock = RLock()
        self._handle: Handle | None = None
        fork_guard().watch(self)
        with self._lock:
            handle = Handle(os.open(LEASE, _LEASE_FLAGS, 0o600, dir_fd=state.fd))
            fcntl.flock(handle.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self._handle = handle

    def renew(self, now_ns: int) -> None:
        """Record *now_ns* as the last use."""
        if self._handle is not None:
            with suppress(OSError):
                os.utime(self._handle.fd, ns=(now_ns, now_ns))

    def release(self, now_ns: int) -> None:
        """Record *now_ns* as the last use and unlock the file."""
        self.renew(now_ns)
        self._handle = None

    def before_fork(self) -> bool:
        """Wait until the file is locked, so that no child inherits it unnoticed."""
        return self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let the constructor continue."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Close the parent's file in a forked child, which does not unlock it."""
        self._lock = RLock()
        self._handle = None


def _has_drafts(states: Handle, name: str) -> bool:
    """Whether a state holds drafts, or cannot be read."""
    try:
        held = Handle(os.open(name, SCAN, dir_fd=states.fd))
        return any(found.startswith(DRAFT_PREFIX) for found in names_in(held.fd))
    except OSError:
        return True


def _is_locked_at(lock: SessionLock, state: Handle, states: Handle, session_id: str) -> bool:
    """Acquire the lock, and release it if the state was moved away; return whether it is held."""
    try:
        lock.acquire()
    except BaseException:
        lock.close()
        raise
    is_in_place = False
    try:
        is_in_place = _is_at(state, states, session_id)
    finally:
        if not is_in_place:
            lock.release()
            lock.close()
    return is_in_place


def _is_at(state: Handle, states: Handle, session_id: str) -> bool:
    try:
        now = os.stat(session_id, dir_fd=states.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(state.fd))


def _mount_of(directory: Handle) -> str | None:
    """Return the host path of the directory; it changes when the disk is unmounted, even if mounted again."""
    try:
        return os.readlink(f"/proc/self/fd/{directory.fd}")
    except OSError:
        return None


def _read_id(root: Path) -> str | None:
    try:
        return os.readlink(root / STATE / _ID)
    except OSError:
        return None


def _agree_on_id(state: Handle) -> str | None:
    """Return the id of this store, which the first process creates."""
    with suppress(OSError):
        os.symlink(os.urandom(16).hex(), _ID, dir_fd=state.fd)
    try:
        return os.readlink(_ID, dir_fd=state.fd)
    except OSError:
        return None
