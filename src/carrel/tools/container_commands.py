"""Command lines in the container of a session; read by the image's own shell."""

from __future__ import annotations

from carrel.errors import ToolError
from carrel.shell.result import ShellResult
from carrel.tools.context import Context
from carrel.tools.ended import problem_of

MOST_BYTES = 2**17 - 1
"""The longest argument that Linux hands to a program."""
_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"'
"""Becomes the best shell that the image has; the command line is an argument, and no part of this text."""


def run_contained(ctx: Context, command: str, seconds: float) -> ShellResult:
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
    problem = None if result.trap_reason is None else problem_of(result, "Command", seconds, stderr)
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
    if size > MOST_BYTES:
        raise ToolError("arguments", f"Wrong arguments: 'command' must have at most {MOST_BYTES} bytes")
