"""The sessions directory, and the state that is kept beside the sessions.

    <sessions directory>/
      <session id>/           a workspace: nothing but the session's own files
      .carrel/
        id                    a link whose text tells this store from any other
        registry.db           which sessions there are
        trash/                trees that are being removed
        sessions/<session id>/
          ledger              what the session holds, and the lock on it
          direct              locked by who lets programs change the files without the gate
          lease               locked by all who have the session open; its time is that of the last use
          journal.N           what was changed
          refusals.N          what was refused
          head                the latest record of each
          .carrel-draft-…     files that are not finished

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
from carrel.storage.local import ledger
from carrel.storage.local.at_fork import fork_guard
from carrel.storage.local.lock import FILE as LEDGER
from carrel.storage.local.lock import WAIT_SECONDS, SessionLock

STATE = ".carrel"
LEASE = "lease"

_ID = "id"
_TRIES = 100
_LEASE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Store:
    """The directories of all sessions; opened anew when the disk was away."""

    def __init__(self, root: Path, durability: Durability = Durability.PROCESS) -> None:
        """Use the directory *root*, making it if it is missing; its names are kept as *durability* says.

        Raises:
            UnavailableError: It is a link, somebody else's, writable for others, or cannot be used.
        """
        self.root = root
        self.durability = durability
        self._opened = _Opened(open_trusted_dir(root, durability))
        self._id = _read_id(root)

    @property
    def directory(self) -> Handle:
        """The sessions directory as it is now.

        Raises:
            UnavailableError: It is not there, or another one is in its place.
        """
        return self._now().directory

    def _now(self) -> _Opened:
        """What is open, opened anew if another directory is there; no lock, so that no child inherits one."""
        opened = self._opened
        try:
            now = os.lstat(self.root)
        except OSError as error:
            raise self._unavailable(error) from None
        if not opened.is_still(now):
            self._require_same_store()
            opened = self._opened = _Opened(open_trusted_dir(self.root))
        return opened

    def _require_same_store(self) -> None:
        if self._id is not None and _read_id(self.root) != self._id:
            raise UnavailableError(
                f"sessions directory {self.root.name!r} cannot be used:"
                " it is not the one that was there before; is its disk mounted?"
            )

    def state(self) -> Handle:
        """What is ours, made only when there is a session to keep it for."""
        return self._state(self._now())

    def _state(self, opened: _Opened) -> Handle:
        found = opened.own.get(STATE)
        if found is None:
            found = make_trusted_subdir(opened.directory, STATE, self.durability)
            self._id = _agree_on_id(found)
            opened.own[STATE] = found
        return found

    def trash(self) -> Handle:
        """Where removed trees go."""
        return self._own_directory("trash")

    def states(self) -> Handle:
        """Where each session has its state."""
        return self._own_directory("sessions")

    def _own_directory(self, name: str) -> Handle:
        opened = self._now()
        found = opened.own.get(name)
        if found is None:
            found = opened.own[name] = make_trusted_subdir(self._state(opened), name, self.durability)
        return found

    # One session

    @contextmanager
    def claim(self, session_id: str, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[Claim]:
        """Keep everybody else from creating, opening, changing or deleting the session.

        Afterwards there is no state of a session that has no workspace.

        Raises:
            BusyError: Somebody else has kept it for too long.
        """
        problem: UnavailableError | None = None
        try:
            claim = self._claim(session_id, wait_seconds)
            try:
                yield claim
            finally:
                claim.end()
        except OSError as error:
            if isinstance(error, CarrelError):
                raise
            problem = self._unavailable(error)
        if problem is not None:
            raise problem

    def _claim(self, session_id: str, wait_seconds: float) -> Claim:
        for _ in range(_TRIES):
            states = self.states()
            state = make_trusted_subdir(states, session_id, self.durability)
            lock = SessionLock(state, wait_seconds=wait_seconds)
            # If it is not there any more, the session was deleted meanwhile, and its state with it.
            with suppress(SessionMissingError):
                if _is_locked_at(lock, state, states, session_id):
                    return Claim(self, session_id, state, lock)
        raise BusyError(f"session {session_id!r} is busy; try again")

    def empty_trash(self) -> None:
        """Remove what processes that were killed had thrown away."""
        empty_trash(self.trash())

    def leftover_states(self) -> list[str]:
        """The ids of the states that have no workspace, or hold drafts; killed processes leave such."""
        states = self.states()
        there = set(self.workspaces())
        return [name for name in self._names(states) if name not in there or _has_drafts(states, name)]

    def workspaces(self) -> list[str]:
        """The names of all directories that could be workspaces."""
        return self._names(self.directory)

    def _names(self, directory: Handle) -> list[str]:
        """The names of the directories in one of ours."""
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
    """The sessions directory, and what is ours in it, as they were when they were opened."""

    def __init__(self, directory: Handle) -> None:
        self.directory = directory
        self.own: dict[str, Handle] = {}
        self._mount = _mount_of(directory)

    def is_still(self, now: os.stat_result) -> bool:
        """Whether this is the directory that *now* tells of, and its disk was not away meanwhile."""
        return os.path.samestat(now, os.fstat(self.directory.fd)) and _mount_of(self.directory) == self._mount


class Claim:
    """The right to decide about one session."""

    def __init__(self, store: Store, session_id: str, state: Handle, lock: SessionLock) -> None:
        self.session_id = session_id
        self.state = state
        self._store = store
        self._lock = lock
        self._has_made_workspace = False
        self._thrown: list[TrashedTree] = []
        self._thrown_workspace: TrashedTree | None = None
        self.freed_bytes = 0
        """What was given back to the host when the workspace was removed."""

    def end(self) -> None:
        """Let others decide, and remove what was thrown away."""
        try:
            if not self._has_workspace():
                self._throw_state_away()
        finally:
            self._lock.release()
            self._lock.close()
            self._remove_thrown()

    def _remove_thrown(self) -> None:
        for thrown in self._thrown:
            # What cannot be removed stays in the trash.
            with suppress(OSError):
                freed = thrown.remove()
                if thrown is self._thrown_workspace:
                    self.freed_bytes = freed.disk_bytes

    def _has_workspace(self) -> bool:
        """Whether there is something to keep the state for, also if somebody put a link or a file there."""
        try:
            found = os.stat(self.session_id, dir_fd=self._store.directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        # An empty ledger was made by this claim, so there never was a session.
        return stat.S_ISDIR(found.st_mode) or os.fstat(self.ledger_fd).st_size > 0

    @property
    def ledger_fd(self) -> int:
        """The ledger, to be read and written."""
        return self._lock.fd

    def open_state(self) -> int:
        """A descriptor of the state directory, for its new owner alone."""
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.state.fd)

    @property
    def scratch(self) -> Scratch:
        """Where the session's unfinished files and removed trees go."""
        return Scratch(drafts=self.state, trash=self._store.trash(), tag=self.session_id)

    def workspace(self) -> Handle | None:
        """The workspace; `None` if there is none.

        Raises:
            UnavailableError: The name stands for a link, a file or somebody else's directory.
        """
        return open_trusted_subdir(self._store.directory, self.session_id)

    def make_workspace(self) -> None:
        """Make the empty workspace, and the ledger that says so."""
        directory = self._store.directory
        os.mkdir(self.session_id, 0o700, dir_fd=directory.fd)
        self._has_made_workspace = True
        self._flush(directory, self.state)
        ledger.begin(self.ledger_fd)

    def unmake_workspace(self) -> None:
        """Take back what `make_workspace` made, and nothing else."""
        if self._has_made_workspace:
            self.throw_away()

    def last_use_ns(self, now_ns: int) -> int:
        """When the session was used last, as far as its state tells; 0 if it does not.

        A use in the future (the clock was set back) is now, and stays so when time goes on.
        """
        used = 0
        for name in (LEASE, LEDGER):
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=self.state.fd, follow_symlinks=False)
                if name == LEDGER and not found.st_size:
                    # It was made by this claim.
                    continue
                if found.st_mtime_ns > now_ns:
                    with suppress(OSError):
                        os.utime(name, ns=(now_ns, now_ns), dir_fd=self.state.fd, follow_symlinks=False)
                used = max(used, min(found.st_mtime_ns, now_ns))
        return used

    def is_in_use(self) -> bool:
        """Whether somebody has the session open."""
        try:
            held = Handle(os.open(LEASE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.state.fd))
            fcntl.flock(held.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False

    def lease(self, now_ns: int) -> Lease:
        """Have the session open from now on."""
        lease = Lease(self.state)
        lease.renew(now_ns)
        return lease

    def throw_away(self) -> None:
        """Take the workspace away, so that it cannot be found again.

        The state goes at the end of the claim, because with it goes the lock: whoever comes then begins anew.
        """
        if self.workspace() is not None:
            self._thrown_workspace = self._throw(self._store.directory)

    def _throw_state_away(self) -> None:
        """Take away the state; those who still use the session will hear of it."""
        ledger.end(self.ledger_fd)
        self._throw(self._store.states())

    def _throw(self, directory: Handle) -> TrashedTree:
        """Move what *directory* has of the session into the trash."""
        scratch = self.scratch
        thrown = scratch.move_to_trash(open_child, directory, self.session_id.encode())
        self._thrown.append(thrown)
        self._flush(directory, scratch.trash)
        return thrown

    def _flush(self, *directories: Handle) -> None:
        for directory in directories:
            self._store.durability.flush(directory.fd)


class Lease:
    """Held by one who has a session open; a forked child has no part in it.

    A lock belongs to all who inherited the open file. So a child closes it at once: it would keep the session
    in use after its parent is done, and note uses of its own.
    """

    def __init__(self, state: Handle) -> None:
        """Lock the file in the directory *state*, which is made if it is missing."""
        self._lock = RLock()
        self._handle: Handle | None = None
        fork_guard().watch(self)
        with self._lock:
            handle = Handle(os.open(LEASE, _LEASE_FLAGS, 0o600, dir_fd=state.fd))
            fcntl.flock(handle.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            self._handle = handle

    def renew(self, now_ns: int) -> None:
        """Note that the session is used."""
        if self._handle is not None:
            with suppress(OSError):
                os.utime(self._handle.fd, ns=(now_ns, now_ns))

    def end(self, now_ns: int) -> None:
        """Note the last use, and let go."""
        self.renew(now_ns)
        self._handle = None

    def hold(self) -> bool:
        """Wait until the file is locked, so that no child inherits it unseen."""
        return self._lock.acquire()

    def release(self) -> None:
        """Go on after a fork."""
        self._lock.release()

    def disown(self) -> None:
        """Close the file of the parent in a forked child, which leaves the parent's lock as it is."""
        self._lock = RLock()
        self._handle = None


def _has_drafts(states: Handle, name: str) -> bool:
    """Whether a state holds drafts, or cannot be looked at."""
    try:
        held = Handle(os.open(name, SCAN, dir_fd=states.fd))
        return any(found.startswith(DRAFT_PREFIX) for found in names_in(held.fd))
    except OSError:
        return True


def _is_locked_at(lock: SessionLock, state: Handle, states: Handle, session_id: str) -> bool:
    """Take the lock, and let go of it if the state is not at its place any more."""
    try:
        lock.acquire()
    except BaseException:
        lock.close()
        raise
    is_there = False
    try:
        is_there = _is_at(state, states, session_id)
    finally:
        if not is_there:
            lock.release()
            lock.close()
    return is_there


def _is_at(state: Handle, states: Handle, session_id: str) -> bool:
    try:
        now = os.stat(session_id, dir_fd=states.fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(now, os.fstat(state.fd))


def _mount_of(directory: Handle) -> str | None:
    """Where the host has the directory; changes when its disk is unmounted, also if it is mounted again."""
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
    """The mark of this store, made by whoever comes first."""
    with suppress(OSError):
        os.symlink(os.urandom(16).hex(), _ID, dir_fd=state.fd)
    try:
        return os.readlink(_ID, dir_fd=state.fd)
    except OSError:
        return None
