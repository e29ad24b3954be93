"""One SQLite file in a trusted directory: opened on first use, reopened when it was replaced or lost.

SQLite takes a path and follows every link in it, so a path is never enough: after opening, the files that
this process holds open must be the ones in the directory that we hold. Before and after every use the file
must still be there. When it is gone, damaged, locked for too long or cannot be written, the caller hears
`UnavailableError`, the connection is given up, and the next call tries again.

Not covered: a host path of more than 500 bytes, which SQLite does not open; a database that is written over
in place; a fork by foreign code in the middle of a call. Where /proc is missing the directory is found by its
path, and what was opened is not compared.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, get_ident
from urllib.parse import quote

from carrel.errors import BusyError, ClosedError, UnavailableError
from carrel.fs.handle import Handle
from carrel.fs.host.durability import Durability
from carrel.storage.local.at_fork import fork_guard

_OWN_FILES = "/proc/self/fd"
_MODE = 0o600
_TURNS = 100
"""How often the change to WAL is tried while others try it too."""

_SYNCHRONOUS = {Durability.PROCESS: "NORMAL", Durability.DISK: "EXTRA"}
"""How often SQLite flushes; `EXTRA` flushes the directory as well, where there is no write-ahead log."""

Identity = tuple[int, int]
"""Device and inode."""

_PROBLEMS = {
    sqlite3.SQLITE_BUSY: "another process has held it for too long; try again later",
    sqlite3.SQLITE_LOCKED: "another process has held it for too long; try again later",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged: that is not a database",
    sqlite3.SQLITE_SCHEMA: "it is damaged",
    sqlite3.SQLITE_ERROR: "it is damaged: a table is missing or wrong",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_PERM: "the host's permissions do not allow it",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_IOERR: "the disk failed",
}


class Database:
    """One connection for all threads of a process, one at a time."""

    def __init__(
        self,
        directory: Callable[[], Handle],
        name: str,
        *,
        called: str,
        prepare: Callable[[sqlite3.Connection], None],
        busy_seconds: float,
        path: Path | None = None,
        durability: Durability = Durability.PROCESS,
    ) -> None:
        """Use the file *name*, made at the first use if it is missing.

        Args:
            directory: Gives the directory that only we may write to, as it is now.
            name: Of the file in it.
            called: What messages call it.
            prepare: Makes tables that are missing, and refuses those of a later version.
            busy_seconds: How long to wait for other processes.
            path: The directory on the host, for where /proc is missing.
            durability: Whether what was changed is on the disk when a call or a transaction has ended.
        """
        self._directory = directory
        self._name = name
        self._called = called
        self._prepare = prepare
        self._busy_seconds = busy_seconds
        self._path = path
        self._durability = durability
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity | None = None
        """Of the file that was opened last; once there was one, a missing file is not made again."""
        self._process = os.getpid()
        self._closed = False
        # One that its own thread may take again: a signal handler must not wait for what it interrupted.
        self._lock = RLock()
        self._user: int | None = None
        """The thread that is in a call."""

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """The connection, for single statements.

        Raises:
            UnavailableError: The database cannot be used now.
            BusyError: A signal handler asks in the middle of a call of its own thread.
            ClosedError: It was closed.
        """
        if self._process != os.getpid():
            self.disown()
        self._require_no_call()
        with self._lock:
            self._user = get_ident()
            try:
                connection = self._connected()
                yield connection
                self._require_in_place()
            except sqlite3.DatabaseError as error:
                problem = self._problem(error)
                self._disconnect()
                raise self._unavailable(problem) from error
            except UnavailableError:
                self._disconnect()
                raise
            finally:
                self._user = None
                if self._closed:
                    self._disconnect()

    def _require_no_call(self) -> None:
        if self._is_in_call():
            raise BusyError(
                f"the {self._called} is in the middle of a call of this very thread;"
                " a signal handler must leave its work to somebody else"
            )

    def _is_in_call(self) -> bool:
        """Whether this thread is in a call that somebody has interrupted, as a signal handler does."""
        return self._user == get_ident()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection within a transaction that no other writer can enter; all or nothing.

        Raises:
            UnavailableError: The database cannot be used now.
            ClosedError: It was closed.
        """
        with self.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.execute("COMMIT")

    def close(self) -> None:
        """End all use; a call that this thread is in the middle of ends first."""
        with self._lock:
            self._closed = True
            if not self._is_in_call():
                self._disconnect()

    def __del__(self) -> None:
        if self._process == os.getpid():
            # A fork waits for this: SQLite would be locked for ever in a child that is made meanwhile.
            with self._lock:
                self._disconnect()

    # Opening

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise ClosedError(f"the {self._called} is closed")
        place = self._directory()
        if self._connection is not None and self._found(place) == self._identity:
            self._connection.rollback()
            return self._connection
        self._disconnect()
        return self._connect(place)

    def _connect(self, place: Handle) -> sqlite3.Connection:
        fork_guard().watch(self)
        self._require_file(place)
        connection = sqlite3.connect(
            self._address(place),
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._require_ours(place, ("",))
            mode = _use_wal(connection)
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            connection.execute("PRAGMA trusted_schema = OFF")
            self._prepare(connection)
            self._require_ours(place, ("", "-wal", "-shm") if mode == "wal" else ("",))
        except BaseException:
            connection.close()
            raise
        self._identity = self._found(place)
        self._connection = connection
        return connection

    def _require_file(self, place: Handle) -> None:
        """Make the file if there never was one; refuse anything that is not a file of ours."""
        if self._identity is None:
            try:
                os.mknod(self._name, stat.S_IFREG | _MODE, dir_fd=place.fd)
                self._durability.flush(place.fd)
            except FileExistsError:
                pass
            except OSError as error:
                raise self._unavailable(_reason(error)) from None
        if self._found(place) is None:
            raise self._unavailable("it is gone; what was in it is there again when it is back")
        try:
            os.chmod(self._name, _MODE, dir_fd=place.fd)
        except OSError as error:
            raise self._unavailable(_reason(error)) from None

    def _found(self, place: Handle) -> Identity | None:
        """Which file has the name now."""
        try:
            found = os.stat(self._name, dir_fd=place.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(_reason(error)) from None
        if not stat.S_ISREG(found.st_mode):
            raise self._unavailable("it is a link" if stat.S_ISLNK(found.st_mode) else "it is not a file")
        if found.st_uid != os.geteuid():
            raise self._unavailable("it belongs to another user")
        return found.st_dev, found.st_ino

    def _address(self, place: Handle) -> str:
        """Where SQLite finds the file; it must not make one, because the place may not be ours by then."""
        if os.path.exists(_OWN_FILES):
            directory = f"{_OWN_FILES}/{place.fd}"
        elif self._path is not None:
            directory = str(self._path)
        else:
            raise self._unavailable("/proc is missing")
        return f"file:{quote(os.fsencode(directory))}/{quote(self._name)}?mode=rw"

    def _require_ours(self, place: Handle, endings: tuple[str, ...]) -> None:
        """Refuse if SQLite has opened other files than those in our directory."""
        if not os.path.exists(_OWN_FILES):
            return
        try:
            opened = set(_open_files())
            found = [os.stat(self._name + end, dir_fd=place.fd, follow_symlinks=False) for end in endings]
        except OSError as error:
            raise self._unavailable(_reason(error)) from None
        if not opened.issuperset((file.st_dev, file.st_ino) for file in found):
            raise self._unavailable("something else has taken the place of its directory")

    def _require_in_place(self) -> None:
        """Refuse to answer from a file that was taken away meanwhile."""
        if self._found(self._directory()) != self._identity:
            raise self._unavailable("it was taken away during the call")

    # Giving up

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _problem(self, error: sqlite3.DatabaseError) -> str:
        code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        with suppress(OSError, UnavailableError):
            disk = os.fstatvfs(self._directory().fd)
            if disk.f_flag & os.ST_RDONLY:
                return "its file system is read-only"
            if disk.f_bavail == 0 and code & 0xFF in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
                return _PROBLEMS[sqlite3.SQLITE_FULL]
        return _PROBLEMS.get(code & 0xFF, f"SQLite says {code}")

    def _unavailable(self, problem: str) -> UnavailableError:
        return UnavailableError(f"the {self._called} cannot be used: {problem}")

    # Forks

    def hold(self) -> bool:
        """Wait for the running call to end, and close; whether that was possible."""
        if self._is_in_call() or not self._lock.acquire(timeout=2 * self._busy_seconds + 1):
            return False
        self._disconnect()
        return True

    def release(self) -> None:
        """Let calls in again."""
        self._lock.release()

    def disown(self) -> None:
        """Become the database of a process that was forked without `hold`.

        An idle connection is closed, so that SQLite forgets locks that only the parent has; one in the
        middle of a call is left alone, because ending that call would change what the parent is doing.
        """
        idle = not self._is_in_call() and self._lock.acquire(blocking=False)
        self._lock = RLock()
        self._user = None
        self._process = os.getpid()
        if idle:
            self._disconnect()
        else:
            fork_guard().leave(self._connection)
            self._connection = None


def _use_wal(connection: sqlite3.Connection) -> str:
    """Turn to a write-ahead log where the file system can; the mode in force.

    The change is refused at once while another process makes it or reads, without waiting; so we wait until
    we are alone, and try again.
    """
    for _ in range(_TURNS):
        try:
            return _change_to_wal(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    return _change_to_wal(connection)


def _change_to_wal(connection: sqlite3.Connection) -> str:
    mode: str = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    return mode


def _open_files() -> Iterator[Identity]:
    """All files that this process has open."""
    for number in os.listdir(_OWN_FILES):
        with suppress(OSError):
            found = os.fstat(int(number))
            yield found.st_dev, found.st_ino


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)
