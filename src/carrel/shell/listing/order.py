"""The order of a listing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from carrel.shell.listing.entry import Entry
from carrel.shell.quoting import encode
from carrel.shell.version_order import version_key


class Order(Enum):
    """By what a listing is sorted."""

    NAME = "name"
    NONE = "none"
    TIME = "time"
    SIZE = "size"
    EXTENSION = "extension"
    VERSION = "version"
    WIDTH = "width"


def ordered(entries: Iterable[Entry], order: Order, *, reverse: bool, directories_first: bool) -> list[Entry]:
    """*entries* in the order that was asked for; without one, in that in which they came."""
    found = list(entries)
    if order is Order.NONE:
        return found
    found.sort(key=lambda entry: encode(entry.name))
    key = _KEYS.get(order)
    if key is not None:
        found.sort(key=key)
    if reverse:
        found.reverse()
    if directories_first:
        found.sort(key=lambda entry: not (entry.leads_to or entry.info).is_directory)
    return found


def _extension(entry: Entry) -> bytes:
    _, dot, extension = encode(entry.name).rpartition(b".")
    return dot + extension if dot else b""


_KEYS: dict[Order, Callable[[Entry], Any]] = {  # Any: keys of one order compare, of two they do not
    Order.TIME: lambda entry: -entry.info.modified_ns,
    Order.SIZE: lambda entry: -entry.info.host_bytes,
    Order.EXTENSION: _extension,
    Order.VERSION: lambda entry: version_key(encode(entry.name)),
    Order.WIDTH: lambda entry: len(encode(entry.name)),
}
