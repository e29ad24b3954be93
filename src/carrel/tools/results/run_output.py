"""The output of a command line or of code as a result, in pages, and why a run failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.tools.core.advice import ADVICE, Advice
from carrel.tools.core.context import ToolContext
from carrel.tools.core.pagination import KeptOutput, OutputPage
from carrel.tools.core.result import ToolResult

_GIST_CHARACTERS = 200


class RunProblem(NamedTuple):
    """Why something did not succeed."""

    code: str
    message: str


def output_of(
    asked: str, streams: Mapping[str, bytes], problem: RunProblem | None, metadata: Mapping[str, Any]
) -> KeptOutput:
    """What there is to tell about *asked*, which ended by *problem* or well."""
    if problem is None:
        return KeptOutput(asked=asked, streams=streams, success=True, error=None, metadata=metadata)
    text = problem.message[:1].upper() + problem.message[1:].rstrip(".")
    more = {"code": problem.code}
    if then := ADVICE.get(problem.code, Advice()).next:
        text = f"{text}. {then}"
        more["next"] = then
    return KeptOutput(asked=asked, streams=streams, success=False, error=text, metadata={**metadata, **more})


def gist(stderr: bytes) -> str:
    """The line of *stderr* that says most: of a traceback the last, else the first."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1 if lines[0].startswith("Traceback ") else 0].strip()[:_GIST_CHARACTERS]


def streams_answer(ctx: ToolContext, output: KeptOutput) -> ToolResult:
    """The beginning of *output*: an object with each stream and `exit_code`."""
    return _streams(output, ctx.outputs.first(output, ctx.options.answer_bytes))


def streams_rest(ctx: ToolContext, cursor: str, asked: str) -> ToolResult:
    """What comes next of an output whose beginning was given.

    Raises:
        ToolError: No answer gave that cursor, or it was given for something else.
        ToldError: The output is not kept any more.
    """
    return _streams(*ctx.outputs.rest(cursor, asked, ctx.options.answer_bytes))


def _streams(output: KeptOutput, part: OutputPage) -> ToolResult:
    told = {**part.texts, "exit_code": output.metadata["exit_code"]}
    return _result(output, part, told)


def text_answer(ctx: ToolContext, output: KeptOutput) -> ToolResult:
    """The beginning of *output*, which has one stream: its text."""
    return _text(output, ctx.outputs.first(output, ctx.options.answer_bytes))


def text_rest(ctx: ToolContext, cursor: str, asked: str) -> ToolResult:
    """What comes next of a text whose beginning was given.

    Raises:
        ToolError: No answer gave that cursor, or it was given for something else.
        ToldError: The output is not kept any more.
    """
    return _text(*ctx.outputs.rest(cursor, asked, ctx.options.answer_bytes))


def _text(output: KeptOutput, part: OutputPage) -> ToolResult:
    (text,) = part.texts.values()
    if part.next_cursor is not None:
        # Many clients hand on the text alone.
        more = f"[{part.left_bytes} bytes follow: repeat the call with cursor {part.next_cursor!r}]"
        text = text.removesuffix("\n") + f"\n{more}"
    return _result(output, part, text)


def _result(output: KeptOutput, part: OutputPage, told: Any) -> ToolResult:
    metadata = dict(output.metadata)
    if part.next_cursor is not None:
        metadata |= {"truncated": True, "next_cursor": part.next_cursor}
    return ToolResult(success=output.success, output=told, error=output.error, metadata=metadata)


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
"""The codes of runs that were ended; any other failed by itself."""


def run_problem(result: SandboxResult, what: str, seconds: float, stderr: bytes) -> RunProblem | None:
    """Why *what*, which had so many *seconds*, did not succeed; `None` if it did."""
    reason = result.trap_reason
    if result.success:
        return None
    if reason is TrapReason.TIMEOUT:
        return RunProblem("limit.time", f"{what} timed out after {seconds:g}s")
    if reason is not None:
        told = str(result.metadata.get("message") or reason).splitlines()[-1].removeprefix("carrel: ")
        return RunProblem(_CODES.get(reason, "tool.status"), told)
    message = f"{what} exited with status {result.exit_code}"
    said = gist(stderr)
    return RunProblem("tool.status", f"{message}: {said}" if said else message)
