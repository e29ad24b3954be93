"""Walk a tree in a container within limits, parents before their children."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from carrel.containers.fs.primitives import Parts
from carrel.fs.api import Enter, OnUnreadable
from carrel.fs.errors import depth_limit_error, walk_limit_error
from carrel.fs.rules import info_of
from carrel.values import FileInfo, FileKind, Limits


class DirectoryEntry(NamedTuple):
    """One entry of a directory."""

    name: bytes
    stat: os.stat_result


class Level(NamedTuple):
    """A directory on the path of a walk."""

    parts: Parts
    prefix: str
    entries: Iterator[DirectoryEntry]


class TreeWalk:
    """One walk: parents before children, sorted by name."""

    def __init__(
        self,
        listed: Callable[[Parts, str, int | None], builtins.list[DirectoryEntry] | None],
        limits: Limits,
        unreadable: OnUnreadable,
        enter: Enter | None,
    ) -> None:
        self._listed = listed
        self._limits = limits
        self._unreadable = unreadable
        self._wants = enter

    def run(self, top: Level) -> Iterator[FileInfo]:
        """Yield everything beneath *top*; `LimitError` as in any other walk."""
        seen = 0
        deeper: str | None = None
        levels = [top]
        limits = self._limits
        while levels:
            here = levels[-1]
            entry = next(here.entries, None)
            if entry is None:
                levels.pop()
                continue
            if limits.walk_entries is not None and seen >= limits.walk_entries:
                raise walk_limit_error(limits.walk_entries, top.prefix)
            seen += 1
            info = info_of(here.prefix + os.fsdecode(entry.name), entry.stat)
            yield info
            if info.kind is not FileKind.DIRECTORY or (self._wants and not self._wants(info)):
                continue
            below = self._enter((*here.parts, entry.name), info.path + "/")
            if below is None:
                continue
            if limits.depth is not None and len(levels) >= limits.depth:
                deeper = deeper or (info.path if next(below.entries, None) else None)
            else:
                levels.append(below)
        if deeper is not None and limits.depth is not None:
            raise depth_limit_error(limits.depth, deeper)

    def _enter(self, parts: Parts, prefix: str) -> Level | None:
        try:
            entries = self._listed(parts, prefix, self._limits.list_entries)
        except PermissionError:
            if self._unreadable is OnUnreadable.REFUSE:
                raise
            return None
        return None if entries is None else Level(parts, prefix, iter(entries))


def by_name(entry: DirectoryEntry) -> str:
    """Return the sort key of an entry."""
    return os.fsdecode(entry.name)
