"""Which files `--include` and `--exclude` leave, by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from carrel.shell.glob import name_pattern


class Filter(NamedTuple):
    """The names that one `--include` or `--exclude` is about."""

    includes: bool
    matches: Callable[[str], bool]


def including(glob: str) -> Filter:
    """Only such names."""
    return Filter(True, name_pattern(glob))


def excluding(glob: str) -> Filter:
    """No such names."""
    return Filter(False, name_pattern(glob))


def directory_pattern(glob: str) -> Callable[[str], bool]:
    """Such names of directories; a slash at the end says nothing more."""
    return name_pattern(glob.rstrip("/") or glob)


def wants(filters: Sequence[Filter], names: Iterable[str]) -> bool:
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
