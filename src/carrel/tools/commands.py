"""Command lines in the shell of a toolbox; the work behind every `bash`."""

from __future__ import annotations

from typing import Any

from carrel.errors import ToolError
from carrel.shell.budget import Budget
from carrel.shell.quoting import encode
from carrel.shell.result import ShellResult
from carrel.tools import printed
from carrel.tools.context import Context
from carrel.tools.outputs import Output
from carrel.tools.printed import Problem
from carrel.tools.result import ToolResult
from carrel.tools.spec import Where

_STATUS = "tool.status"
_ECHO_CHARACTERS = 1000
"""So much of a command line is told again."""


def run_streams(ctx: Context, command: str, *, seconds: float, cursor: str | None) -> ToolResult:
    """Run *command* in at most *seconds*; standard output and error come apart.

    With *cursor* nothing is run, and the answer goes on with what *command* printed before.

    Raises:
        ToolError: No answer gave that cursor, or it was given for another command.
        ToldError: The output is not kept any more.
    """
    if cursor is not None:
        return printed.streams_rest(ctx, cursor, command)
    result, metadata = _run(ctx, command, seconds)
    streams = {"stdout": result.stdout, "stderr": result.stderr}
    problem = _problem(result, printed.gist(result.stderr))
    return printed.streams_answer(ctx, printed.output_of(command, streams, problem, metadata))


def run_text(
    ctx: Context, command: str | None, *, restart: bool, seconds: float, cursor: str | None
) -> ToolResult:
    """Run *command*, or restart the shell, or both; standard output and error come as one text.

    Raises:
        ToolError: There is nothing to do, or no answer gave that cursor.
        ToldError: The output is not kept any more.
    """
    if command is not None and cursor is not None:
        return printed.text_rest(ctx, cursor, command)
    if restart:
        ctx.restart_shell()
        if command is None:
            return ToolResult(
                success=True, output="The shell has been restarted.", metadata={"cwd": _cwd(ctx)}
            )
    if command is None:
        raise ToolError("arguments", "Wrong arguments: 'command' is missing")
    return printed.text_answer(ctx, _as_text(ctx, command, seconds))


def _as_text(ctx: Context, command: str, seconds: float) -> Output:
    result, metadata = _run(ctx, command, seconds)
    stdout, stderr = result.stdout, result.stderr
    if result.message is not None:
        # The error says it already.
        stderr = stderr.removesuffix(encode(result.message) + b"\n")
    between = b"\n" if stdout and stderr and not stdout.endswith(b"\n") else b""
    return printed.output_of(command, {"text": stdout + between + stderr}, _problem(result, ""), metadata)


def _run(ctx: Context, command: str, seconds: float) -> tuple[ShellResult, dict[str, Any]]:
    most = ctx.options.shell_timeout_seconds
    seconds = seconds if most is None else min(seconds, most)
    if ctx.where is Where.HERE:
        budget = Budget(seconds=seconds, output_bytes=ctx.options.shell_output_bytes)
        result = ctx.shell.run(command, budget=budget, on_start=ctx.on_stop)
    else:
        result = _run_contained(ctx, command, seconds)
    metadata = {
        "command": command if len(command) <= _ECHO_CHARACTERS else f"{command[:_ECHO_CHARACTERS]}...",
        "cwd": result.cwd,
        "exit_code": result.exit_code,
        "duration_ms": round(result.duration_ms, 3),
        "timeout_seconds": seconds,
        "stdout_bytes": len(result.stdout),
        "stderr_bytes": len(result.stderr),
    }
    if ctx.where is not Where.HERE and result.truncated:
        metadata["output_lost"] = True
    return result, metadata


def _run_contained(ctx: Context, command: str, seconds: float) -> ShellResult:
    from carrel.tools.container_commands import run_contained

    return run_contained(ctx, command, seconds)


def _cwd(ctx: Context) -> str:
    return ctx.shell.cwd if ctx.where is Where.HERE else ctx.workspace.mount


def _problem(result: ShellResult, gist: str) -> Problem | None:
    if result.error_code is not None:
        return Problem(result.error_code, result.message or "")
    if result.exit_code == 0:
        return None
    message = f"Command exited with status {result.exit_code}"
    return Problem(_STATUS, f"{message}: {gist}" if gist else message)
