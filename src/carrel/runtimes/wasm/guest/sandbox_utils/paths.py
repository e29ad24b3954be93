"""Checks that the paths of a helper are in the session.

This only gives scripts an early, clear error. What confines a script is the gate, which every file operation
of the guest goes through.
"""

from __future__ import annotations

import os

Given = str | os.PathLike[str]
"""A path as the caller of a helper passes it."""


def inside(path: Given) -> str:
    """Return *path* as absolute and normalized.

    Raises:
        ValueError: The path is empty, or leads out of the session.
    """
    absolute = _absolute(path)
    if not any(absolute == root or absolute.startswith(root.rstrip("/") + "/") for root in _roots()):
        raise ValueError(f"the path leads out of the session: {os.fspath(path)!r}")
    return absolute


def below(path: Given) -> str:
    """Return *path* as absolute, if it may be moved or removed.

    Raises:
        ValueError: The path is empty, leads out of the session, or is a top directory such as `/app`.
    """
    absolute = inside(path)
    if absolute in _roots():
        raise ValueError(f"a top directory cannot be moved or removed: {os.fspath(path)!r}")
    return absolute


def _absolute(path: Given) -> str:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path must be text, not {type(text).__name__}")
    if not text:
        raise ValueError("the path is empty")
    return "/" + os.path.abspath(text).lstrip("/")


def _roots() -> list[str]:
    """Return the top directories of the session, and `/tmp`."""
    import _host  # type: ignore[import-not-found]  # exists only in the guest

    roots: bytes = _host.call(b"roots")
    return roots.decode("utf-8", "replace").split("\0")
