"""Run command lines in the toolbox's shell or in the session's container; used by every `bash` tool."""

from __future__ import annotations

from typing import Any

from carrel.errors import ToolError
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult
from carrel.shell.text.quoting import encode
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import KeptOutput
from carrel.tools.core.result import ToolResult
from carrel.tools.core.spec import RunLocation
from carrel.tools.results import run_output
from carrel.tools.results.run_output import RunProblem, run_problem

MAX_ARGUMENT_BYTES = 2**17 - 1
"""The longest argument that Linux hands to a program."""
_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"'
"""Becomes the best shell that the image has; the command line is an argument, and no part of this text."""


def run_in_container(ctx: ToolContext, command: str, seconds: float) -> ShellResult:
    """Run *command* in at most *seconds*, in the workspace.

    Raises:
        ToolError: It cannot be handed to a program.
        EngineError: There is no engine that can be used.
        ContainerError: The container cannot be used.
    """
    _require_argument(command)
    result = ctx.container_shell.run(
        ("sh", "-c", _SHELL, "sh", command),
        timeout_seconds=seconds,
        cwd=ctx.workspace.mount,
        on_start=ctx.on_stop,
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


def _require_argument(command: str) -> None:
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        raise ToolError("arguments", "Wrong arguments: 'command' must be text that UTF-8 can have") from None
    if "\0" in command:
        raise ToolError("arguments", "Wrong arguments: 'command' must not hold a NUL")
    if size > MAX_ARGUMENT_BYTES:
        raise ToolError(
            "arguments", f"Wrong arguments: 'command' must have at most {MAX_ARGUMENT_BYTES} bytes"
        )


_STATUS = "tool.status"
_ECHO_CHARACTERS = 1000
"""So much of a command line is told again."""


def run_streams(ctx: ToolContext, command: str, *, seconds: float, cursor: str | None) -> ToolResult:
    """Run *command* in at most *seconds*; standard output and error come apart.

    With *cursor* nothing is run, and the answer goes on with what *command* printed before.

    Raises:
        ToolError: No answer gave that cursor, or it was given for another command.
        ToldError: The output is not kept any more.
    """
    if cursor is not None:
        return run_output.streams_rest(ctx, cursor, command)
    result, metadata = _run(ctx, command, seconds)
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    problem = _status_problem(result, run_output.gist(result.stderr))
    return run_output.streams_answer(ctx, run_output.output_of(command, streams, problem, metadata))


def run_text(
    ctx: ToolContext, command: str | None, *, restart: bool, seconds: float, cursor: str | None
) -> ToolResult:
    """Run *command*, or restart the shell, or both; standard output and error come as one text.

    Raises:
        ToolError: There is nothing to do, or no answer gave that cursor.
        ToldError: The output is not kept any more.
    """
    if command is not None and cursor is not None:
        return run_output.text_rest(ctx, cursor, command)
    if restart:
        ctx.restart_shell()
        if command is None:
            return ToolResult(
                success=True, output="The shell has been restarted.", metadata={"cwd": _cwd(ctx)}
            )
    if command is None:
        raise ToolError("arguments", "Wrong arguments: 'command' is missing")
    return run_output.text_answer(ctx, _as_text(ctx, command, seconds))


def _as_text(ctx: ToolContext, command: str, seconds: float) -> KeptOutput:
    result, metadata = _run(ctx, command, seconds)
    stdout, stderr = result.stdout, result.stderr
    if result.message is not None:
        # The error says it already.
        stderr = stderr.removesuffix(encode(result.message) + b"\n")
    between = b"\n" if stdout and stderr and not stdout.endswith(b"\n") else b""
    return run_output.output_of(
        command, {"text": stdout + between + stderr}, _status_problem(result, ""), metadata
    )


def _run(ctx: ToolContext, command: str, seconds: float) -> tuple[ShellResult, dict[str, Any]]:
    most = ctx.options.shell_timeout_seconds
    seconds = seconds if most is None else min(seconds, most)
    if ctx.where is RunLocation.HERE:
        budget = Budget(seconds=seconds, output_bytes=ctx.options.shell_output_bytes)
        result = ctx.shell.run(command, budget=budget, on_start=ctx.on_stop)
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
    if ctx.where is not RunLocation.HERE and result.truncated:
        metadata["output_lost"] = True
    return result, metadata


def _cwd(ctx: ToolContext) -> str:
    return ctx.shell.cwd if ctx.where is RunLocation.HERE else ctx.workspace.mount


def _status_problem(result: ShellResult, gist: str) -> RunProblem | None:
    if result.error_code is not None:
        return RunProblem(result.error_code, result.message or "")
    if result.exit_code == 0:
        return None
    message = f"Command exited with status {result.exit_code}"
    return RunProblem(_STATUS, f"{message}: {gist}" if gist else message)
