"""`carrel setup`: compile the guest in advance, so that no session waits for it."""

from __future__ import annotations

import os
import sys

import click

from carrel.fronts.cli.output import display, print_json


@click.command()
@click.option(
    "--fuel", is_flag=True, help="Also compile the guest that counts instructions, for runs with --fuel."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing unless compiling fails.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def setup(fuel: bool, quiet: bool, as_json: bool) -> None:
    """Compile the guest that runs Python in sessions, unless it is already compiled.

    This takes a minute or two, 2.7 GB of memory and 500 MiB of disk space (with --fuel, twice the time and
    space), once per user. The compiled guest is stored in the directory python.cache: $CARREL_CACHE, else
    $XDG_CACHE_HOME/carrel, else ~/.cache/carrel.
    """
    from carrel.config.load import load
    from carrel.fronts.cli.compile_progress import compile_with_progress
    from carrel.runtimes.wasm.build.compiled import CompiledGuest

    guest = CompiledGuest(load(os.environ).python.cache)
    silent = quiet or as_json
    outcomes = {"plain": compile_with_progress(guest, sys.stderr, quiet=silent)}
    if fuel:
        outcomes["metered"] = compile_with_progress(guest, sys.stderr, metered=True, quiet=silent)
    if as_json:
        print_json(
            {
                "directory": str(guest.directory),
                "compiled": {
                    name: round(each.seconds, 1) for name, each in outcomes.items() if each.compiled
                },
                "already_there": [name for name, each in outcomes.items() if not each.compiled],
            }
        )
    elif not quiet:
        click.echo(f"compiled guest: {display(str(guest.directory))}")
