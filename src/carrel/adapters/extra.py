"""Import the package of a framework, or say which extra installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
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
