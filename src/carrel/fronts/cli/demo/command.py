"""`carrel demo`: run the demo script in a temporary directory and check every answer."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from carrel.fronts.cli.local_files import LocalError
from carrel.fronts.cli.output import display, print_error

if TYPE_CHECKING:
    from carrel.fronts.cli.demo.output import DemoOutput
    from carrel.fronts.cli.demo.runner import DemoRunner
    from carrel.fronts.cli.demo.script import DemoSection

FAILED = "cli.demo"
"""The code of a demo in which an answer was not what it had to be."""


@click.command()
@click.option(
    "--keep",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    help="Keep the files of the session, and so the plot, in a new directory.",
)
def demo(keep: Path | None) -> int:
    """Show what a session does, in a temporary directory.

    Every command that is shown is run as it stands, and every answer is checked: the exit status is 1 if one
    is not what it has to be. Where the guest is not compiled yet, that is done first.
    """
    from carrel.fronts.cli.demo.output import DemoOutput

    kept = None if keep is None else _new(keep)
    missing = _prepare()
    return _tell(DemoOutput(sys.stdout, os.environ), missing, kept)


def _new(keep: Path) -> Path:
    """The directory to be made; what is in the way is said now and not at the end."""
    path = Path(os.path.abspath(keep))
    if os.path.lexists(path):
        raise LocalError(f"{str(keep)!r} already exists; name a new directory", path=str(keep))
    if not path.parent.is_dir():
        raise LocalError(f"there is no directory {str(keep.parent)!r}", path=str(keep))
    return path


def _prepare() -> str | None:
    """Compile the guest if that is still to be done; why there is none, if it is not installed."""
    from carrel.config.load import load
    from carrel.errors import RuntimeMissingError
    from carrel.fronts.cli.compile_progress import compile_with_progress
    from carrel.runtimes.wasm.build.compiled import CompiledGuest
    from carrel.runtimes.wasm.build.installed import find_installed

    try:
        find_installed()
    except RuntimeMissingError as error:
        return error.message
    guest = CompiledGuest(load(os.environ).python.cache)
    if not guest.is_there():
        compile_with_progress(guest, sys.stderr)
    return None


def _tell(screen: DemoOutput, missing: str | None, kept: Path | None) -> int:
    """Tell the story up to its end, or up to an answer that is wrong; returns the exit status."""
    import time

    from carrel.fronts.cli.demo.runner import DemoRunner, temporary_directory
    from carrel.fronts.cli.demo.script import RAIN, TABLE, demo_sections

    began = time.monotonic()
    steps = 0
    with temporary_directory() as directory:
        stage = DemoRunner(directory, os.environ)
        stage.put(TABLE, RAIN)
        for scene in demo_sections(missing=missing, keep=kept):
            if (problem := _show(scene, stage, screen)) is not None:
                print_error(FAILED, problem, as_json=False)
                return 1
            steps += len(scene.steps)
    seconds = time.monotonic() - began
    screen.say(f"{steps} commands, each answered as it must be, in {seconds:.0f} s. {_left(missing, kept)}")
    return 0


def _left(missing: str | None, kept: Path | None) -> str:
    """What is left of it all."""
    from carrel.fronts.cli.demo.script import PLOT, TABLE

    if kept is None:
        return "Nothing of it is left."
    return f"Kept: {display(str(kept / (TABLE if missing else PLOT)))}"


def _show(scene: DemoSection, stage: DemoRunner, screen: DemoOutput) -> str | None:
    """Do what the scene says; what went wrong, if anything did."""
    screen.title(scene.title)
    if scene.note is not None:
        screen.note(scene.note)
    for step in scene.steps:
        screen.command(step.line)
        answer = stage.ask(step.line)
        screen.answer(answer.text, failed=answer.status != 0)
        if (problem := step.problem(answer.text, answer.status)) is not None:
            return f"the demo failed at {scene.title!r}: {step.line.splitlines()[0]!r} {problem}"
    return None
