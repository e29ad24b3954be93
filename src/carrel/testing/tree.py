"""Directory trees written as they look."""

from __future__ import annotations

import os
from pathlib import Path


def tree(directory: str | os.PathLike[str], *lines: str) -> Path:
    """Build in *directory*, which is made if it is missing, what *lines* show; return it as a `Path`.

    `d/` is a directory, `f` a file that holds "in", `f = text` a file that holds that text, and `a => b` a
    link at `a` with the text `b`. Directories above are made as needed. Lines are read as they stand: no
    variable, no escape and no space at either end means anything.
    """
    top = Path(directory)
    top.mkdir(parents=True, exist_ok=True)
    for line in lines:
        _build(top, line)
    return top


def _build(top: Path, line: str) -> None:
    name, is_link, target = line.partition(" => ")
    if is_link:
        os.symlink(target, _place(top, name))
        return
    name, has_text, text = line.partition(" = ")
    if not has_text and line.endswith("/"):
        _place(top, line.rstrip("/")).mkdir(exist_ok=True)
        return
    _place(top, name).write_bytes((text if has_text else "in").encode("utf-8", "surrogateescape"))


def _place(top: Path, name: str) -> Path:
    """Where *name* lies, with the directory above it made."""
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"a line of a tree must stay in it: {name!r}")
    place = top / name
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
