"""`carrel completion`: scripts that let a shell complete what is typed after `carrel`."""

from __future__ import annotations

import click

SCRIPTS = {"bash": "carrel.bash", "zsh": "_carrel", "fish": "carrel.fish"}
"""Their files in `scripts`, named as each shell looks for them."""


@click.command()
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def completion(shell: str) -> None:
    """Print a script that completes commands, options, sessions and files.

    Let the start-up file of the shell evaluate it (~/.bashrc, ~/.zshrc after compinit), or put it where fish
    looks for completions. Where carrel is installed for the whole machine, the shells find it by themselves.
    """
    from importlib.resources import files

    click.echo(files("carrel.fronts.cli").joinpath("scripts", SCRIPTS[shell]).read_text("utf-8"), nl=False)
