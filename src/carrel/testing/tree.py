"""`tree`: build a directory tree from a description."""

from __future__ import annotations

import os
from pathlib import Path


def tree(directory: str | os.PathLike[str], *lines: str) -> Path:
    """Create the entries in *lines* beneath *directory*, which is created if missing; return it as a `Path`.

    `d/` is a directory, `f` a file with the content "in", `f = text` a file with that text, and `a => b` a
    link at `a` to `b`. Parent directories are created as needed. Lines are taken literally: variables,
    escapes and spaces at either end have no special meaning.
    """
    top = Path(directory)
    top.mkdir(parents=True, exist_ok=True)
    for line in lines:
        _build(top, line)
    return top


def _build(top: Path, line: str) -> None:
    name, is_link, target = line.partition(" => ")
    if is_link:
        os.symlink(target, _prepare(top, name))
        return
    name, has_text, text = line.partition(" = ")
    if not has_text and line.endswith("/"):
        _prepare(top, line.rstrip("/")).mkdir(exist_ok=True)
        return
    _prepare(top, name).write_bytes((text if has_text else "in").encode("utf-8", "surrogateescape"))


def _prepare(top: Path, name: str) -> Path:
    """Return the path of *name*, with its parent directory created."""
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"a line of a tree must stay in it: {name!r}")
    path = top / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
