"""All methods: which function answers which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from carrel.fronts.grpc import execution_streams, file_streams, session_calls, tool_calls
from carrel.fronts.grpc.tool_calls import tool_call

Function = Callable[..., Any]
"""Takes a `Call` and a message or a stream of them; gives a message to wait for, or a stream of them."""

METHODS: Mapping[str, Mapping[str, Function]] = {
    "SandboxService": {
        "FileRead": tool_call("file_read"),
        "FileWrite": tool_call("file_write"),
        "FileList": tool_call("file_list"),
        "FileSearch": tool_call("file_search"),
        "FileEdit": tool_call("file_edit"),
        "FileDelete": tool_call("file_delete"),
        "ExecuteCommand": tool_call("bash"),
        "ExecutePython": tool_call("python_executor"),
        "CallTool": tool_calls.call_tool,
        "ListTools": tool_calls.list_tools,
        "FileReadStream": file_streams.file_read_stream,
        "FileWriteStream": file_streams.file_write_stream,
        "ExecuteCommandStream": execution_streams.execute_command_stream,
        "ExecutePythonStream": execution_streams.execute_python_stream,
        "CancelExecution": execution_streams.cancel_execution,
        "Changes": file_streams.changes,
        "Walk": file_streams.walk,
        "Archive": file_streams.archive,
        "Extract": file_streams.extract,
    },
    "WorkspaceService": {
        "CreateSession": session_calls.create_session,
        "EnsureSession": session_calls.ensure_session,
        "GetSession": session_calls.get_session,
        "ListSessions": session_calls.list_sessions,
        "ExtendSession": session_calls.extend_session,
        "ResetSession": session_calls.reset_session,
        "DeleteSession": session_calls.delete_session,
        "Call": session_calls.run_operation,
    },
}
"""By service and name, as the proto file has them."""
