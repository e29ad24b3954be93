"""Run command lines in the toolbox's shell or in the session's container; used by every `bash` tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from carrel.errors import ToolError
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult
from carrel.shell.text.quoting import encode
from carrel.tools.core.context import ToolContext
from carrel.tools.core.schema import Param
from carrel.tools.core.spec import RunLocation
from carrel.tools.results.run_output import (
    RunProblem,
    run_outcome,
    run_problem,
    stderr_summary,
    streams_result,
    text_result,
)
from carrel.values import ToolResult

SHELL_NOTES = (
    "The usual file commands are available, such as ls, cat, grep and find; `help` lists them. Programs of"
    " the host and the network are not available. {language}. The working directory and variables persist"
    " between calls."
)
"""Description of the built-in shell, for the notes of every `bash` tool."""
CONTAINER_NOTES = (
    "It runs in a Linux container of this session, {network}, in the workspace; the programs are those of its"
    " image. Nothing persists between calls except files in the workspace and, for a while, in /tmp;"
    " processes that a command leaves running are ended."
)
"""The same where commands run in the session's container."""

CommandOrNone = Annotated[str | None, Param("Command line to run; required unless the shell is restarted")]
Restart = Annotated[bool, Param("Restart the shell, in the workspace and without variables that were set")]
TextCursor = Annotated[str | None, Param("Cursor from a truncated result, to continue from there")]

MAX_ARGUMENT_BYTES = 2**17 - 1
"""Longest argument that Linux passes to a program, in bytes."""
_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"'
"""Script that starts the best shell of the image; the command line is an argument, never part of its text."""


def run_in_container(ctx: ToolContext, command: str, seconds: float) -> ShellResult:
    """Run *command* for at most *seconds*, in the workspace.

    Raises:
        ToolError: The command cannot be passed to a program.
        EngineError: No container engine is available.
        ContainerError: The container cannot be used.
    """
    _require_valid_argument(command)
    result = ctx.container_shell.run(
        ("sh", "-c", _SHELL, "sh", command),
        timeout_seconds=seconds,
        cwd=ctx.workspace.mount,
        on_start=ctx.on_stop,
        on_output=ctx.on_output,
    )
    stdout, stderr = (text.encode("utf-8", "replace") for text in (result.stdout, result.stderr))
    problem = None if result.trap_reason is None else run_problem(result, "Command", seconds, stderr)
    return ShellResult(
        stdout=stdout,
        stderr=stderr,
        exit_code=result.exit_status,
        error_code=None if problem is None else problem.code,
        message=None if problem is None else problem.message,
        cwd=ctx.workspace.mount,
        duration_ms=result.duration_ms,
        truncated=bool(result.metadata.get("stdout_truncated") or result.metadata.get("stderr_truncated")),
    )


def _require_valid_argument(command: str) -> None:
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolError("arguments", "Wrong arguments: 'command' must be valid Unicode text") from None
    if "\0" in command:
        raise ToolError("arguments", "Wrong arguments: 'command' must not contain a NUL character")
    if size > MAX_ARGUMENT_BYTES:
        raise ToolError(
            "arguments", f"Wrong arguments: 'command' must have at most {MAX_ARGUMENT_BYTES} bytes"
        )


_ECHO_CHARACTERS = 1000
"""Longer command lines are cut in the metadata."""


def run_streams(ctx: ToolContext, command: str, *, seconds: float, cursor: str | None) -> ToolResult:
    """Run *command* for at most *seconds*; the result has standard output and error separately.

    With *cursor*, nothing is run: the result is the next page of what *command* printed before.

    Raises:
        ToolError: The cursor is not valid, or belongs to another command.
        AdvisedError: The output is no longer kept.
    """
    if cursor is not None:
        return streams_result(ctx.next_page(cursor, command))
    result, metadata = _run(ctx, command, seconds)
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    problem = _status_problem(result, stderr_summary(result.stderr))
    return streams_result(ctx.first_page(run_outcome(command, streams, problem, metadata)))


def run_text(
    ctx: ToolContext, command: str | None, *, restart: bool, seconds: float, cursor: str | None
) -> ToolResult:
    """Run *command*, restart the shell, or both; the result has standard output and error as one text.

    Raises:
        ToolError: There is no command and no restart, or the cursor is not valid.
        AdvisedError: The output is no longer kept.
    """
    if command is not None and cursor is not None:
        return text_result(ctx.next_page(cursor, command))
    if restart:
        ctx.restart_shell()
        if command is None:
            return ToolResult(
                success=True, output="The shell has been restarted.", metadata={"cwd": _cwd(ctx)}
            )
    if command is None:
        raise ToolError("arguments", "Wrong arguments: 'command' is missing")
    result, metadata = _run(ctx, command, seconds)
    streams = {"text": _combined_output(result)}
    return text_result(ctx.first_page(run_outcome(command, streams, _status_problem(result, ""), metadata)))


def _combined_output(result: ShellResult) -> bytes:
    stdout, stderr = result.stdout, result.stderr
    if result.message is not None:
        # The error of the result contains it already.
        stderr = stderr.removesuffix(encode(result.message) + b"\n")
    separator = b"\n" if stdout and stderr and not stdout.endswith(b"\n") else b""
    return stdout + separator + stderr


def _run(ctx: ToolContext, command: str, seconds: float) -> tuple[ShellResult, dict[str, Any]]:
    max_seconds = ctx.options.shell_timeout_seconds
    seconds = seconds if max_seconds is None else min(seconds, max_seconds)
    if ctx.run_location is RunLocation.HERE:
        result = _run_in_shell(ctx, command, seconds)
    else:
        result = run_in_container(ctx, command, seconds)
    metadata = {
        "command": command if len(command) <= _ECHO_CHARACTERS else f"{command[:_ECHO_CHARACTERS]}...",
        "cwd": result.cwd,
        "exit_code": result.exit_code,
        "duration_ms": round(result.duration_ms, 3),
        "timeout_seconds": seconds,
        "stdout_bytes": len(result.stdout),
        "stderr_bytes": len(result.stderr),
    }
    if ctx.run_location is not RunLocation.HERE and result.truncated:
        metadata["output_lost"] = True
    return result, metadata


def _run_in_shell(ctx: ToolContext, command: str, seconds: float) -> ShellResult:
    budget = Budget(seconds=seconds, output_bytes=ctx.options.shell_output_bytes)
    on_output = ctx.on_output
    if on_output is None:
        return ctx.shell.run(command, budget=budget, on_start=ctx.on_stop)
    # The shell does not keep output that it passes on.
    kept: dict[str, list[bytes]] = {"stdout": [], "stderr": []}

    def keep_and_pass_on(stream: str, data: bytes) -> None:
        kept[stream].append(data)
        on_output(stream, data)

    result = ctx.shell.run(command, budget=budget, on_start=ctx.on_stop, on_output=keep_and_pass_on)
    return replace(result, stdout=b"".join(kept["stdout"]), stderr=b"".join(kept["stderr"]))


def _cwd(ctx: ToolContext) -> str:
    return ctx.shell.cwd if ctx.run_location is RunLocation.HERE else ctx.workspace.mount


def _status_problem(result: ShellResult, summary: str) -> RunProblem | None:
    if result.error_code is not None:
        return RunProblem(result.error_code, result.message or "")
    if result.exit_code == 0:
        return None
    message = f"Command exited with status {result.exit_code}"
    return RunProblem("tool.status", f"{message}: {summary}" if summary else message)
