"""`CancellableCall`: one call that another thread may stop; with its captured output and outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import UnsupportedOperation
from threading import Lock
from typing import BinaryIO

from carrel.runtimes.frames import can_read
from carrel.runtimes.result import TrapReason

OnOutput = Callable[[str, bytes], None]
"""Receives `stdout` or `stderr`, and bytes that the guest wrote there."""


@dataclass(slots=True, kw_only=True)
class RunOutcome:
    """How a script ended."""

    exit_code: int | None = None
    reason: TrapReason | None = None
    detail: str = ""
    """Details of the reason, if there are any."""
    fuel_consumed: int | None = None
    memory_bytes: int | None = None
    lost: list[dict[str, str]] = field(default_factory=list)
    """Writes that were rejected when the script could no longer notice."""
    file_operations: int = 0
    is_usable: bool = False
    """Whether the interpreter can run another script."""
    stdout: bytes = b""
    stderr: bytes = b""
    truncated: frozenset[str] = frozenset()


class Capture:
    """The output of one stream, up to its limit, however much the worker sends."""

    def __init__(self, name: str, max_bytes: int, *, keep: bool = True) -> None:
        self.name = name
        self.max_bytes = max_bytes
        self._keep = keep
        self.is_truncated = False
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, data: bytes) -> bytes:
        """Add *data*; return the part of it within the limit."""
        kept = data[: self.max_bytes - self._size]
        self.is_truncated = self.is_truncated or len(kept) < len(data)
        self._size += len(kept)
        if kept and self._keep:
            self._chunks.append(kept)
        return kept

    @property
    def has_any(self) -> bool:
        """Whether any output came."""
        return self._size > 0

    def content(self) -> bytes:
        """Return all output that was kept."""
        return b"".join(self._chunks)


class CancellableCall:
    """A call that another thread may stop, before it starts or while it runs."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stop: Callable[[], object] | None = None
        self.cancelled_at: float | None = None
        """When the call was cancelled, by the monotonic clock."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self.cancelled_at is not None

    def cancel(self) -> None:
        """Stop the call soon."""
        with self._lock:
            if self.cancelled_at is None:
                self.cancelled_at = time.monotonic()
            stop = self._stop
        if stop is not None:
            stop()

    @contextmanager
    def stopped_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """Call *stop* if the call is cancelled within the block."""
        with self._lock:
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None


def read_some(source: bytes | BinaryIO, count: int, until: float) -> bytes | None:
    """Read up to *count* bytes of *source*; return `None` if none arrive *until* then."""
    if isinstance(source, bytes):
        return b""
    try:
        fd = source.fileno()
    except (AttributeError, OSError, UnsupportedOperation):
        return source.read(count)
    return os.read(fd, count) if can_read(fd, until - time.monotonic()) else None
