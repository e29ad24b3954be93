"""One SQLite file in a trusted directory: opened on first use, reopened after it was replaced or lost.

SQLite takes a path and follows every link in it, so a path is never enough: after opening, the files that
this process has open must be the ones in the directory that we hold. Before and after every use the file
must still be there. If it is gone, damaged, locked for too long or cannot be written, the call raises
`UnavailableError`, the connection is dropped, and the next call tries again.

Not covered: a host path of more than 500 bytes, which SQLite does not open; a database that is overwritten
in place; a fork by foreign code in the middle of a call. Without /proc the directory is found by its path,
and the opened files are not compared.
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
_WAL_TRIES = 100
"""Number of attempts to switch to WAL while other processes attempt it too."""

_SYNCHRONOUS = {Durability.PROCESS: "NORMAL", Durability.DISK: "EXTRA"}
"""SQLite's `synchronous` setting; `EXTRA` flushes the directory as well where there is no write-ahead log."""

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
    """One connection that the threads of a process use in turn."""

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
        """Use the file *name*, which is created on first use if it is missing.

        Args:
            directory: Returns the current directory, which only we may write to.
            name: Name of the file in the directory.
            called: Name of the database in messages.
            prepare: Creates missing tables and refuses those of a later version.
            busy_seconds: Seconds to wait for other processes.
            path: Path of the directory, used where /proc is missing.
            durability: Whether changes are on the disk when a call or a transaction has ended.
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
        """Identity of the file that was opened last; after that, a missing file is not created again."""
        self._process = os.getpid()
        self._closed = False
        # Reentrant: a signal handler must not wait for the call that it interrupted.
        self._lock = RLock()
        self._user: int | None = None
        """The thread that is inside a call."""

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for single statements.

        Raises:
            UnavailableError: The database cannot be used now.
            BusyError: A signal handler calls this in the middle of a call of its own thread.
            ClosedError: The database was closed.
        """
        if self._process != os.getpid():
            self.after_fork_in_child()
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
                f"the {self._called} is in the middle of a call in this very thread;"
                " a signal handler must leave its work to another thread"
            )

    def _is_in_call(self) -> bool:
        """Whether this thread is inside a call, which a signal handler has interrupted."""
        return self._user == get_ident()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a write transaction, which is committed unless the block raises.

        Raises:
            UnavailableError: The database cannot be used now.
            ClosedError: The database was closed.
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
        """Close the connection; if this thread is inside a call, when that call ends."""
        with self._lock:
            self._closed = True
            if not self._is_in_call():
                self._disconnect()

    def __del__(self) -> None:
        if self._process == os.getpid():
            # A fork waits for this lock: SQLite would be locked forever in a child forked while it is held.
            with self._lock:
                self._disconnect()

    # Opening

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise ClosedError(f"the {self._called} is closed")
        directory = self._directory()
        if self._connection is not None and self._identify(directory) == self._identity:
            self._connection.rollback()
            return self._connection
        self._disconnect()
        return self._connect(directory)

    def _connect(self, directory: Handle) -> sqlite3.Connection:
        fork_guard().watch(self)
        self._require_file(directory)
        connection = sqlite3.connect(
            self._uri(directory),
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._require_ours(directory, ("",))
            mode = _use_wal(connection)
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            connection.execute("PRAGMA trusted_schema = OFF")
            self._prepare(connection)
            self._require_ours(directory, ("", "-wal", "-shm") if mode == "wal" else ("",))
        except BaseException:
            connection.close()
            raise
        self._identity = self._identify(directory)
        self._connection = connection
        return connection

    def _require_file(self, directory: Handle) -> None:
        """Create the file if there never was one; refuse anything that is not a file of ours."""
        if self._identity is None:
            try:
                os.mknod(self._name, stat.S_IFREG | _MODE, dir_fd=directory.fd)
                self._durability.flush(directory.fd)
            except FileExistsError:
                pass
            except OSError as error:
                raise self._unavailable(_reason(error)) from None
        if self._identify(directory) is None:
            raise self._unavailable("it is gone; it works again once its file, or the disk, is back")
        try:
            os.chmod(self._name, _MODE, dir_fd=directory.fd)
        except OSError as error:
            raise self._unavailable(_reason(error)) from None

    def _identify(self, directory: Handle) -> Identity | None:
        """Return the identity of the file that has the name now."""
        try:
            found = os.stat(self._name, dir_fd=directory.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unavailable(_reason(error)) from None
        if not stat.S_ISREG(found.st_mode):
            raise self._unavailable("it is a link" if stat.S_ISLNK(found.st_mode) else "it is not a file")
        if found.st_uid != os.geteuid():
            raise self._unavailable("it belongs to another user")
        return found.st_dev, found.st_ino

    def _uri(self, directory: Handle) -> str:
        """Return the URI of the file. SQLite must not create it: the directory may not be ours by then."""
        if os.path.exists(_OWN_FILES):
            path = f"{_OWN_FILES}/{directory.fd}"
        elif self._path is not None:
            path = str(self._path)
        else:
            raise self._unavailable("/proc is missing")
        return f"file:{quote(os.fsencode(path))}/{quote(self._name)}?mode=rw"

    def _require_ours(self, directory: Handle, suffixes: tuple[str, ...]) -> None:
        """Refuse if SQLite has opened other files than those in our directory."""
        if not os.path.exists(_OWN_FILES):
            return
        try:
            opened = set(_open_files())
            found = [
                os.stat(self._name + suffix, dir_fd=directory.fd, follow_symlinks=False)
                for suffix in suffixes
            ]
        except OSError as error:
            raise self._unavailable(_reason(error)) from None
        if not opened.issuperset((file.st_dev, file.st_ino) for file in found):
            raise self._unavailable("its directory was replaced while it was opened")

    def _require_in_place(self) -> None:
        """Refuse the result of a call during which the file was replaced."""
        if self._identify(self._directory()) != self._identity:
            raise self._unavailable("its file was replaced during the call")

    # Errors

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
        return _PROBLEMS.get(code & 0xFF, f"SQLite error {code}")

    def _unavailable(self, problem: str) -> UnavailableError:
        return UnavailableError(f"the {self._called} cannot be used: {problem}")

    # Forks

    def before_fork(self) -> bool:
        """Wait for the running call to end and disconnect; return whether that was possible."""
        if self._is_in_call() or not self._lock.acquire(timeout=2 * self._busy_seconds + 1):
            return False
        self._disconnect()
        return True

    def after_fork_in_parent(self) -> None:
        """Let calls in again."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Reset in a child, also in one that was forked without `before_fork`.

        An idle connection is closed, so that SQLite forgets locks that only the parent has. One in the middle
        of a call is kept open, because ending that call would interfere with the parent.
        """
        idle = not self._is_in_call() and self._lock.acquire(blocking=False)
        self._lock = RLock()
        self._user = None
        self._process = os.getpid()
        if idle:
            self._disconnect()
        else:
            fork_guard().leak(self._connection)
            self._connection = None


def _use_wal(connection: sqlite3.Connection) -> str:
    """Switch to a write-ahead log where the file system supports it; return the mode in force.

    SQLite refuses the switch without waiting while another process switches or reads. So wait for exclusive
    access and try again.
    """
    for _ in range(_WAL_TRIES):
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
    """Yield the identities of all files that this process has open."""
    for number in os.listdir(_OWN_FILES):
        with suppress(OSError):
            found = os.fstat(int(number))
            yield found.st_dev, found.st_ino


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)
