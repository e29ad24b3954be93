"""`carrel run`: run Python, or a command in a container, in a session."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.local_files import STREAM, LocalError
from carrel.fronts.cli.output import print_json, print_output

if TYPE_CHECKING:
    from carrel.policy.execution import ExecutionPolicy
    from carrel.runtimes.result import SandboxResult
    from carrel.sandbox.container import ContainerSandbox
    from carrel.sandbox.sandbox import BaseSandbox, CallOptions

CONTAINER = "--container"
MIN_MEMORY_MB, MAX_MEMORY_MB = 40, 4096
"""The bounds of `ExecutionPolicy.memory_bytes`, repeated here so that `--help` loads no policy."""


class RunCommand(click.Command):
    """A command that takes a session, then options, then a script with its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Treat the first word as the session; options follow it and end at the first other word."""
        if args[:1] == [CONTAINER]:
            args = [*args[1:2], CONTAINER, *args[2:]]
        is_named = bool(args) and not args[0].startswith("-")
        rest = super().parse_args(ctx, ["--session", *args] if is_named else args)
        if ctx.resilient_parsing:
            return rest
        if not is_named:
            raise click.UsageError("Missing argument 'SESSION'.", ctx)
        before = len(args) - len(ctx.params["arguments"]) - 1
        ctx.params["is_command"] = ctx.params["container"] and args[before] == "--"
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line after `Usage: carrel run`."""
        return ["SESSION", "[OPTIONS]", "FILE | -c CODE | - | -- COMMAND", "[ARGUMENTS]..."]


