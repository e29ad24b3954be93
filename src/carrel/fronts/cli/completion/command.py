"""`carrel completion` prints the completion script of a shell; the script calls `carrel _complete`.

`_complete` prints one line per candidate, with a tab before its description. A line that begins with a tab
tells the shell to complete local paths itself: `file` or `dir`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

SCRIPTS = {"bash": "carrel.bash", "zsh": "_carrel", "fish": "carrel.fish"}
"""The files in `scripts`, named as each shell expects them."""


@click.command()
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
def completion(shell: str) -> None:
    """Print a shell completion script for commands, options, sessions and files.

    Evaluate it in the start-up file of the shell (~/.bashrc, or ~/.zshrc after compinit), or save it in the
    completions directory of fish. A system-wide installation of carrel needs no set-up.
    """
    from importlib.resources import files

    click.echo(
        files("carrel.fronts.cli.completion").joinpath("scripts", SCRIPTS[shell]).read_text("utf-8"), nl=False
    )


COMPLETE_COMMAND = "_complete"
_CLOSING_QUOTES = ("", "'", '"')


@click.command(
    COMPLETE_COMMAND,
    hidden=True,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def complete(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print the completions of the last of WORDS, the raw words typed after `carrel`."""
    program = ctx.find_root().command
    for line in _lines(program, [_unquote(word) for word in words or ("",)]):
        click.echo(line)


def _lines(program: click.Command, words: list[str]) -> Iterator[str]:
    from click.shell_completion import ShellComplete

    *before, word = words
    # For `--option=value` the candidates include the option.
    joined = word.partition("=")[0] + "=" if word.startswith("--") and "=" in word else ""
    for item in ShellComplete(program, {}, "carrel", "").get_completions(before, word):
        if item.type != "plain":
            yield f"\t{item.type}"
        elif item.value.isprintable():
            yield f"{joined}{item.value}\t{(item.help or '').partition(chr(10))[0]}".rstrip("\t")


def _unquote(word: str) -> str:
    """Remove shell quoting from a word, whose last quote may still be open."""
    for quote in _CLOSING_QUOTES:
        try:
            return "".join(shlex.split(word.removesuffix("\\") + quote, comments=False)[:1])
        except ValueError:
            continue
    return word
