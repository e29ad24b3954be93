"""Packages that are not installed with carrel itself, but with one of its extras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Import meanwhile what comes with *extra*; where it is missing, say how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise click.ClickException(f"{package} is not installed: pip install 'carrel[{extra}]'") from None
