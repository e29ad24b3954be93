"""`carrel setup`: compile the guest once, so that no session waits for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import click

from carrel.fronts.cli.report import print_json, shown

if TYPE_CHECKING:
    from carrel.runtimes.compiled import Made, OnProgress, Progress

LINE_SECONDS = 10
"""How often a log hears that it goes on."""
BAR_CHARACTERS = 30
CLEAR_LINE = "\r\x1b[K"


@click.command()
@click.option(
    "--fuel", is_flag=True, help="Also compile the guest that counts its steps, for runs with fuel."
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing unless it fails.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def setup(fuel: bool, quiet: bool, as_json: bool) -> None:
    """Compile the guest that runs Python in sessions, unless it is compiled already.

    This takes a minute or two, 2.7 GB of memory and 500 MiB of disk (with --fuel, twice the time and disk),
    once for all programs of a user. The guest is kept where python.cache says: $CARREL_CACHE, else
    $XDG_CACHE_HOME/carrel, else ~/.cache/carrel.
    """
    from carrel.config.load import load
    from carrel.runtimes.compiled import CompiledGuest

    guest = CompiledGuest(load(os.environ).python.cache)
    made = {}
    for name, metered in (("plain", False), ("metered", True)) if fuel else (("plain", False),):
        teller = _Teller(name, sys.stderr, quiet=quiet or as_json)
        with teller.telling() as tell:
            made[name] = guest.make(metered=metered, on_progress=tell)
        teller.end(made[name])
    if as_json:
        print_json(
            {
                "directory": str(guest.directory),
                "compiled": {name: round(each.seconds, 1) for name, each in made.items() if each.compiled},
                "already_there": [name for name, each in made.items() if not each.compiled],
            }
        )
    elif not quiet:
        click.echo(f"the guest is in {shown(str(guest.directory))}")


class _Teller:
    """Says how far it is: in one line that moves on a terminal, in a line now and then elsewhere."""

    def __init__(self, name: str, stream: TextIO, *, quiet: bool) -> None:
        self._what = {"plain": "guest", "metered": "guest with fuel"}[name]
        self._stream = stream
        self._quiet = quiet
        self._moves = stream.isatty()
        self._said: tuple[bool, int] | None = None
        """What the last line was about: whether we waited, and which of the spans of time it was."""

    @contextmanager
    def telling(self) -> Iterator[OnProgress]:
        """What to call with the progress; the line that moves is gone afterwards."""
        try:
            yield self._tell
        finally:
            if self._moves and self._said is not None:
                self._write(CLEAR_LINE)

    def _tell(self, progress: Progress) -> None:
        now = (progress.waiting, int(progress.elapsed_seconds) // LINE_SECONDS)
        if self._moves:
            self._write(f"{CLEAR_LINE}{_line(self._what, progress)}")
        elif now != self._said:
            self._write(f"{_words(self._what, progress)}\n")
        self._said = now

    def end(self, made: Made) -> None:
        """Say what came of it."""
        if made.compiled:
            self._write(f"{self._what}: compiled in {made.seconds:.0f} s\n")
        else:
            self._write(f"{self._what}: {'ready' if self._said else 'already there'}\n")

    def _write(self, text: str) -> None:
        if not self._quiet:
            self._stream.write(text)
            self._stream.flush()


def _line(what: str, progress: Progress) -> str:
    if progress.waiting:
        return _words(what, progress)
    # It never looks finished before it is.
    share = min(progress.elapsed_seconds / progress.expected_seconds, 0.99)
    bar = "#" * int(share * BAR_CHARACTERS)
    return f"{what}: compiling [{bar:-<{BAR_CHARACTERS}}] {_times(progress)}"


def _words(what: str, progress: Progress) -> str:
    if progress.waiting:
        return f"{what}: waiting for another program that compiles it, {progress.elapsed_seconds:.0f} s"
    return f"{what}: compiling, {_times(progress)}"


def _times(progress: Progress) -> str:
    return f"{progress.elapsed_seconds:.0f} s of about {progress.expected_seconds:.0f} s"
