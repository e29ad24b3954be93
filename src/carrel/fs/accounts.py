"""Accounts that charge nothing: `NullAccount` keeps no records, `UnmeteredAccount` records only."""

from __future__ import annotations

from threading import Lock
from typing import Unpack

from carrel.fs.api import Account, ChangeDetails
from carrel.fs.handle import Handle
from carrel.values import Usage


class NullAccount:
    """An account that allows one change at a time and keeps no records."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> NullAccount:
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._lock.release()

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        """Allow everything."""

    def record(self, operation: str, path: str, **details: Unpack[ChangeDetails]) -> None:
        """Record nothing."""

    def prepare(self) -> None:
        """Record nothing."""

    def flush_on_exit(self, *handles: Handle) -> None:
        """Flush nothing."""

    def flush(self, fd: int) -> None:
        """Flush nothing."""

    def mark_dirty(self) -> None:
        """Do nothing: usage is not counted."""

    def defer_release(self) -> int:
        """Release nothing."""
        return 0

    def release(self, mark: int, freed: Usage) -> None:
        """Release nothing."""

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        """Allow everything."""


class UnmeteredAccount:
    """An account that records changes in the session's account and charges nothing."""

    def __init__(self, account: Account) -> None:
        """Lock and record through *account*."""
        self._account = account

    def __enter__(self) -> UnmeteredAccount:
        self._account.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._account.__exit__(kind, error, trace)

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        """Charge nothing."""

    def record(self, operation: str, path: str, **details: Unpack[ChangeDetails]) -> None:
        self._account.record(operation, path, **details)

    def prepare(self) -> None:
        self._account.prepare()

    def flush_on_exit(self, *handles: Handle) -> None:
        self._account.flush_on_exit(*handles)

    def flush(self, fd: int) -> None:
        self._account.flush(fd)

    def mark_dirty(self) -> None:
        """Do nothing: nothing was charged."""

    def defer_release(self) -> int:
        """Release nothing."""
        return 0

    def release(self, mark: int, freed: Usage) -> None:
        """Release nothing."""

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        """Charge nothing."""
