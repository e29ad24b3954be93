"""Filters of file names: `--include`, `--exclude` and `--exclude-dir`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from carrel.shell.language.glob import name_pattern


class NameFilter(NamedTuple):
    """One `--include` or `--exclude` filter."""

    includes: bool
    matches: Callable[[str], bool]


def including(glob: str) -> NameFilter:
    """Return a filter that includes names matching *glob*."""
    return NameFilter(True, name_pattern(glob))


def excluding(glob: str) -> NameFilter:
    """Return a filter that excludes names matching *glob*."""
    return NameFilter(False, name_pattern(glob))


def directory_pattern(glob: str) -> Callable[[str], bool]:
    """Return a matcher for names of directories; a trailing slash in *glob* is ignored."""
    return name_pattern(glob.rstrip("/") or glob)


def is_included(filters: Sequence[NameFilter], names: Iterable[str]) -> bool:
    """Whether a file with these names is searched: the last filter that matches one of them decides."""
    names = tuple(names)
    for filter in reversed(filters):
        if any(map(filter.matches, names)):
            return filter.includes
    return not (filters and filters[0].includes)


def suffixes(path: str) -> list[str]:
    """Return *path* and the rest of it after each slash."""
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]
