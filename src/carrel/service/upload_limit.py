"""How many bytes of uploaded archives each tenant and each session may hold on disk.

An archive is held as a whole, beside the sessions, until it was judged and extracted. The quota of a session
limits what is sent to it, but a tenant may have many sessions, and of an archive that has come in whole the
quota counts only what is made of it. So each tenant has a share of the disk for all its uploads, half of it
for those to one session. The operator is not limited.

Not covered: several services on one sessions directory, each of which counts for itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from carrel.errors import LimitError
from carrel.service.thread_pools import decrement
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import require

SESSION_SHARES = 2
"""One session may hold this part of what its tenant may."""
RETRY_SECONDS = 1
"""When somebody may try again who found no room."""


class UploadLimiter:
    """Counts the bytes that are held, for any number of threads."""

    def __init__(self, tenant_bytes: int) -> None:
        """Let each tenant hold *tenant_bytes* at one time."""
        self._tenant_bytes = tenant_bytes
        self._session_bytes = -(-tenant_bytes // SESSION_SHARES)
        self._lock = Lock()
        self._of_tenants: Counter[str] = Counter()
        self._of_sessions: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def counted(self, tenant: str | None, session_id: str, archive: Announced) -> Iterator[Announced]:
        """The same archive, whose bytes are counted from when it is read until the end of the block.

        While it is read it raises `LimitError`, if too much would be held. What was announced is counted as
        a whole at the beginning, so that it is not refused in the middle.
        """
        if tenant is None:
            yield archive
            return
        upload = _Upload(self, tenant, session_id)
        try:
            yield Announced(upload.pieces(archive), archive.size_bytes)
        finally:
            self._release(tenant, session_id, upload.held_bytes)

    def require_possible(self, size_bytes: int) -> None:
        """Refuse an archive that is too large even if nothing else is held.

        Raises:
            LimitError: It is.
        """
        require("archive_bytes", size_bytes, self._session_bytes, "has {} bytes or more")

    def hold(self, tenant: str, session_id: str, more_bytes: int) -> None:
        """Count *more_bytes*.

        Raises:
            LimitError: There would be too many.
        """
        session = (tenant, session_id)
        with self._lock:
            _require(self._of_sessions[session] + more_bytes, self._session_bytes, "to this session")
            _require(self._of_tenants[tenant] + more_bytes, self._tenant_bytes, "of yours")
            self._of_sessions[session] += more_bytes
            self._of_tenants[tenant] += more_bytes

    def _release(self, tenant: str, session_id: str, held_bytes: int) -> None:
        with self._lock:
            decrement(self._of_sessions, (tenant, session_id), held_bytes)
            decrement(self._of_tenants, tenant, held_bytes)


class _Upload:
    """One archive while it is held."""

    def __init__(self, uploads: UploadLimiter, tenant: str, session_id: str) -> None:
        self._uploads = uploads
        self._tenant = tenant
        self._session_id = session_id
        self.held_bytes = 0
        """What is counted for it."""

    def pieces(self, archive: Announced) -> Iterable[bytes]:
        """The pieces of *archive*, each after it was counted."""
        size = 0
        self._hold(archive.size_bytes or 0)
        for piece in archive:
            size += len(piece)
            self._hold(size)
            yield piece

    def _hold(self, size_bytes: int) -> None:
        if size_bytes > self.held_bytes:
            self._uploads.require_possible(size_bytes)
            self._uploads.hold(self._tenant, self._session_id, size_bytes - self.held_bytes)
            self.held_bytes = size_bytes


def _require(held_bytes: int, most_bytes: int, whose: str) -> None:
    if held_bytes > most_bytes:
        raise LimitError(
            "uploads",
            limit=most_bytes,
            asked=held_bytes,
            message=f"too many bytes of archives {whose} are on their way in: {held_bytes},"
            f" the limit is {most_bytes}; try again in a moment",
            retry_after_seconds=RETRY_SECONDS,
        )
