"""The output of a command line or of code as a result, page by page, and why a run failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.tools.core.advice import ADVICE, Advice, as_sentence
from carrel.tools.core.pagination import KeptOutput, ShownPage
from carrel.values import ToolResult

_SUMMARY_CHARACTERS = 200
_NEWLINE = "\n"
_LOST = ("output_lost", "stdout_truncated", "stderr_truncated")
"""Metadata of runs that printed more than the runtime keeps."""


class RunProblem(NamedTuple):
    """Why a run failed: an error code and a message."""

    code: str
    message: str


def run_outcome(
    source: str, streams: Mapping[str, bytes], problem: RunProblem | None, metadata: Mapping[str, Any]
) -> KeptOutput:
    """Return the output of *source*, a command line or code, with the error for *problem*, if any."""
    if problem is None:
        return KeptOutput(source=source, streams=streams, success=True, error=None, metadata=metadata)
    error = as_sentence(problem.message)
    metadata = {**metadata, "code": problem.code}
    if next_step := ADVICE.get(problem.code, Advice()).next:
        error = f"{error}. {next_step}"
        metadata["next"] = next_step
    return KeptOutput(source=source, streams=streams, success=False, error=error, metadata=metadata)


def stderr_summary(stderr: bytes) -> str:
    """Return the most telling line of *stderr*: the last of a traceback, otherwise the first."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1 if lines[0].startswith("Traceback ") else 0].strip()[:_SUMMARY_CHARACTERS]


def streams_result(shown_page: ShownPage) -> ToolResult:
    """Return a page as an object with each stream and `exit_code`; a model reads one text."""
    page, shown, _ = shown_page
    text, stderr = shown["stdout"], shown["stderr"]
    # The error of a run that failed often contains all that it printed there.
    if stderr and stderr.strip() not in (page.output.error or ""):
        text = f"{text.removesuffix(_NEWLINE)}{_NEWLINE if text else ''}[stderr]\n{stderr}"
    exit_code = page.output.metadata["exit_code"]
    return _page_result(shown_page, {**page.texts, "exit_code": exit_code}, text)


def text_result(shown_page: ShownPage) -> ToolResult:
    """Return a page of an output with a single stream as text."""
    page, shown, _ = shown_page
    (text,) = page.texts.values()
    (shown_text,) = shown.values()
    if page.note is not None:
        # Many clients pass on the text without the metadata.
        text = f"{text.removesuffix(_NEWLINE)}\n{page.note}"
    return _page_result(shown_page, text, shown_text)


def _page_result(shown_page: ShownPage, content: Any, text: str) -> ToolResult:
    """Return a result with *content* for programs, of which a model reads *text*."""
    page, output = shown_page.page, shown_page.page.output
    metadata = dict(output.metadata)
    if page.next_cursor is not None:
        metadata |= {"truncated": True, "next_cursor": page.next_cursor}
    if shown_page.note is not None:
        text = f"{text.removesuffix(_NEWLINE)}\n{shown_page.note}"
    elif any(metadata.get(name) for name in _LOST):
        metadata["note"] = "[Cut: the output exceeded its limit, and what followed is lost]"
    if not text and output.success:
        text = "[No output]"
    return ToolResult(
        success=output.success,
        output=content,
        error=output.error,
        metadata=metadata,
        model_text=None if text == content else text,
    )


_CODES: Mapping[TrapReason, str] = {
    TrapReason.TIMEOUT: "limit.time",
    TrapReason.CANCELLED: "limit.time",
    TrapReason.MEMORY: "limit.memory_bytes",
    TrapReason.FUEL: "limit.fuel",
    TrapReason.FILE_OPERATIONS: "limit.file_operations",
    TrapReason.STACK: "limit.stack",
    TrapReason.QUOTA: "quota.bytes",
    TrapReason.ENGINE: "runtime.failed",
}
"""Error codes of runs that the runtime ended; all other failures are `tool.status`."""


def run_problem(result: SandboxResult, noun: str, seconds: float, stderr: bytes) -> RunProblem | None:
    """Return why a run with a timeout of *seconds* failed; `None` if it succeeded.

    *noun* names what ran in the message, as in "Code timed out".
    """
    reason = result.trap_reason
    if result.success:
        return None
    if reason is TrapReason.TIMEOUT:
        return RunProblem("limit.time", f"{noun} timed out after {seconds:g}s")
    if reason is not None:
        message = str(result.metadata.get("message") or reason).splitlines()[-1].removeprefix("carrel: ")
        return RunProblem(_CODES.get(reason, "tool.status"), message)
    message = f"{noun} exited with status {result.exit_code}"
    summary = stderr_summary(stderr)
    return RunProblem("tool.status", f"{message}: {summary}" if summary else message)
