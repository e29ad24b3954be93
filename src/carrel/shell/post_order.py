"""Trees from the leaves to the root: what is in a directory comes before the directory itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from carrel.values import FileInfo

Found = tuple[str, FileInfo]
"""A shown path and what is there."""


def post_order(found: Iterable[Found]) -> Iterator[Found]:
    """What a walk gives, parents first, with every directory after what it holds."""
    open_directories: list[Found] = []
    for path, info in found:
        while open_directories and not path.startswith(open_directories[-1][0] + "/"):
            yield open_directories.pop()
        if info.is_directory:
            open_directories.append((path, info))
        else:
            yield path, info
    while open_directories:
        yield open_directories.pop()
