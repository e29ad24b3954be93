"""Limit how many bytes of uploaded archives each tenant and each session may hold on disk.

An archive is stored as a whole, outside the sessions, until it has been checked and extracted. A session's
quota limits what is sent to that session, but a tenant may have many sessions, and once an archive is
complete the quota counts only its extracted files. Each tenant therefore has a limit for all its uploads, and
half of it for those to one session. The operator is not limited.

Not covered: several services on one sessions directory, each of which counts separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock

from carrel.config.serve_keys import UPLOADS_MB
from carrel.errors import LimitError
from carrel.service.thread_pools import decrement
from carrel.workspace.chunks import Announced
from carrel.workspace.extract_limits import require

SESSION_SHARES = 2
"""A session may hold one part in this many of its tenant's limit."""
RETRY_SECONDS = 1
"""Suggested wait, in seconds, before a rejected upload is retried."""


class UploadLimiter:
    """Counts the bytes of uploads that are on disk; usable from any thread."""

    def __init__(self, tenant_bytes: int) -> None:
        """Let each tenant hold *tenant_bytes* at one time."""
        self._tenant_bytes = tenant_bytes
        self._session_bytes = -(-tenant_bytes // SESSION_SHARES)
        self._lock = Lock()
        self._per_tenant: Counter[str] = Counter()
        self._per_session: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def counted(self, tenant: str | None, session_id: str, archive: Announced) -> Iterator[Announced]:
        """Return the same archive, counting its bytes from when they are read until the end of the block.

        Reading it raises `LimitError` if a limit would be exceeded. An announced size is counted as a whole
        at the beginning, so that the upload is not rejected halfway.
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
        """Require that an archive fits into the limit of one session if nothing else is held.

        Raises:
            LimitError: It is too large.
        """
        require("archive_bytes", size_bytes, self._session_bytes, "has {} bytes or more")

    def hold(self, tenant: str, session_id: str, more_bytes: int) -> None:
        """Count *more_bytes*.

        Raises:
            LimitError: A limit would be exceeded.
        """
        session = (tenant, session_id)
        with self._lock:
            _require_room(self._per_session[session] + more_bytes, self._session_bytes, "to this session")
            _require_room(self._per_tenant[tenant] + more_bytes, self._tenant_bytes, "of yours")
            self._per_session[session] += more_bytes
            self._per_tenant[tenant] += more_bytes

    def _release(self, tenant: str, session_id: str, held_bytes: int) -> None:
        with self._lock:
            decrement(self._per_session, (tenant, session_id), held_bytes)
            decrement(self._per_tenant, tenant, held_bytes)


class _Upload:
    """One archive while it is on disk."""

    def __init__(self, uploads: UploadLimiter, tenant: str, session_id: str) -> None:
        self._uploads = uploads
        self._tenant = tenant
        self._session_id = session_id
        self.held_bytes = 0
        """The bytes that are counted for it."""

    def pieces(self, archive: Announced) -> Iterable[bytes]:
        """Yield the pieces of *archive*, counting each one first."""
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


def _require_room(held_bytes: int, limit_bytes: int, whose: str) -> None:
    if held_bytes > limit_bytes:
        raise LimitError(
            "uploads",
            limit=limit_bytes,
            asked=held_bytes,
            message=f"too many bytes of archives {whose} are being uploaded: {held_bytes},"
            f" the limit by {UPLOADS_MB.name} is {limit_bytes}; try again in a moment",
            retry_after_seconds=RETRY_SECONDS,
        )
