"""Commands and code, and what they print as they print it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from carrel.fronts.grpc.call import Call
from carrel.fronts.grpc.json_text import render_json
from carrel.fronts.grpc.stream import ended, slices
from carrel.fronts.json_document import converted
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.work import Code, Command, Work

PIECE_BYTES = 2**14

Events = AsyncIterator[messages.ExecutionEvent]


def execute_command_stream(call: Call, request: messages.ExecuteCommandStreamRequest) -> Events:
    """Run a command line."""
    return _executed(
        call,
        request,
        lambda: Command(
            command=request.command,
            stdin=request.stdin,
            timeout_seconds=_timeout(request),
            shell=request.shell if request.HasField("shell") else None,
        ),
    )


def execute_python_stream(call: Call, request: messages.ExecutePythonStreamRequest) -> Events:
    """Run Python code."""
    source = request.WhichOneof("source")
    return _executed(
        call,
        request,
        lambda: Code(
            code=request.code if source == "code" else None,
            file=request.file if source == "file" else None,
            argv=tuple(request.argv),
            env=dict(request.env),
            stdin=request.stdin,
            timeout_seconds=_timeout(request),
            stateful=request.stateful,
        ),
    )


async def cancel_execution(call: Call, request: messages.CancelExecutionRequest) -> messages.EmptyResponse:
    """Stop what runs; whoever follows it is told how it ended."""
    call.service.execution(call.caller, request.session_id, request.execution_id).cancel()
    return messages.EmptyResponse()


def _timeout(request: Any) -> float | None:  # Any: one of the two messages
    return request.timeout_seconds if request.HasField("timeout_seconds") else None


async def _executed(call: Call, request: Any, work: Callable[[], Work]) -> Events:  # Any: as above
    execution = await call.service.start(call.caller, request.session_id, work(), role=call.role_of(request))
    event = messages.ExecutionEvent
    end = 0
    with execution.attached():
        try:
            yield event(execution_id=execution.id)
            async with ended(execution.events()) as outputs:
                async for output in outputs:
                    end = output.offset - len(output.data)
                    for piece in slices(output.data, PIECE_BYTES):
                        end += len(piece)
                        is_out = output.stream == "stdout"
                        yield event(stdout=piece, offset=end) if is_out else event(stderr=piece, offset=end)
            result = await execution.result()
            document = await converted(execution.kept_bytes, lambda: render_json(result))
            yield event(result_json=document, offset=end)
        finally:
            if not execution.is_done:
                execution.cancel()
