"""Find, show, walk, copy and remove trees of files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from .paths import Given, below, inside

_CHUNK_BYTES = 2**20


def find(pattern: str, path: Given = ".", recursive: bool = True) -> list[Path]:
    """Return the files beneath *path* that match *pattern*, sorted.

    A pattern without `/` matches names; one with `/` matches paths relative to *path*, where `**` matches any
    directories. Files that start with a dot are included.

    Args:
        pattern: A glob, such as `*.py`, `data-?.csv`, `src/**/[a-m]*`.
        path: The directory to search.
        recursive: Whether to search subdirectories.
    """
    import glob
    import re

    top = inside(path)
    translate = glob.translate  # type: ignore[attr-defined]  # the guest's Python has it
    matches = re.compile(translate(pattern, recursive=True, include_hidden=True, seps="/")).match
    by_name = "/" not in pattern
    found = []
    for directory, names, files in _descend(top):
        start = "" if by_name or directory == top else os.path.relpath(directory, top) + "/"
        found += [Path(directory, name) for name in files if matches(start + name)]
        if not recursive:
            names.clear()
    return sorted(found)


def tree(path: Given = ".", max_depth: int | None = None) -> str:
    """Draw the files beneath *path* as a tree; directories end in `/`.

    Args:
        path: The top directory.
        max_depth: How many levels to show; `None` for all.
    """
    top = inside(path)
    os.listdir(top)  # raises if the top cannot be listed; deeper directories that cannot are skipped
    return "\n".join([os.fspath(path), *_branches(top, "", max_depth)])


def _branches(directory: str, margin: str, depth: int | None) -> Iterator[str]:
    if depth is not None and depth <= 0:
        return
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except PermissionError:
        return
    for number, entry in enumerate(entries, 1):
        is_last, is_directory = number == len(entries), entry.is_dir()
        yield f"{margin}{'└── ' if is_last else '├── '}{entry.name}{'/' if is_directory else ''}"
        if is_directory:
            below_it = margin + ("    " if is_last else "│   ")
            yield from _branches(entry.path, below_it, None if depth is None else depth - 1)


def walk(path: Given = ".", filter_func: Callable[[Path], object] | None = None) -> Iterator[Path]:
    """Iterate over all files and directories beneath *path*, each directory before its content.

    Args:
        path: The top directory, which is not included.
        filter_func: Called with each `Path`; only those for which it returns true are included.
    """
    paths = _paths(inside(path))
    return paths if filter_func is None else filter(filter_func, paths)


def _paths(top: str) -> Iterator[Path]:
    for directory, _, files in _descend(top):
        if directory != top:
            yield Path(directory)
        yield from (Path(directory, name) for name in files)


def copy_tree(src: Given, dst: Given) -> int:
    """Copy the directory *src* recursively to *dst*; return the number of files copied.

    An existing *dst* keeps its content, except for files of the same names.
    """
    source, target = inside(src), inside(dst)
    # List everything first: the target may be inside the source.
    found = list(_descend(source))
    for directory, _, files in found:
        copied = os.path.join(target, os.path.relpath(directory, source)) if directory != source else target
        os.makedirs(copied, exist_ok=True)
        for name in files:
            copy_file(os.path.join(directory, name), os.path.join(copied, name))
    return sum(len(files) for _, _, files in found)


def copy_file(source: str, target: str) -> None:
    """Copy one file; both paths must have been checked."""
    # The guest reads the whole content on open, so both may be the same file.
    with open(source, "rb") as read, open(target, "wb") as written:
        while chunk := read.read(_CHUNK_BYTES):
            written.write(chunk)


def remove_tree(path: Given, pattern: str | None = None) -> int:
    """Remove the directory *path* recursively; return the number of files removed.

    Args:
        path: The directory.
        pattern: If given, remove only files whose names match, and no directory.
    """
    if pattern is not None:
        return _remove_files(pattern, inside(path))
    top = below(path)
    try:
        os.rmdir(top)
        return 0
    except OSError as error:
        # Also raised for a link, which lists its target and must not be followed.
        if error.errno != errno.ENOTEMPTY:
            raise
    found = list(_descend(top))
    for directory, _, files in reversed(found):
        for name in files:
            os.remove(os.path.join(directory, name))
        os.rmdir(directory)
    return sum(len(files) for _, _, files in found)


def _remove_files(pattern: str, top: str) -> int:
    found = find(pattern, top)
    for file in found:
        os.remove(file)
    return len(found)


def _descend(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Like `os.walk`, sorted by name; raises if *top* cannot be listed."""

    def failed(error: OSError) -> None:
        if error.filename == top:
            raise error

    for directory, names, files in os.walk(top, onerror=failed):
        names.sort()
        files.sort()
        yield directory, names, files
