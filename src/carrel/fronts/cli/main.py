"""The `carrel` program: assemble the commands, run one, and turn its error into an exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from carrel.errors import CarrelError
from carrel.fronts.cli.commands.files.command import files
from carrel.fronts.cli.commands.key import key
from carrel.fronts.cli.commands.mcp import mcp
from carrel.fronts.cli.commands.policy import policy
from carrel.fronts.cli.commands.run import run as run_command
from carrel.fronts.cli.commands.serve import serve
from carrel.fronts.cli.commands.session.command import session
from carrel.fronts.cli.commands.setup import setup
from carrel.fronts.cli.commands.sh.command import sh
from carrel.fronts.cli.commands.tool import tool
from carrel.fronts.cli.commands.tools import tools
from carrel.fronts.cli.completion.command import complete, completion
from carrel.fronts.cli.completion.completers import directories
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.demo.command import demo
from carrel.fronts.cli.doctor.command import doctor
from carrel.fronts.cli.errors import DEBUG, Failure, wants_debug
from carrel.fronts.cli.help import RootGroup, add_examples
from carrel.fronts.cli.output import colour_preference, wants_json

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells report it (128 + SIGINT)."""
BROKEN_PIPE = 141
"""Exit status when the reader of the output is gone, as shells report it (128 + SIGPIPE)."""


SECTIONS = {
    "Getting started": ("demo", "setup", "doctor", "completion"),
    "Sessions": ("session",),
    "Files": ("files", "policy"),
    "Running commands and code": ("sh", "run", "tools", "tool"),
    "Service": ("serve", "mcp", "key"),
}
"""Sections of `carrel --help`, each with the names of its commands."""


@click.group(
    "carrel",
    cls=RootGroup,
    sections=SECTIONS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--sessions-dir",
    metavar="DIR",
    shell_complete=directories,
    help="Directory that holds all workspaces.  [default: $CARREL_SESSIONS_DIR, else session.directory in"
    " the configuration file, else ./workspace]",
)
@click.option("-v", "--verbose", is_flag=True, help="Log events to standard error.")
@click.option(
    DEBUG,
    is_flag=True,
    expose_value=False,
    help="Print a traceback with every error; $CARREL_DEBUG=1 does the same.",
)
@click.version_option(package_name="carrel", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, sessions_dir: str | None, verbose: bool) -> None:
    """Confined workspaces for sessions of AI agents."""
    # click itself only checks for a terminal.
    ctx.color = colour_preference(os.environ)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return
    ctx.obj = CliContext(sessions_dir_option=_parse_sessions_dir(sessions_dir), verbose=verbose)


def _parse_sessions_dir(sessions_dir: str | None) -> Path | None:
    if sessions_dir == "":
        raise click.BadParameter("the path is empty.", param_hint="'--sessions-dir'")
    return None if sessions_dir is None else Path(sessions_dir)


for command in (session, files, policy, sh, run_command, tools, tool, key, serve, mcp, demo, doctor, setup):
    cli.add_command(command)
for command in (completion, complete):
    cli.add_command(command)
add_examples(cli)


def main() -> NoReturn:
    """Run the command line and end the process with its exit status."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # The next file opened would get the number of the missing stream.
        sys.exit("carrel: standard input, output and error must be open")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a console's stream
    try:
        status = run(sys.argv[1:])
    except BrokenPipeError:
        _discard_output()
        status = BROKEN_PIPE
    except KeyboardInterrupt:
        # If the interrupt arrived inside another `exec` of text, such as that of a dataclass, `python -m`
        # would end by the signal and not with our status; one more `exec` clears that.
        exec("")  # noqa: S102
        status = INTERRUPTED
    sys.exit(status)


def run(argv: Sequence[str]) -> int:
    """Run one command line, print its error if it fails, and return the exit status.

    Raises:
        BrokenPipeError: The reader of the output is gone.
    """
    as_json = wants_json(argv)
    try:
        status = _invoke(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:  # every error is printed on one line
        return _report(error, argv, as_json=as_json)
    return status


def _report(error: Exception, argv: Sequence[str], *, as_json: bool) -> int:
    failure = Failure.from_error(error)
    if isinstance(error, OSError) and not isinstance(error, CarrelError):
        _discard_output()
    if wants_debug(argv, os.environ):
        failure.print_debug(error, as_json=as_json)
    else:
        failure.print(as_json=as_json)
    return failure.status


def _invoke(argv: Sequence[str]) -> int:
    """Run the command; `click`'s own `main` would treat a broken pipe as a failure."""
    try:
        with cli.make_context("carrel", list(argv)) as ctx:
            return cli.invoke(ctx) or 0
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code


def _discard_output() -> None:
    """Discard buffered output; otherwise the interpreter would fail to flush it on exit."""
    null_fd = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_fd, sys.stdout.fileno())
    os.close(null_fd)
