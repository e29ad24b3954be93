"""Sessions for AI agents: confined workspaces, with one gate that checks and records every operation."""

TYPE_CHECKING = False
"""True for type checkers. It is defined here because `typing` would load two dozen modules."""

__all__ = [
    "AccessMode",
    "AsyncClient",
    "AsyncWorkspace",
    "AsyncWorkspaceManager",
    "BaseSandbox",
    "Budget",
    "CarrelError",
    "Client",
    "ContainerSandbox",
    "ExecutionPolicy",
    "FileInfo",
    "Limits",
    "PathRule",
    "PythonSandbox",
    "Role",
    "RuntimeType",
    "SandboxLogger",
    "SandboxPolicy",
    "SandboxResult",
    "Shell",
    "ShellResult",
    "ToolImage",
    "ToolOutput",
    "ToolResult",
    "Toolbox",
    "Workspace",
    "WorkspaceManager",
    "connect",
    "create_sandbox",
    "create_session_sandbox",
    "delete_session_path",
    "delete_session_workspace",
    "get_session_sandbox",
    "list_session_files",
    "read_session_file",
    "write_session_file",
]

if TYPE_CHECKING:
    from carrel.audit.logger import SandboxLogger
    from carrel.errors import CarrelError
    from carrel.policy.execution import ExecutionPolicy
    from carrel.policy.roles import Role
    from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
    from carrel.remote.client import AsyncClient, Client, connect
    from carrel.runtimes.api import RuntimeType
    from carrel.runtimes.result import SandboxResult
    from carrel.sandbox.container import ContainerSandbox
    from carrel.sandbox.factory import create_sandbox, create_session_sandbox, get_session_sandbox
    from carrel.sandbox.sandbox import BaseSandbox, PythonSandbox
    from carrel.sandbox.shell import Shell
    from carrel.sessions.aio import AsyncWorkspaceManager
    from carrel.sessions.functions import (
        delete_session_path,
        delete_session_workspace,
        list_session_files,
        read_session_file,
        write_session_file,
    )
    from carrel.sessions.manager import WorkspaceManager
    from carrel.shell.budget import Budget
    from carrel.shell.result import ShellResult
    from carrel.tools.toolbox import Toolbox
    from carrel.values import FileInfo, Limits, ToolImage, ToolOutput, ToolResult
    from carrel.workspace.aio import AsyncWorkspace
    from carrel.workspace.workspace import Workspace
else:
    _HOMES = {
        "AccessMode": "carrel.policy.rules",
        "AsyncClient": "carrel.remote.client",
        "AsyncWorkspace": "carrel.workspace.aio",
        "AsyncWorkspaceManager": "carrel.sessions.aio",
        "BaseSandbox": "carrel.sandbox.sandbox",
        "Budget": "carrel.shell.budget",
        "CarrelError": "carrel.errors",
        "Client": "carrel.remote.client",
        "ContainerSandbox": "carrel.sandbox.container",
        "ExecutionPolicy": "carrel.policy.execution",
        "FileInfo": "carrel.values",
        "Limits": "carrel.values",
        "PathRule": "carrel.policy.rules",
        "PythonSandbox": "carrel.sandbox.sandbox",
        "Role": "carrel.policy.roles",
        "RuntimeType": "carrel.runtimes.api",
        "SandboxLogger": "carrel.audit.logger",
        "SandboxPolicy": "carrel.policy.rules",
        "SandboxResult": "carrel.runtimes.result",
        "Shell": "carrel.sandbox.shell",
        "ShellResult": "carrel.shell.result",
        "ToolImage": "carrel.values",
        "ToolOutput": "carrel.values",
        "ToolResult": "carrel.values",
        "Toolbox": "carrel.tools.toolbox",
        "Workspace": "carrel.workspace.workspace",
        "WorkspaceManager": "carrel.sessions.manager",
        "connect": "carrel.remote.client",
        "create_sandbox": "carrel.sandbox.factory",
        "create_session_sandbox": "carrel.sandbox.factory",
        "delete_session_path": "carrel.sessions.functions",
        "delete_session_workspace": "carrel.sessions.functions",
        "get_session_sandbox": "carrel.sandbox.factory",
        "list_session_files": "carrel.sessions.functions",
        "read_session_file": "carrel.sessions.functions",
        "write_session_file": "carrel.sessions.functions",
    }

    def __getattr__(name):
        """Load a public name on first use, so that `import carrel` stays light."""
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'carrel' has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(home), name)
        return value

    def __dir__():
        return sorted([*globals(), *__all__])
