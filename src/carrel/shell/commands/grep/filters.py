"""Filters of file names: `--include`, `--exclude` and `--exclude-dir`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from carrel.shell.language.glob import name_pattern


class NameFilter(NamedTuple):
    """The names that one `--include` or `--exclude` is about."""

    includes: bool
    matches: Callable[[str], bool]


def including(glob: str) -> NameFilter:
    """Only such names."""
    return NameFilter(True, name_pattern(glob))


def excluding(glob: str) -> NameFilter:
    """No such names."""
    return NameFilter(False, name_pattern(glob))


def directory_pattern(glob: str) -> Callable[[str], bool]:
    """Such names of directories; a slash at the end says nothing more."""
    return name_pattern(glob.rstrip("/") or glob)


def is_included(filters: Sequence[NameFilter], names: Iterable[str]) -> bool:
    """Whether a file with one of these names is left: the last filter that matches says."""
    names = tuple(names)
    for filter in reversed(filters):
        if any(map(filter.matches, names)):
            return filter.includes
    return not (filters and filters[0].includes)


def suffixes(path: str) -> list[str]:
    """A path, and what follows each of its slashes."""
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]
