"""`Quota`: limits on the usage of a workspace, and on the free space of the host's disk."""

from __future__ import annotations

import os
from dataclasses import dataclass

from carrel.errors import DiskLowError, QuotaError
from carrel.fs.handle import Handle
from carrel.values import MIB, Limits

SPARE_BYTES = 16 * MIB
"""Bytes that spooled archives may have beyond the quota, for headers and padding."""
_UNITS = (("GB", 2**30), ("MB", 2**20), ("KB", 2**10))


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits on the usage of a whole workspace, and the free space that the host's disk must keep."""

    disk_bytes: int | None
    entries: int | None
    min_free_bytes: int = 0
    disk: Handle | None = None
    """Any directory on the host's disk."""

    @classmethod
    def of(cls, limits: Limits, *, min_free_bytes: int = 0, disk: Handle | None = None) -> Quota:
        """Take the limits on the whole workspace from *limits*."""
        return cls(limits.disk_bytes, limits.entries, min_free_bytes, disk)

    @property
    def counts(self) -> bool:
        """Whether the workspace has to be counted."""
        return self.disk_bytes is not None or self.entries is not None

    def require(self, disk_bytes: int, entries: int, more_bytes: int, more_entries: int) -> None:
        """Refuse growth beyond a limit, from the given usage; shrinking is always allowed.

        Raises:
            QuotaError: There would be too many bytes or entries.
            DiskLowError: The host's disk has too little free space.
        """
        if more_bytes > 0 and self.disk_bytes is not None:
            asked = disk_bytes + more_bytes
            if asked > self.disk_bytes:
                raise _too_many_bytes(asked, self.disk_bytes)
        if more_entries > 0 and self.entries is not None:
            asked = entries + more_entries
            if asked > self.entries:
                raise QuotaError(
                    "entries",
                    limit=self.entries,
                    asked=asked,
                    message=f"Workspace quota exceeded: {asked} entries > {self.entries} limit",
                )
        if more_bytes > 0 or more_entries > 0:
            self.require_free()

    def require_spool(self, disk_bytes: int, spooled_bytes: int, coming_bytes: int = 0) -> None:
        """Refuse to spool archives of *spooled_bytes* that cannot fit beside the current usage.

        Of these, *coming_bytes* are known not to be on the disk yet.

        Raises:
            QuotaError: They have more bytes than the quota leaves, plus an allowance for headers and padding.
            DiskLowError: The host's disk has too little free space.
        """
        self.require_free(coming_bytes)
        self.require(disk_bytes, 0, spooled_bytes - SPARE_BYTES, 0)

    def require_free(self, more_bytes: int = 0) -> None:
        """Require enough free space on the host's disk after *more_bytes* are written.

        Raises:
            DiskLowError: There is too little.
        """
        if not self.min_free_bytes or self.disk is None:
            return
        found = os.fstatvfs(self.disk.fd)
        free = found.f_bavail * found.f_frsize
        if free - more_bytes < self.min_free_bytes:
            wanted = f" {render_bytes(more_bytes)} wanted," if free >= self.min_free_bytes else ""
            raise DiskLowError(
                f"the host's disk is almost full: {render_bytes(free)} free,{wanted}"
                f" {render_bytes(self.min_free_bytes)} must stay free"
            )


def _too_many_bytes(asked: int, limit: int) -> QuotaError:
    size, maximum = render_bytes(asked), render_bytes(limit)
    if size == maximum:
        size, maximum = f"{asked} bytes", f"{limit} bytes"
    return QuotaError(
        "bytes", limit=limit, asked=asked, message=f"Workspace quota exceeded: {size} > {maximum} limit"
    )


def render_bytes(count: int) -> str:
    """Render a size for people: `102.5MB`, `100MB`, `512B`."""
    for name, unit in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f}".removesuffix(".0") + name
    return f"{count}B"
