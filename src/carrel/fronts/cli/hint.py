"""What now? A word for people at a terminal; programs never see it."""

from __future__ import annotations

import sys

import click

from carrel.fronts.cli.colour import Tone, of_errors


def hint(text: str) -> None:
    """Say on standard error what may come next, if somebody sits there to read it."""
    if sys.stderr.isatty() and sys.stdout.isatty():
        click.echo(of_errors().paint(f"carrel: {text}", Tone.FAINT), err=True)