@click.command(
    cls=RunCommand, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--session", hidden=True)
@click.option("-c", "code", metavar="CODE", help="Run CODE.")
@click.option(
    CONTAINER, is_flag=True, help="Run in a container, with the Python of its image, or a COMMAND after --."
)
@click.option(
    "--timeout", "timeout_seconds", type=float, metavar="SECONDS", help="Stop the script after this time."
)
@click.option(
    "--memory-mb",
    type=click.IntRange(MIN_MEMORY_MB, MAX_MEMORY_MB),
    metavar="MIB",
    help="Memory limit of the guest.",
)
@click.option("--fuel", "fuel_budget", type=int, metavar="N", help="Stop the script after N instructions.")
@click.option(
    "--env",
    "-e",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an environment variable. May be repeated.",
)
@click.option(
    "--policy",
    "policy_file",
    metavar="TOML",
    shell_complete=completers.files,
    help="Read the limits from a file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=completers.script_words)
@click.pass_obj
def run(
    context: CliContext,
    session: str,
    code: str | None,
    container: bool,
    is_command: bool,
    timeout_seconds: float | None,
    memory_mb: int | None,
    fuel_budget: int | None,
    variables: tuple[str, ...],
    policy_file: str | None,
    as_json: bool,
    arguments: tuple[str, ...],
) -> int:
    """Run Python in a session, creating the session if it is missing.

    The script is a local FILE, /workspace/FILE in the session, - for standard input, or the CODE of -c; the
    words after it are its arguments. With --container it runs in a container, where -- COMMAND runs a command
    of the image instead of Python. Output is printed as it is written. The exit status is that of the script
    or command, 124 on timeout, and 4 when another limit is reached.
    """
    if code is None and not arguments:
        raise click.UsageError("Missing script: give a FILE, -c CODE, or - for standard input.")
    if code is None and not is_command:
        _require_script(arguments[0])
    policy = _policy(policy_file, timeout_seconds, memory_mb, fuel_budget, variables, in_container=container)
    request = RunRequest(code, arguments, is_command=is_command and code is None, as_json=as_json)
    with context.manager() as manager:
        if container:
            from carrel.sandbox.factory import one_shot_container_sandbox

            with one_shot_container_sandbox(manager, session, policy, context.logger()) as container_sandbox:
                result = request.run_in_container(container_sandbox)
        else:
            from carrel.sandbox.factory import one_shot_sandbox

            with one_shot_sandbox(manager, session, policy, context.logger()) as sandbox:
                result = request.run(sandbox)
    if as_json:
        print_json(_document(result))
    elif result.metadata["message"]:
        click.echo(str(result.metadata["message"]), err=True, nl=False)
    return result.exit_status


def _require_script(word: str) -> None:
    """Reject a word that looks like an option and names no file; it was most likely mistyped.

    Raises:
        NoSuchOption: The word is neither a script nor a known option.
    """
    if not word.startswith("-") or word == STREAM or os.path.lexists(word):
        return
    ctx = click.get_current_context()
    known = [name for param in ctx.command.get_params(ctx) for name in param.opts]
    raise click.NoSuchOption(word, possibilities=known, ctx=ctx)


class RunRequest:
    """The script or command to run."""

    def __init__(
        self, code: str | None, arguments: tuple[str, ...], *, is_command: bool, as_json: bool
    ) -> None:
        """Read the script if it is a local file or standard input."""
        self._is_command = is_command
        self._first = arguments[0] if arguments else ""
        self._arguments = arguments
        self._source: str | bytes = code or b""
        self._is_in_session = code is None and self._first.startswith(completers.WORKSPACE_PREFIXES)
        self._options = _options(arguments if code is not None else arguments[1:], as_json=as_json)
        if code is None and not self._is_in_session and not is_command:
            self._source, self._options["name"] = _read(self._first), self._first

    def run(self, sandbox: BaseSandbox) -> SandboxResult:
        """Run Python."""
        if self._is_in_session:
            return sandbox.execute_file(self._first, **self._options)
        return sandbox.execute(self._source, **self._options)

    def run_in_container(self, sandbox: ContainerSandbox) -> SandboxResult:
        """Run Python or a command in a container."""
        if not self._is_command:
            return self.run(sandbox)
        del self._options["argv"]
        return sandbox.run(self._arguments, **self._options)


def _policy(
    policy_file: str | None,
    timeout_seconds: float | None,
    memory_mb: int | None,
    fuel_budget: int | None,
    variables: tuple[str, ...],
    *,
    in_container: bool,
) -> ExecutionPolicy:
    from dataclasses import replace

    from carrel.policy.execution import MAX_MEMORY_BYTES, ExecutionPolicy

    if policy_file is not None and not Path(policy_file).exists():
        raise LocalError(f"no such file: {policy_file!r}", path=policy_file)
    # By default a script may use the whole memory of its container.
    policy = ExecutionPolicy(memory_bytes=MAX_MEMORY_BYTES) if in_container else ExecutionPolicy()
    if policy_file is not None:
        policy = ExecutionPolicy.load(policy_file)
    given = {
        "timeout_seconds": timeout_seconds,
        "memory_bytes": None if memory_mb is None else memory_mb * 2**20,
        "fuel_budget": fuel_budget,
        "env": {**policy.env, **dict(_variable(text) for text in variables)} if variables else None,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(policy, **changes)


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE.", param_hint="'--env'")
    return name, value


def _options(arguments: tuple[str, ...], *, as_json: bool) -> CallOptions:
    options: CallOptions = {
        "stdin": sys.stdin.buffer,
        "argv": arguments,
        "on_progress": _CompileNotice().print,
    }
    if not as_json:
        options["on_output"] = print_output
    return options


def _read(file: str) -> bytes:
    if file == STREAM:
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise LocalError(f"cannot read {file!r}: {error.strerror}", path=file) from None


class _CompileNotice:
    """Prints once that the guest must be compiled first."""

    def __init__(self) -> None:
        self._is_printed = False

    def print(self, progress: object) -> None:
        if not self._is_printed:
            self._is_printed = True
            click.echo("carrel: compiling the guest first (carrel setup does this in advance)", err=True)


def _document(result: SandboxResult) -> dict[str, Any]:
    """The result without its host paths."""
    import json

    document: dict[str, Any] = json.loads(result.to_json())
    del document["workspace_path"]
    document["metadata"].pop("logs_dir", None)
    return document
