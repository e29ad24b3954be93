"""`ExtractLimits`: limits on what an archive may declare or contain, and the meter that enforces them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from carrel.errors import LimitError
from carrel.values import MIB

HARMLESS_BYTES = 16 * MIB
"""Bytes that an archive of any size may expand to: a small file of zeros is not a bomb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractLimits:
    """Limits on one extraction; `None` means no limit. Those of the workspace apply as well."""

    archive_bytes: int | None = 1024 * MIB
    """Size of the archive itself."""
    extracted_bytes: int | None = 2048 * MIB
    """Sum of the sizes of all files, with hard links counted as the copies that they become; also the
    expanded size of a compressed tar archive, including headers and padding."""
    members: int | None = 100_000
    """Number of files, directories and links, including implied directories."""
    header_bytes: int | None = 32 * MIB
    """Size of names, link targets and all other headers of the members."""
    ratio: int | None = 1000
    """Factor by which an archive may expand, once the result is larger than 16 MiB."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (type(value) is not int or value < 0):
                raise ValueError(f"{field.name} must be a whole number of at least 0 or None, not {value!r}")


class ExtractMeter:
    """Counts one pass through an archive of *archive_bytes*, and raises at a limit."""

    def __init__(self, limits: ExtractLimits, archive_bytes: int) -> None:
        self._limits = limits
        self._archive_bytes = archive_bytes
        self._members = self._header_bytes = self._content_bytes = self._expanded_bytes = 0

    def add_member(self) -> None:
        """Count one entry that would be created or that is listed."""
        self._members += 1
        require("archive_members", self._members, self._limits.members, "has {} members")

    def require_members(self, count: int) -> None:
        """Refuse an archive that declares *count* members, if they are too many."""
        require("archive_members", count, self._limits.members, "has {} members")

    def add_header(self, size_bytes: int) -> None:
        """Count bytes of headers."""
        self._header_bytes += size_bytes
        require(
            "archive_headers",
            self._header_bytes,
            self._limits.header_bytes,
            "has {} bytes of names and headers",
        )

    def add_content(self, size_bytes: int) -> None:
        """Count the declared size of a file, before it is read."""
        self._content_bytes += size_bytes
        self._require_expansion(self._content_bytes)

    def add_expanded(self, size_bytes: int) -> None:
        """Count expanded bytes."""
        self._expanded_bytes += size_bytes
        self._require_expansion(self._expanded_bytes)

    def _require_expansion(self, size_bytes: int) -> None:
        require("extracted_bytes", size_bytes, self._limits.extracted_bytes, "expands to {} bytes")
        ratio = self._limits.ratio
        if ratio is not None and size_bytes > HARMLESS_BYTES:
            limit = max(HARMLESS_BYTES, ratio * self._archive_bytes)
            require(
                "archive_ratio", size_bytes, limit, f"of {self._archive_bytes} bytes expands to {{}} bytes"
            )


def require(what: str, asked: int, limit: int | None, claim: str) -> None:
    """Refuse an archive that exceeds the limit *what*.

    Raises:
        LimitError: *asked* is more than *limit*.
    """
    if limit is not None and asked > limit:
        raise LimitError(
            what,
            limit=limit,
            asked=asked,
            message=f"the archive {claim.format(asked)}, the limit is {limit}",
        )
