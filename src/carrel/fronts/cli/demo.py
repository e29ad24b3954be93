"""`carrel demo`: the whole story in a directory that is gone afterwards."""

from __future__ import annotations

import click


@click.command()
def demo() -> None:
    """Show what a workspace does, in a temporary directory."""
    from carrel.fronts.cli.story import tell

    tell()
