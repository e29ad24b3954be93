"""`carrel sh`: run one command line in a session, or open a prompt."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.output import print_json, print_output

if TYPE_CHECKING:
    from carrel.config.settings import Settings
    from carrel.policy.rules import SandboxPolicy
    from carrel.sandbox.shell import Shell
    from carrel.shell.budget import Budget


class ShCommand(click.Command):
    """A command that takes options, a session, more options, then a command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn the session into an option, so that options may follow it."""
        options, _, _ = self.make_parser(ctx).parse_args(list(args))
        words = options["words"]
        if isinstance(words, tuple) and words and "session" not in options:
            before = args[: len(args) - len(words)]
            if before[-1:] == ["--"]:
                before.pop()
            args = [*before, f"--session={words[0]}", *words[1:]]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line after `Usage: carrel sh`."""
        return ["[SESSION]", "[OPTIONS]", "[COMMAND]..."]


@click.command(cls=ShCommand, context_settings={"allow_interspersed_args": False})
@click.option("--session", hidden=True)
@click.option("-c", "line", metavar="COMMAND", help="Run COMMAND; works without SESSION.")
@click.option(
    "--pipelines/--no-pipelines",
    default=None,
    help="Enable or reject the operators |, &&, ||, ;, <, > and >>.  [default: shell.pipelines]",
)
@click.option(
    "--timeout",
    "seconds",
    type=float,
    metavar="SECONDS",
    help="Stop each command line after this time.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result of COMMAND as one JSON document.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, shell_complete=completers.shell_words)
@click.pass_obj
def sh(
    context: CliContext,
    session: str | None,
    line: str | None,
    pipelines: bool | None,
    seconds: float | None,
    as_json: bool,
    words: tuple[str, ...],
) -> int:
    """Run COMMAND in a session, or open a prompt; the session is created if it is missing.

    The shell is built in: it starts no shell or program of this machine, and its commands see only the files
    of the session. COMMAND is one line, or the words of one command; options come before it. The exit status
    is that of the command, 124 on timeout, 130 after Ctrl-C, and 4 when another limit is reached. Without
    SESSION the shell works in the operator's workspace: $CARREL_WORKSPACE, else workspace.root in the
    configuration. The user of this command may change the rules of the workspace: see `workspace --help`.
    """
    if words:
        if line is not None:
            raise click.UsageError("COMMAND is given twice: with -c and after SESSION.")
        line = words[0] if len(words) == 1 else shlex.join(words)
    if as_json and line is None:
        raise click.UsageError("--json requires a COMMAND.")
    if seconds is not None and not seconds > 0:
        raise click.BadParameter("the timeout must be greater than 0.", param_hint="'--timeout'")
    with _open_shell(context, session) as (shell, settings):
        if pipelines is not None:
            shell.pipelines = pipelines
        shell.budget = _budget(settings, seconds, as_json=as_json)
        if line is None:
            from carrel.fronts.cli.commands.sh.prompt import Prompt

            return Prompt(shell, session or "workspace").run()
        return _run_once(shell, line, as_json=as_json)


@contextmanager
def _open_shell(context: CliContext, session: str | None) -> Iterator[tuple[Shell, Settings]]:
    """Open a shell in *session*, or if it is `None` in the operator's workspace."""
    from carrel.config.load import load, operator_settings
    from carrel.paths.session_id import require_session_id
    from carrel.sandbox.operator_workspace import DirectoryOperatorWorkspace, SessionOperatorWorkspace
    from carrel.sandbox.shell import Shell, one_shot_python

    with one_shot_python(context.logger()) as python:
        if session is None:
            settings = operator_settings(os.environ, lambda text: click.echo(f"carrel: {text}", err=True))
            root, policy = _operator_rules(settings)
            operator = DirectoryOperatorWorkspace(root, context.logger())
            shell = Shell(
                operator.reopen(policy),
                pipelines=settings.shell.pipelines,
                python=python,
                operator=operator,
            )
            with _closing_workspace(shell):
                yield shell, settings
            return
        settings = load(os.environ)
        require_session_id(session)
        with context.manager() as manager:
            shell = Shell(
                manager.get_workspace(session, actor="operator"),
                pipelines=settings.shell.pipelines,
                python=python,
                operator=SessionOperatorWorkspace(manager, session),
            )
            with _closing_workspace(shell):
                yield shell, settings


@contextmanager
def _closing_workspace(shell: Shell) -> Iterator[None]:
    """Close the workspace that the shell has at the end: the `workspace` command may have replaced it."""
    try:
        yield
    finally:
        shell.workspace.close()


def _operator_rules(settings: Settings) -> tuple[str, SandboxPolicy]:
    """The root and the rules of the operator's workspace; the root is created if it is missing.

    Raises:
        ConfigError: No root is configured.
        UnavailableError: The root cannot be created.
    """
    from carrel.errors import ConfigError, UnavailableError
    from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy

    operator = settings.operator
    if operator.root is None:
        raise ConfigError("workspace.root is not set, and there is no home directory for a default")
    try:
        operator.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnavailableError(
            f"cannot create the operator's workspace {operator.root.name!r}: {error.strerror}"
        ) from None
    allow = [PathRule(str(each.path), AccessMode(each.mode)) for each in operator.allow]
    policy = SandboxPolicy.for_workspace(operator.root, AccessMode(operator.mode), allow)
    return str(operator.root), replace(policy, enabled=operator.enabled)


def _budget(settings: Settings, seconds: float | None, *, as_json: bool) -> Budget:
    """The limits of a command line; output that is streamed is unlimited."""
    from carrel.shell.budget import Budget

    return Budget(
        seconds=seconds or settings.shell.timeout_seconds,
        output_bytes=settings.shell.output_bytes if as_json else None,
    )


def _run_once(shell: Shell, line: str, *, as_json: bool) -> int:
    from carrel.fronts.cli.commands.sh.interrupts import collected_interrupts, run_interruptible

    with collected_interrupts() as interrupts:
        result = run_interruptible(shell, line, None if as_json else print_output, interrupts)
    if as_json:
        from carrel.remote.json_codec import render

        print_json(render(result))
    return result.exit_code
