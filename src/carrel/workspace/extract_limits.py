"""`ExtractLimits`: ceilings for what an archive may claim or hold, and the meter that enforces them."""

from __future__ import annotations

from dataclasses import dataclass, fields

from carrel.errors import LimitError
from carrel.values import MIB

HARMLESS_BYTES = 16 * MIB
"""However small an archive is, it may expand to this: a file of zeros is no bomb yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractLimits:
    """Ceilings for one extraction; `None` means no ceiling. Those of the workspace hold as well."""

    archive_bytes: int | None = 1024 * MIB
    """Size of the archive as it comes in."""
    extracted_bytes: int | None = 2048 * MIB
    """Sum of the sizes of all files, hard links counted as the copies that they become; also what a
    compressed tar archive expands to, headers and padding included."""
    members: int | None = 100_000
    """Files, directories and links, with the directories that are only implied."""
    header_bytes: int | None = 32 * MIB
    """Names, texts of links and all else that is said about the members."""
    ratio: int | None = 1000
    """How many times its own size an archive may expand to, once that is more than 16 MiB."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (type(value) is not int or value < 0):
                raise ValueError(f"{field.name} must be a whole number of at least 0 or None, not {value!r}")


class ExtractMeter:
    """Counts one pass through an archive of *archive_bytes*, and ends it at a ceiling."""

    def __init__(self, limits: ExtractLimits, archive_bytes: int) -> None:
        self._limits = limits
        self._archive_bytes = archive_bytes
        self._members = self._header_bytes = self._content_bytes = self._expanded_bytes = 0

    def add_member(self) -> None:
        """Count one entry that would be made, or that is listed."""
        self._members += 1
        require("archive_members", self._members, self._limits.members, "has {} members")

    def require_members(self, count: int) -> None:
        """Refuse an archive that announces *count* members."""
        require("archive_members", count, self._limits.members, "has {} members")

    def add_header(self, size_bytes: int) -> None:
        """Count what is said about members."""
        self._header_bytes += size_bytes
        require(
            "archive_headers",
            self._header_bytes,
            self._limits.header_bytes,
            "has {} bytes of names and headers",
        )

    def add_content(self, size_bytes: int) -> None:
        """Count a file before it is looked at, as large as it claims to be."""
        self._content_bytes += size_bytes
        self._require_expansion(self._content_bytes)

    def add_expanded(self, size_bytes: int) -> None:
        """Count what was expanded."""
        self._expanded_bytes += size_bytes
        self._require_expansion(self._expanded_bytes)

    def _require_expansion(self, size_bytes: int) -> None:
        require("extracted_bytes", size_bytes, self._limits.extracted_bytes, "expands to {} bytes")
        ratio = self._limits.ratio
        if ratio is not None and size_bytes > HARMLESS_BYTES:
            most = max(HARMLESS_BYTES, ratio * self._archive_bytes)
            require(
                "archive_ratio", size_bytes, most, f"of {self._archive_bytes} bytes expands to {{}} bytes"
            )


def require(what: str, asked: int, limit: int | None, claim: str) -> None:
    """Refuse an archive that passes the ceiling *what*.

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
