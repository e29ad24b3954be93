"""Find entries: by pattern, and those worth searching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from carrel.errors import LoopError, MissingError, NotDirectoryError
from carrel.fs.api import Content, Files, Links, Wants
from carrel.paths.match import Pattern
from carrel.paths.rel import Where
from carrel.values import FileInfo, FileKind, Limits
from carrel.workspace.chunks import CHUNK_BYTES


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
    files: Files,
    where: Where,
    patterns: Sequence[Pattern],
    limits: Limits,
    *,
    hidden: bool,
    wants: Wants | None = None,
) -> Iterator[Content]:
    """The regular files at or beneath *where* to search.

    Those that one of *patterns* matches, seen from there, if there are any, and to whose name *wants* says
    yes.
    """
    top = files.stat(where, Links.FOLLOW)
    if top.kind is not FileKind.DIRECTORY:
        yield Content(top.path, _read(files, where))
        return
    skip = 0 if top.path == "." else len(top.path.rstrip("/")) + 1
    is_by_name = all(pattern.anywhere for pattern in patterns)
    for content in files.read_tree(
        where,
        limits,
        enter=None if hidden else _is_shown,
        wants=_name_filter(patterns, wants, hidden=hidden),
        chunk_bytes=CHUNK_BYTES,
    ):
        if is_by_name or any(pattern.matches(content.path[skip:]) for pattern in patterns):
            yield content


def _read(files: Files, where: Where) -> Iterator[bytes]:
    yield from files.reader(where).chunks(CHUNK_BYTES)


def _is_shown(name: str) -> bool:
    return not name.startswith(".")


def _name_filter(patterns: Sequence[Pattern], wants: Wants | None, *, hidden: bool) -> Wants | None:
    """What is known about a file from its name alone, lest it be read for nothing."""
    if hidden and wants is None and not patterns:
        return None

    def is_wanted(name: str) -> bool:
        return (
            (hidden or not name.startswith("."))
            and (wants is None or wants(name))
            and (not patterns or any(pattern.matches_name(name) for pattern in patterns))
        )

    return is_wanted
