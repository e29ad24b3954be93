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
"""What a shell reports for a program that Ctrl-C ended."""
BROKEN_PIPE = 141
"""What a shell reports for a program whose reader went away."""


SECTIONS = {
    "Start here": ("demo", "setup", "doctor", "completion"),
    "Sessions": ("session",),
    "Files of a session": ("files", "policy"),
    "Work in a session": ("sh", "run", "tools", "tool"),
    "Service": ("serve", "mcp", "key"),
}
"""What the help shows where."""


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
    help="The directory that holds all workspaces.  [default: $CARREL_SESSIONS_DIR, else session.directory in"
    " the configuration file, else ./workspace]",
)
@click.option("-v", "--verbose", is_flag=True, help="Tell on standard error what happens.")
@click.option(
    DEBUG,
    is_flag=True,
    expose_value=False,
    help="Show where an error came from, with its traceback; also by $CARREL_DEBUG=1.",
)
@click.version_option(package_name="carrel", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, sessions_dir: str | None, verbose: bool) -> None:
    """Files of sessions, which nothing in a session can leave."""
    # Else click would only ask whether there is a terminal.
    ctx.color = colour_preference(os.environ)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        return
    ctx.obj = CliContext(given=_given(sessions_dir), verbose=verbose)


def _given(sessions_dir: str | None) -> Path | None:
    if sessions_dir == "":
        raise click.BadParameter("it is empty.", param_hint="'--sessions-dir'")
    return None if sessions_dir is None else Path(sessions_dir)


for command in (session, files, policy, sh, run_command, tools, tool, key, serve, mcp, demo, doctor, setup):
    cli.add_command(command)
for command in (completion, complete):
    cli.add_command(command)
add_examples(cli)


def main() -> NoReturn:
    """Run the command line and end the process with its exit status."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        # Whatever is opened next would take the number of the missing stream.
        sys.exit("carrel: standard input, output and error must be open")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a console's stream
    try:
        status = run(sys.argv[1:])
    except BrokenPipeError:
        _drop_output()
        status = BROKEN_PIPE
    except KeyboardInterrupt:
        # Had it come in the midst of another `exec` of text, as that of a dataclass, `python -m` would still
        # end by the signal and not with our status; the next `exec` makes it forget that.
        exec("")  # noqa: S102
        status = INTERRUPTED
    sys.exit(status)


def run(argv: Sequence[str]) -> int:
    """Run one command line, tell its errors, and return its exit status.

    Raises:
        BrokenPipeError: Nobody reads the output any more.
    """
    as_json = wants_json(argv)
    try:
        status = _invoke(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever it is, it is told in one line
        return _tell(error, argv, as_json=as_json)
    return status


def _tell(error: Exception, argv: Sequence[str], *, as_json: bool) -> int:
    failure = Failure.of(error)
    if isinstance(error, OSError) and not isinstance(error, CarrelError):
        _drop_output()
    if wants_debug(argv, os.environ):
        failure.tell_all(error, as_json=as_json)
    else:
        failure.tell(as_json=as_json)
    return failure.status


def _invoke(argv: Sequence[str]) -> int:
    """Run the command; `click`'s own `main` would take a broken pipe for a failure."""
    try:
        with cli.make_context("carrel", list(argv)) as ctx:
            return cli.invoke(ctx) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code


def _drop_output() -> None:
    """Send what is still buffered nowhere, or the interpreter would complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
