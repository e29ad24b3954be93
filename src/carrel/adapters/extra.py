"""The frameworks that adapters are for; none comes with carrel itself, each with an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Import meanwhile what comes with *extra*; where it is missing, say how to install it.

    Raises:
        ImportError: A package of the extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "carrel":
            raise
        raise ImportError(
            f"{package} is not installed: pip install 'carrel[{extra}]'", name=error.name
        ) from None
