"""Lists of things: group, filter, change, sort, and split them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice

TYPE_CHECKING = False  # to load `typing` would take longer than all of this
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Item = TypeVar("Item")
    Made = TypeVar("Made")
    Key = TypeVar("Key", bound=Hashable)


def group_by(items: Iterable[Item], key_func: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by what *key_func* says of them, in the order in which they come."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key_func(item), []).append(item)
    return groups


def filter_by(items: Iterable[Item], predicate: Callable[[Item], object]) -> list[Item]:
    """The items of which *predicate* is true."""
    return [item for item in items if predicate(item)]


def map_items(items: Iterable[Item], transform: Callable[[Item], Made]) -> list[Made]:
    """What *transform* makes of each item."""
    return [transform(item) for item in items]


def sort_by(
    items: Iterable[Item],
    key_func: Callable[[Item], Any],  # Any: whatever can be compared
    reverse: bool = False,
) -> list[Item]:
    """The items in the order of what *key_func* says of them; equal ones stay as they come."""
    return sorted(items, key=key_func, reverse=reverse)


def unique(items: Iterable[Item], key: Callable[[Item], object] | None = None) -> list[Item]:
    """The items without those that were there before, or whose *key* was."""
    seen: set[object] = set()
    others: list[object] = []
    return [item for item in items if _is_new(item if key is None else key(item), seen, others)]


def _is_new(mark: object, seen: set[object], others: list[object]) -> bool:
    """Whether *mark* comes for the first time; *others* are those that a set cannot hold."""
    try:
        is_new = mark not in seen
        seen.add(mark)
    except TypeError:
        is_new = mark not in others
        if is_new:
            others.append(mark)
    return is_new


def chunk(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """The items in lists of *size*; the last one may be shorter.

    Raises:
        ValueError: *size* is less than one.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1: {size}")
    left = iter(items)
    return iter(lambda: list(islice(left, size)), [])
