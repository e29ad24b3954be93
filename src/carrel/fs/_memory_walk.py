"""Listing and walking the tree behind `MemoryFiles`, within limits."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from carrel.errors import LimitError
from carrel.fs._memory_tree import Directory, describe
from carrel.fs.api import Enter
from carrel.values import FileInfo, Limits


def scan(directory: Directory, prefix: str, limit: int | None) -> list[FileInfo]:
    """The entries of *directory*, sorted by name, each path beginning with *prefix*."""
    if limit is not None and len(directory.entries) > limit:
        top = prefix.rstrip("/") or "."
        raise _limit(
            "list_entries",
            limit,
            f"directory {top!r} has more than {limit} entries, the limit of a listing",
            top,
        )
    return [describe(prefix + name, node) for name, node in sorted(directory.entries.items())]


class Visit:
    """One walk: parents before their children, names in order; it holds the lock only while it looks."""

    def __init__(self, lock: RLock, limits: Limits, enter: Enter | None = None) -> None:
        self._lock = lock
        self._wants = enter
        self._limits = limits

    def run(self, top: Directory, prefix: str) -> Iterator[FileInfo]:
        """Visit what is beneath *top*.

        Raises:
            LimitError: After everything within the limits was given, or at the limit of entries.
        """
        seen = 0
        too_deep: str | None = None
        levels = [(top, self._scanned(top, prefix))]
        while levels:
            here, infos = levels[-1]
            info = next(infos, None)
            if info is None:
                levels.pop()
                continue
            self._require_fewer(seen, prefix)
            seen += 1
            yield info
            if not info.is_directory or (self._wants and not self._wants(info)):
                continue
            child = self._enter(here, info)
            if child is None:
                continue
            if self._limits.depth is not None and len(levels) >= self._limits.depth:
                too_deep = too_deep or (info.path if child.entries else None)
            else:
                levels.append((child, self._scanned(child, info.path + "/")))
        self._require_flat(too_deep)

    def _scanned(self, directory: Directory, prefix: str) -> Iterator[FileInfo]:
        with self._lock:
            return iter(scan(directory, prefix, self._limits.list_entries))

    def _enter(self, parent: Directory, info: FileInfo) -> Directory | None:
        """The directory, or `None` if its name is gone or means something else by now."""
        with self._lock:
            child = parent.entries.get(info.name)
            return child if isinstance(child, Directory) else None

    def _require_fewer(self, seen: int, prefix: str) -> None:
        limit = self._limits.walk_entries
        if limit is not None and seen >= limit:
            top = prefix.rstrip("/") or "."
            raise _limit(
                "walk_entries",
                limit,
                f"directory tree {top!r} has more than {limit} entries, the limit of a walk",
                top,
            )

    def _require_flat(self, too_deep: str | None) -> None:
        limit = self._limits.depth
        if too_deep is not None and limit is not None:
            raise _limit(
                "depth",
                limit,
                f"directory tree is deeper than {limit} levels, the limit of a walk; it goes on at"
                f" {too_deep[:80]!r}",
                too_deep,
            )


def _limit(what: str, limit: int, message: str, path: str) -> LimitError:
    return LimitError(what, limit=limit, asked=None, message=message, path=path)
