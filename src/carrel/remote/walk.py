"""Walk a remote directory tree by listing one directory at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator

from carrel.errors import EscapeError, HostDeniedError, MissingError, NotDirectoryError
from carrel.fs.errors import depth_limit_error, walk_limit_error
from carrel.values import FileInfo, Limits

ListDirectory = Callable[[str], Awaitable[list[FileInfo]]]
"""Lists one directory, sorted by name."""


async def walk(
    entries: ListDirectory, top: str, limits: Limits, enter: Callable[[FileInfo], bool] | None
) -> AsyncGenerator[FileInfo]:
    """Everything below *top* in the order of `Workspace.walk`: parents first, sorted by name.

    Raises:
        LimitError: The limit of entries is reached, or after the walk if something was too deep.
    """
    seen = 0
    too_deep_path: str | None = None
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
            too_deep_path = too_deep_path or info.path
        else:
            levels.append(await _list_subdirectory(entries, info))
    if too_deep_path is not None and limits.depth is not None:
        raise depth_limit_error(limits.depth, too_deep_path)


async def _list_subdirectory(entries: ListDirectory, info: FileInfo) -> Iterator[FileInfo]:
    """List a directory; empty if it was removed or replaced, is unreadable for the service, or a mount."""
    try:
        return iter(await entries(info.path))
    except (MissingError, NotDirectoryError, HostDeniedError, EscapeError):
        return iter(())


class UnreadableContent:
    """Content that could not be read; iterating it raises the error."""

    def __init__(self, error: OSError) -> None:
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        raise self._error
