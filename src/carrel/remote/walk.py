"""Walk a remote directory tree by listing one directory at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

from carrel.errors import EscapeError, HostDeniedError, MissingError, NotDirectoryError
from carrel.fs.errors import depth_limit_error, walk_limit_error
from carrel.values import FileInfo, Limits

ListDirectory = Callable[[str], Awaitable[list[FileInfo]]]
"""Gives the entries of one directory, sorted by name."""


async def walk(
    entries: ListDirectory, top: str, limits: Limits, enter: Callable[[FileInfo], bool] | None
) -> AsyncGenerator[FileInfo]:
    """Everything beneath *top* in the order of `Workspace.walk`: parents first, names in order.

    Raises:
        LimitError: After everything within the limits was given, or at the limit of entries.
    """
    seen = 0
    deeper: str | None = None
    levels = [iter(await entries(top))]
    while levels:
        info = next(levels[-1], None)
        if info is None:
            levels.pop()
            continue
        if limits.walk_entries is not None and seen >= limits.walk_entries:
            raise walk_limit_error(limits.walk_entries, top)
        seen += 1
        yield info
        if not info.is_directory or (enter is not None and not enter(info)):
            continue
        if limits.depth is not None and len(levels) >= limits.depth:
            deeper = deeper or info.path
        else:
            levels.append(await _inside(entries, info))
    if deeper is not None and limits.depth is not None:
        raise depth_limit_error(limits.depth, deeper)


async def _inside(entries: ListDirectory, info: FileInfo) -> Iterator[FileInfo]:
    """What is in a directory; nothing if it is gone, is none any more, is shut to the service or a mount."""
    try:
        return iter(await entries(info.path))
    except (MissingError, NotDirectoryError, HostDeniedError, EscapeError):
        return iter(())


class UnreadableContent:
    """A content that could not be read, and says so to whoever tries."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        raise self._error
