"""Packages that are not installed with carrel itself, but with one of its extras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingPackageError(Exception):
    """A package that the command needs is not installed."""


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Import meanwhile what comes with *extra*.

    Raises:
        MissingPackageError: It is not installed; the message says how to.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        told = f"{package} is not installed: pip install 'carrel[{extra}]'"
        raise MissingPackageError(told) from None
