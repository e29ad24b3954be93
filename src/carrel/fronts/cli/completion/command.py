"""`carrel completion` prints the completion script of a shell; the script calls `carrel _complete`.

The answer is a line for each value, after a tab with what it does. A line that begins with the tab says what
the shell is to look for itself: files or directories of this machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

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

    click.echo(
        files("carrel.fronts.cli.completion").joinpath("scripts", SCRIPTS[shell]).read_text("utf-8"), nl=False
    )


COMPLETE_COMMAND = "_complete"
_ENDINGS = ("", "'", '"')


@click.command(
    COMPLETE_COMMAND,
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def complete(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print what the last of WORDS, as they were typed after `carrel`, could become."""
    program = ctx.find_root().command
    for line in _lines(program, [_plain(word) for word in words or ("",)]):
        click.echo(line)


def _lines(program: click.Command, words: list[str]) -> Iterator[str]:
    from click.shell_completion import ShellComplete

    *before, word = words
    # Where a value is joined to its option, the whole word is told.
    joined = word.partition("=")[0] + "=" if word.startswith("--") and "=" in word else ""
    for item in ShellComplete(program, {}, "carrel", "").get_completions(before, word):
        if item.type != "plain":
            yield f"\t{item.type}"
        elif item.value.isprintable():
            yield f"{joined}{item.value}\t{(item.help or '').partition(chr(10))[0]}".rstrip("\t")


def _plain(word: str) -> str:
    """A word as the shell would pass it on, also if its quotes are still open."""
    for ending in _ENDINGS:
        try:
            return "".join(shlex.split(word.removesuffix("\\") + ending, comments=False)[:1])
        except ValueError:
            continue
    return word
