"""The table of all methods and their handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from carrel.fronts.grpc.handlers import executions, files, sessions, tools
from carrel.fronts.grpc.handlers.tools import tool_handler

Handler = Callable[..., Any]
"""Takes an `RpcCall` and a message or a stream of messages; returns an awaitable message, or a stream."""

METHODS: Mapping[str, Mapping[str, Handler]] = {
    "SandboxService": {
        "FileRead": tool_handler("file_read"),
        "FileWrite": tool_handler("file_write"),
        "FileList": tool_handler("file_list"),
        "FileSearch": tool_handler("file_search"),
        "FileEdit": tool_handler("file_edit"),
        "FileDelete": tool_handler("file_delete"),
        "ExecuteCommand": tool_handler("bash"),
        "ExecutePython": tool_handler("python_executor"),
        "CallTool": tools.call_tool,
        "CallToolStream": tools.call_tool_stream,
        "ListTools": tools.list_tools,
        "FileReadStream": files.file_read_stream,
        "FileWriteStream": files.file_write_stream,
        "ExecuteCommandStream": executions.execute_command_stream,
        "ExecutePythonStream": executions.execute_python_stream,
        "CancelExecution": executions.cancel_execution,
        "Changes": files.changes,
        "Walk": files.walk,
        "Archive": files.archive,
        "Extract": files.extract,
    },
    "WorkspaceService": {
        "CreateSession": sessions.create_session,
        "EnsureSession": sessions.ensure_session,
        "GetSession": sessions.get_session,
        "ListSessions": sessions.list_sessions,
        "ExtendSession": sessions.extend_session,
        "ResetSession": sessions.reset_session,
        "DeleteSession": sessions.delete_session,
        "Call": sessions.run_operation,
    },
}
"""Handlers by service and method name, as in the proto file."""
