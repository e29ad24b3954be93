"""Trees of files: find, show, walk, copy and remove them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from .paths import Given, below, inside

_PIECE_BYTES = 2**20


def find(pattern: str, path: Given = ".", recursive: bool = True) -> list[Path]:
    """The files beneath *path* that match *pattern*, sorted.

    A pattern without `/` is compared with names, one with `/` with paths relative to *path*, where `**`
    stands for any directories. Files that begin with a dot are found too.

    Args:
        pattern: As in `*.py`, `data-?.csv`, `src/**/[a-m]*`.
        path: Where to look.
        recursive: Whether to look in the directories there as well.
    """
    import glob
    import re

    top = inside(path)
    translate = glob.translate  # type: ignore[attr-defined]  # the guest's Python has it
    matches = re.compile(translate(pattern, recursive=True, include_hidden=True, seps="/")).match
    by_name = "/" not in pattern
    found = []
    for place, names, files in _descend(top):
        start = "" if by_name or place == top else os.path.relpath(place, top) + "/"
        found += [Path(place, name) for name in files if matches(start + name)]
        if not recursive:
            names.clear()
    return sorted(found)


def tree(path: Given = ".", max_depth: int | None = None) -> str:
    """The files beneath *path* drawn as a tree, directories with a `/` at their end.

    Args:
        path: Where to begin.
        max_depth: How many levels to show; `None` for all.
    """
    top = inside(path)
    os.listdir(top)  # a top that cannot be listed is an error, what lies deeper is then left out
    return "\n".join([os.fspath(path), *_branches(top, "", max_depth)])


def _branches(place: str, margin: str, depth: int | None) -> Iterator[str]:
    if depth is not None and depth <= 0:
        return
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except PermissionError:
        return
    for number, entry in enumerate(entries, 1):
        is_last, is_directory = number == len(entries), entry.is_dir()
        yield f"{margin}{'└── ' if is_last else '├── '}{entry.name}{'/' if is_directory else ''}"
        if is_directory:
            below_it = margin + ("    " if is_last else "│   ")
            yield from _branches(entry.path, below_it, None if depth is None else depth - 1)


def walk(path: Given = ".", filter_func: Callable[[Path], object] | None = None) -> Iterator[Path]:
    """Everything beneath *path*, files and directories, a directory before what is in it.

    Args:
        path: Where to begin; it is not among the results.
        filter_func: Is given each `Path`; only those for which it returns something true are results.
    """
    paths = _paths(inside(path))
    return paths if filter_func is None else filter(filter_func, paths)


def _paths(top: str) -> Iterator[Path]:
    for place, _, files in _descend(top):
        if place != top:
            yield Path(place)
        yield from (Path(place, name) for name in files)


def copy_tree(src: Given, dst: Given) -> int:
    """Copy the directory *src* with all that is in it to *dst*; the number of files that were copied.

    If *dst* is there, it keeps what it has, except for files of the same names.
    """
    source, target = inside(src), inside(dst)
    # All of it first: the target may lie in the source.
    found = list(_descend(source))
    for place, _, files in found:
        there = os.path.join(target, os.path.relpath(place, source)) if place != source else target
        os.makedirs(there, exist_ok=True)
        for name in files:
            copy_file(os.path.join(place, name), os.path.join(there, name))
    return sum(len(files) for _, _, files in found)


def copy_file(source: str, target: str) -> None:
    """Copy one file, whose place is known to be inside."""
    # The guest has the content as soon as a file is open, so both may be names of one file.
    with open(source, "rb") as read, open(target, "wb") as written:
        while piece := read.read(_PIECE_BYTES):
            written.write(piece)


def remove_tree(path: Given, pattern: str | None = None) -> int:
    """Remove the directory *path* with all that is in it; the number of files that were removed.

    Args:
        path: What to remove.
        pattern: If given, only files whose names match it are removed, and no directory.
    """
    if pattern is not None:
        return _remove_files(pattern, inside(path))
    top = below(path)
    try:
        os.rmdir(top)
        return 0
    except OSError as error:
        # Also of a link, which lists what it leads to, and must not be gone through.
        if error.errno != errno.ENOTEMPTY:
            raise
    found = list(_descend(top))
    for place, _, files in reversed(found):
        for name in files:
            os.remove(os.path.join(place, name))
        os.rmdir(place)
    return sum(len(files) for _, _, files in found)


def _remove_files(pattern: str, top: str) -> int:
    found = find(pattern, top)
    for file in found:
        os.remove(file)
    return len(found)


def _descend(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Like `os.walk`, in the order of names; if *top* itself cannot be listed, that is an error."""

    def failed(error: OSError) -> None:
        if error.filename == top:
            raise error

    for place, names, files in os.walk(top, onerror=failed):
        names.sort()
        files.sort()
        yield place, names, files
