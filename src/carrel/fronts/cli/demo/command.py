"""`carrel demo`: run the demo script in a temporary directory and check every result."""

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
"""Error code: a command of the demo did not behave as expected."""


@click.command()
@click.option(
    "--keep",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path),
    help="Copy the files of the session, including the plot, to a new directory.",
)
def demo(keep: Path | None) -> int:
    """Show what a session can do, in a temporary directory.

    Every command shown is really run, and its result is checked: the exit status is 1 if one is not as
    expected. The guest is compiled first if necessary.
    """
    from carrel.fronts.cli.demo.output import DemoOutput

    kept = None if keep is None else _require_new(keep)
    missing = _prepare_guest()
    return _run_demo(DemoOutput(sys.stdout, os.environ), missing, kept)


def _require_new(keep: Path) -> Path:
    """The absolute path of the directory to create.

    Raises:
        LocalError: It exists, or its parent does not; reported before the demo runs.
    """
    path = Path(os.path.abspath(keep))
    if os.path.lexists(path):
        raise LocalError(f"{str(keep)!r} already exists; name a new directory", path=str(keep))
    if not path.parent.is_dir():
        raise LocalError(f"no such directory: {str(keep.parent)!r}", path=str(keep))
    return path


def _prepare_guest() -> str | None:
    """Compile the guest if necessary; return why it is missing if it is not installed."""
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


def _run_demo(output: DemoOutput, missing: str | None, kept: Path | None) -> int:
    """Run the demo until its end or the first unexpected result; return the exit status."""
    import time

    from carrel.fronts.cli.demo.runner import DemoRunner, temporary_directory
    from carrel.fronts.cli.demo.script import RAIN, TABLE, demo_sections

    started = time.monotonic()
    steps = 0
    with temporary_directory() as directory:
        runner = DemoRunner(directory, os.environ)
        runner.write_file(TABLE, RAIN)
        for section in demo_sections(missing=missing, keep=kept):
            if (problem := _run_section(section, runner, output)) is not None:
                print_error(FAILED, problem, as_json=False)
                return 1
            steps += len(section.steps)
    seconds = time.monotonic() - started
    output.text(f"{steps} commands ran as expected in {seconds:.0f} s. {_remains(missing, kept)}")
    return 0


def _remains(missing: str | None, kept: Path | None) -> str:
    """The sentence about the files that remain."""
    from carrel.fronts.cli.demo.script import PLOT, TABLE

    if kept is None:
        return "All files of the demo were removed."
    return f"Kept: {display(str(kept / (TABLE if missing else PLOT)))}"


def _run_section(section: DemoSection, runner: DemoRunner, output: DemoOutput) -> str | None:
    """Run the steps of a section and print them; return the problem with the first unexpected result."""
    output.title(section.title)
    if section.note is not None:
        output.note(section.note)
    for step in section.steps:
        output.command(step.line)
        result = runner.run(step.line)
        output.result(result.text, failed=result.status != 0)
        if (problem := step.problem(result.text, result.status)) is not None:
            return f"the demo failed at {section.title!r}: {step.line.splitlines()[0]!r} {problem}"
    return None
