"""Group, filter, transform, sort and split lists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice

TYPE_CHECKING = False  # importing `typing` would take longer than this module
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Item = TypeVar("Item")
    Result = TypeVar("Result")
    Key = TypeVar("Key", bound=Hashable)


def group_by(items: Iterable[Item], key_func: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Group items by the result of *key_func*, in order of first occurrence."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key_func(item), []).append(item)
    return groups


def filter_by(items: Iterable[Item], predicate: Callable[[Item], object]) -> list[Item]:
    """Return the items for which *predicate* is true."""
    return [item for item in items if predicate(item)]


def map_items(items: Iterable[Item], transform: Callable[[Item], Result]) -> list[Result]:
    """Return the result of *transform* for each item."""
    return [transform(item) for item in items]


def sort_by(
    items: Iterable[Item],
    key_func: Callable[[Item], Any],  # Any: whatever can be compared
    reverse: bool = False,
) -> list[Item]:
    """Return the items sorted by the result of *key_func*; equal ones keep their order."""
    return sorted(items, key=key_func, reverse=reverse)


def unique(items: Iterable[Item], key: Callable[[Item], object] | None = None) -> list[Item]:
    """Return the items without duplicates, compared by *key* if given."""
    seen: set[object] = set()
    others: list[object] = []
    return [item for item in items if _is_new(item if key is None else key(item), seen, others)]


def _is_new(value: object, seen: set[object], others: list[object]) -> bool:
    """Return whether *value* occurs for the first time; *others* holds the unhashable ones."""
    try:
        is_new = value not in seen
        seen.add(value)
    except TypeError:
        is_new = value not in others
        if is_new:
            others.append(value)
    return is_new


def chunk(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Split items into lists of *size*; the last one may be shorter.

    Raises:
        ValueError: *size* is less than one.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1: {size}")
    left = iter(items)
    return iter(lambda: list(islice(left, size)), [])
