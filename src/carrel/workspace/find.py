"""Find entries: by pattern, and those worth searching."""

from __future__ import annotations

from collections.abc import Iterator

from carrel.errors import LoopError, MissingError, NotDirectoryError
from carrel.fs.api import Files, Links
from carrel.paths.match import Pattern
from carrel.paths.rel import Where, child
from carrel.values import FileInfo, FileKind, Limits


def is_hidden(path: str) -> bool:
    """Whether any name in *path* begins with a dot."""
    return path.startswith(".") or "/." in path


def matching(files: Files, top: Where, pattern: Pattern | None, limits: Limits) -> Iterator[FileInfo]:
    """Everything beneath *top* that *pattern* matches, or simply everything; nothing if it is missing."""
    try:
        found = files.walk(top, limits)
    except (MissingError, NotDirectoryError, LoopError):
        return
    for info in found:
        if pattern is None or pattern.matches(info.path):
            yield info


def below(top: FileInfo, info: FileInfo) -> str:
    """The path of *info*, found beneath *top*, seen from there."""
    return info.path if top.path == "." else info.path[len(top.path.rstrip("/")) + 1 :]


def searchable(
    files: Files, where: Where, pattern: Pattern | None, limits: Limits, *, hidden: bool
) -> Iterator[tuple[FileInfo, Where]]:
    """The regular files at or beneath *where* that *pattern* matches, seen from there."""
    top = files.stat(where, Links.FOLLOW)
    if top.kind is not FileKind.DIRECTORY:
        yield top, where
        return
    for info in files.walk(where, limits):
        name = below(top, info)
        if info.kind is not FileKind.FILE or (is_hidden(name) and not hidden):
            continue
        if pattern is None or pattern.matches(name):
            yield info, child(where, name)
