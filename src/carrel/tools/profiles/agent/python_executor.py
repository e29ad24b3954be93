"""`python_executor`: run Python code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from carrel.errors import TextError
from carrel.runtimes.result import SandboxResult
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import fit_values
from carrel.tools.core.schema import Param
from carrel.tools.core.spec import MAX_CODE_SECONDS
from carrel.tools.results.changes import MAX_CHANGES, MAX_CHANGES_BYTES
from carrel.tools.results.run_output import run_outcome, run_problem, streams_result
from carrel.values import ToolResult

PACKAGES = (
    *(
        "numpy",
        "pandas",
        "scipy",
        "sklearn",
        "statsmodels",
        "sympy",
        "matplotlib",
        "seaborn",
        "networkx",
        "PIL",
    ),
    *("openpyxl", "xlsxwriter", "pypdf", "reportlab", "lxml", "bs4", "yaml"),
)
"""The packages of the guest that models ask for most, by the names that are imported."""
PYTHON_EXECUTOR_NOTES = (
    f"It runs in a sandbox, in the workspace, with the standard library, {', '.join(PACKAGES)} and others;"
    " without network, processes or pip, and with {memory} of memory. {state} Files that it"
    " may not write can still be read."
)
PYTHON_EXECUTOR_CONTAINER_NOTES = (
    "It runs with the Python of the session's container, {network}, in the workspace; its output is"
    " returned. Modules and programs are those of the container's image. {state} Processes that it leaves"
    " running are ended."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonExecutorArgs:
    """Arguments of `python_executor`."""

    code: Annotated[
        str, Param("Python source; what it prints and the value of a last expression are returned")
    ]
    timeout: Annotated[
        int, Param("Time limit in seconds", minimum=1, maximum=300, capped_by="code_seconds")
    ] = 30
    stdin: Annotated[str, Param("Standard input of the code")] = ""
    cursor: Annotated[
        str | None,
        Param("next_cursor from a truncated result, to continue from there; the code is not run again"),
    ] = None


def run_python_executor(ctx: ToolContext, args: PythonExecutorArgs) -> ToolResult:
    """Run the code and report its output and the files it changed."""
    if not args.code.strip():
        raise AdvisedError("tool.arguments", "No code provided to execute", next="Give the code.")
    if args.cursor is not None:
        return streams_result(ctx.next_page(args.cursor, args.code))
    sandbox = ctx.python
    seconds = min(args.timeout, MAX_CODE_SECONDS, sandbox.policy.timeout_seconds)
    try:
        result = sandbox.execute(
            args.code,
            stdin=args.stdin,
            timeout_seconds=seconds,
            cwd=ctx.workspace.mount,
            on_start=ctx.on_stop,
            show_last_value=True,
            on_output=ctx.on_output,
        )
    except TextError as error:
        raise AdvisedError(error.code, error.message, next="Write such characters as escapes.") from None
    streams = {"stdout": _encode(result.stdout), "stderr": _encode(result.stderr)}
    problem = run_problem(result, "Code", seconds, streams["stderr"])
    metadata = _metadata(ctx, result, seconds)
    if args.timeout > seconds:
        metadata["timeout_capped"] = True
    return streams_result(ctx.first_page(run_outcome(args.code, streams, problem, metadata)))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _metadata(ctx: ToolContext, result: SandboxResult, seconds: float) -> dict[str, Any]:
    """Return the metadata of the result; it contains nothing about the host."""
    metadata: dict[str, Any] = {
        "exit_code": result.exit_status,
        "duration_ms": round(result.duration_ms, 3),
        "timeout_seconds": seconds,
        "trap_reason": None if result.trap_reason is None else str(result.trap_reason),
        "memory_used_bytes": result.memory_used_bytes,
        "stdout_bytes": len(_encode(result.stdout)),
        "stderr_bytes": len(_encode(result.stderr)),
    }
    left_out = 0
    for name in ("files_created", "files_modified", "files_deleted"):
        paths = getattr(result, name)
        metadata[name] = fit_values(map(ctx.display_path, paths[:MAX_CHANGES]), MAX_CHANGES_BYTES)
        left_out += len(paths) - len(metadata[name])
    if left_out:
        metadata["files_left_out"] = left_out
    if result.fuel_consumed is not None:
        metadata["fuel_consumed"] = result.fuel_consumed
    for name in ("stdout_truncated", "stderr_truncated", "lost_writes", "state_lost"):
        if value := result.metadata.get(name):
            metadata[name] = value
    return metadata
