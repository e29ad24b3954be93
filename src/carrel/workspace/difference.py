"""What was changed between two surveys of a tree, in the words of the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from carrel.fs.survey import Seen, Survey
from carrel.values import FileKind


class Difference(NamedTuple):
    """One change."""

    operation: str
    """`remove`, `mkdir`, `link` or `write`."""
    path: str
    is_directory: bool
    target: str | None = None
    """The text of a link."""
    before_bytes: int | None = None
    after_bytes: int | None = None


def differences(before: Survey, after: Survey) -> Iterator[Difference]:
    """Removals first, from the depth up; then what was made or changed, parents first.

    What was renamed is a removal and something new.
    """
    old, new = before.entries, after.entries
    for path in sorted(old, reverse=True):
        if path not in new or _is_replaced(old[path], new[path]):
            yield _removal(path, old[path])
    for path in sorted(new):
        now, was = new[path], old.get(path)
        if was != now and (change := _change(path, was, now)):
            yield change


def _is_replaced(was: Seen, now: Seen) -> bool:
    """Whether there is something of another kind now, where one was that is recorded otherwise."""
    return was.kind is not now.kind and FileKind.DIRECTORY in (was.kind, now.kind)


def _removal(path: str, was: Seen) -> Difference:
    is_directory = was.kind is FileKind.DIRECTORY
    return Difference("remove", path, is_directory, before_bytes=was.size_bytes)


def _change(path: str, was: Seen | None, now: Seen) -> Difference | None:
    if now.kind is FileKind.DIRECTORY:
        # One that took the place of another is the same to everybody but for what is in it.
        is_new = was is None or was.kind is not FileKind.DIRECTORY
        return Difference("mkdir", path, True) if is_new else None
    before_bytes = None if was is None or _is_replaced(was, now) else was.size_bytes
    if now.kind is FileKind.LINK:
        return Difference("link", path, False, now.target, before_bytes=before_bytes)
    return Difference("write", path, False, None, before_bytes, now.size_bytes)
