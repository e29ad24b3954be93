"""Shell-like helpers for single files and directories."""

from __future__ import annotations

import errno
import os
from stat import S_ISDIR

from .files import copy_file, copy_tree, remove_tree
from .paths import Given, below, inside
from .text import read_text


def ls(
    path: Given = ".",
    all: bool = False,
    long: bool = False,
) -> list[str] | list[dict[str, object]]:
    """List the names in the directory *path*, sorted; for a file, its own name.

    Args:
        path: The directory or file.
        all: Whether to include names that start with a dot.
        long: Whether to return a dict per name instead: `name`, `is_dir`, `size` in bytes, and `modified` in
            seconds since 1970. Size and time are `None` where `stat` is not permitted.
    """
    absolute = inside(path)
    try:
        directory, names = absolute, sorted(os.listdir(absolute))
    except NotADirectoryError:
        directory, name = os.path.split(absolute)
        names = [name]
    shown = [name for name in names if all or not name.startswith(".") or directory != absolute]
    return [_row(directory, name) for name in shown] if long else shown


def _row(directory: str, name: str) -> dict[str, object]:
    try:
        found = os.stat(os.path.join(directory, name))
    except OSError:
        return {"name": name, "is_dir": False, "size": None, "modified": None}
    return {"name": name, "is_dir": S_ISDIR(found.st_mode), "size": found.st_size, "modified": found.st_mtime}


def cat(*files: Given) -> str:
    """Return the text of all *files*, concatenated."""
    return "".join([read_text(path) for path in [inside(file) for file in files]])


def touch(file: Given) -> None:
    """Create an empty file; an existing one is unchanged, including its time, which a guest cannot set."""
    with open(inside(file), "ab"):
        pass


def mkdir(path: Given, parents: bool = True) -> None:
    """Create a directory.

    Args:
        path: The directory.
        parents: Whether to create missing parents, and to accept an existing directory.
    """
    absolute = inside(path)
    if parents:
        os.makedirs(absolute, exist_ok=True)
    else:
        os.mkdir(absolute)


def rm(path: Given, recursive: bool = False, force: bool = False) -> None:
    """Remove a file, or a directory.

    Args:
        path: The file or directory.
        recursive: Whether to remove a directory with its content.
        force: Whether to ignore a missing path.
    """
    absolute = below(path)
    try:
        os.remove(absolute)
    except FileNotFoundError:
        if not force:
            raise
    except OSError:
        if not (recursive and os.path.isdir(absolute)):
            raise
        remove_tree(absolute)


def cp(src: Given, dst: Given, recursive: bool = False) -> None:
    """Copy a file to *dst*, or into it if it is a directory.

    Args:
        src: The file or directory.
        dst: The target path, or an existing directory.
        recursive: Whether to copy a directory with its content.
    """
    source = inside(src)
    target = _target(source, inside(dst))
    if not recursive and os.path.isdir(source):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(src))
    _copy(source, target)


def _copy(source: str, target: str) -> None:
    if os.path.isdir(source):
        copy_tree(source, target)
    else:
        copy_file(source, target)


def mv(src: Given, dst: Given) -> None:
    """Move a file or a directory to *dst*, or into it if it is a directory; replaces an existing file."""
    source = below(src)
    target = _target(source, inside(dst))
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)
        rm(source, recursive=True)


def _target(source: str, target: str) -> str:
    return os.path.join(target, os.path.basename(source)) if os.path.isdir(target) else target


def echo(text: object = "", file: Given | None = None, append: bool = False) -> str | None:
    """Write *text* and a newline.

    Args:
        text: The text.
        file: The file to write; without it, the text is printed and returned.
        append: Whether to append to *file* instead of replacing it.
    """
    if file is None:
        print(text)  # noqa: T201  # the purpose of this function
        return str(text)
    with open(inside(file), "a" if append else "w", encoding="utf-8", newline="") as opened:
        opened.write(f"{text}\n")
    return None
