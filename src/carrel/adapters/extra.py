"""Import the package of a framework, or say which extra installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Turn a failed import in the body into an error that names *extra*.

    Raises:
        ImportError: A package of the extra is not installed; the message says how to install it.
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
