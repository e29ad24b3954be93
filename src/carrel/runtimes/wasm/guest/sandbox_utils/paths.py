"""Which paths a helper takes: those of the session.

This is a courtesy to scripts that slip, told before anything is touched. What keeps a script inside is the
gate, which every file operation of the guest goes through.
"""

from __future__ import annotations

import os

Given = str | os.PathLike[str]
"""A path as the caller of a helper writes it."""


def inside(path: Given) -> str:
    """*path* made absolute, without `.` and `..`.

    Raises:
        ValueError: It is empty, or leads out of the session.
    """
    where = _absolute(path)
    if not any(where == root or where.startswith(root.rstrip("/") + "/") for root in _roots()):
        raise ValueError(f"the path leads out of the session: {os.fspath(path)!r}")
    return where


def below(path: Given) -> str:
    """The same for what is to be moved or removed, which cannot be all that there is.

    Raises:
        ValueError: It is empty, leads out of the session, or is a top directory such as `/app`.
    """
    where = inside(path)
    if where in _roots():
        raise ValueError(f"a top directory cannot be moved or removed: {os.fspath(path)!r}")
    return where


def _absolute(path: Given) -> str:
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a path must be text, not {type(text).__name__}")
    if not text:
        raise ValueError("the path is empty")
    return "/" + os.path.abspath(text).lstrip("/")


def _roots() -> list[str]:
    """Where the session has files, and `/tmp`."""
    import _host  # type: ignore[import-not-found]  # exists only in the guest

    told: bytes = _host.call(b"roots")
    return told.decode("utf-8", "replace").split("\0")
