"""Run commands and code, and stream their output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from carrel.fronts.grpc.call import RpcCall
from carrel.fronts.grpc.json_fields import render_json
from carrel.fronts.grpc.streams import PIECE_BYTES, closing_stream, slices
from carrel.fronts.json_document import convert_document
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.execution_request import CodeRequest, CommandRequest, ExecutionRequest

Events = AsyncIterator[messages.ExecutionEvent]


def execute_command_stream(call: RpcCall, request: messages.ExecuteCommandStreamRequest) -> Events:
    """Run a command line."""
    return _execute(
        call,
        request,
        lambda: CommandRequest(
            command=request.command,
            stdin=request.stdin,
            timeout_seconds=_timeout(request),
            shell=request.shell if request.HasField("shell") else None,
        ),
    )


def execute_python_stream(call: RpcCall, request: messages.ExecutePythonStreamRequest) -> Events:
    """Run Python code."""
    source = request.WhichOneof("source")
    return _execute(
        call,
        request,
        lambda: CodeRequest(
            code=request.code if source == "code" else None,
            file=request.file if source == "file" else None,
            argv=tuple(request.argv),
            env=dict(request.env),
            stdin=request.stdin,
            timeout_seconds=_timeout(request),
            cwd=request.cwd or None,
            name=request.name or None,
            stateful=request.stateful,
        ),
    )


async def cancel_execution(call: RpcCall, request: messages.CancelExecutionRequest) -> messages.EmptyResponse:
    """Cancel an execution; its readers receive the result."""
    call.service.execution(call.caller, request.session_id, request.execution_id).cancel()
    return messages.EmptyResponse()


def _timeout(request: Any) -> float | None:  # Any: one of the two messages
    return request.timeout_seconds if request.HasField("timeout_seconds") else None


async def _execute(
    call: RpcCall, request: Any, parse: Callable[[], ExecutionRequest]
) -> Events:  # Any: as above
    execution = await call.service.start(call.caller, request.session_id, parse(), role=call.role_of(request))
    event = messages.ExecutionEvent
    end = 0
    with execution.attached():
        try:
            yield event(execution_id=execution.id)
            async with closing_stream(execution.events()) as outputs:
                async for output in outputs:
                    end = output.offset - len(output.data)
                    for piece in slices(output.data, PIECE_BYTES):
                        end += len(piece)
                        is_out = output.stream == "stdout"
                        yield event(stdout=piece, offset=end) if is_out else event(stderr=piece, offset=end)
            result = await execution.result()
            document = await convert_document(execution.kept_bytes, lambda: render_json(result))
            yield event(result_json=document, offset=end)
        finally:
            if not execution.is_done:
                execution.cancel()
