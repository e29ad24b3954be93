"""What a command line or code printed and how it ended, as an answer; long ones come in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from carrel.tools.advice import ADVICE, Advice
from carrel.tools.context import Context
from carrel.tools.outputs import Output, Part
from carrel.tools.result import ToolResult

_GIST_CHARACTERS = 200


class Problem(NamedTuple):
    """Why something did not succeed."""

    code: str
    message: str


def output_of(
    asked: str, streams: Mapping[str, bytes], problem: Problem | None, metadata: Mapping[str, Any]
) -> Output:
    """What there is to tell about *asked*, which ended by *problem* or well."""
    if problem is None:
        return Output(asked=asked, streams=streams, success=True, error=None, metadata=metadata)
    text = problem.message[:1].upper() + problem.message[1:].rstrip(".")
    more = {"code": problem.code}
    if then := ADVICE.get(problem.code, Advice()).next:
        text = f"{text}. {then}"
        more["next"] = then
    return Output(asked=asked, streams=streams, success=False, error=text, metadata={**metadata, **more})


def gist(stderr: bytes) -> str:
    """The line of *stderr* that says most: of a traceback the last, else the first."""
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1 if lines[0].startswith("Traceback ") else 0].strip()[:_GIST_CHARACTERS]


def streams_answer(ctx: Context, output: Output) -> ToolResult:
    """The beginning of *output*: an object with each stream and `exit_code`."""
    return _streams(output, ctx.outputs.first(output, ctx.options.answer_bytes))


def streams_rest(ctx: Context, cursor: str, asked: str) -> ToolResult:
    """What comes next of an output whose beginning was given.

    Raises:
        ToolError: No answer gave that cursor, or it was given for something else.
        ToldError: The output is not kept any more.
    """
    return _streams(*ctx.outputs.rest(cursor, asked, ctx.options.answer_bytes))


def _streams(output: Output, part: Part) -> ToolResult:
    told = {**part.texts, "exit_code": output.metadata["exit_code"]}
    return _result(output, part, told)


def text_answer(ctx: Context, output: Output) -> ToolResult:
    """The beginning of *output*, which has one stream: its text."""
    return _text(output, ctx.outputs.first(output, ctx.options.answer_bytes))


def text_rest(ctx: Context, cursor: str, asked: str) -> ToolResult:
    """What comes next of a text whose beginning was given.

    Raises:
        ToolError: No answer gave that cursor, or it was given for something else.
        ToldError: The output is not kept any more.
    """
    return _text(*ctx.outputs.rest(cursor, asked, ctx.options.answer_bytes))


def _text(output: Output, part: Part) -> ToolResult:
    (text,) = part.texts.values()
    if part.next_cursor is not None:
        # Many clients hand on the text alone.
        more = f"[{part.left_bytes} bytes follow: repeat the call with cursor {part.next_cursor!r}]"
        text = text.removesuffix("\n") + f"\n{more}"
    return _result(output, part, text)


def _result(output: Output, part: Part, told: Any) -> ToolResult:
    metadata = dict(output.metadata)
    if part.next_cursor is not None:
        metadata |= {"truncated": True, "next_cursor": part.next_cursor}
    return ToolResult(success=output.success, output=told, error=output.error, metadata=metadata)
