"""A session is a workspace that nothing in it can leave, and one gate through which everything goes."""

TYPE_CHECKING = False
"""Type checkers read it as true; importing it from `typing` would load two dozen modules."""

__all__ = [
    "AccessMode",
    "AsyncWorkspace",
    "CarrelError",
    "FileInfo",
    "Limits",
    "PathRule",
    "SandboxLogger",
    "SandboxPolicy",
    "Workspace",
    "WorkspaceManager",
    "delete_session_path",
    "delete_session_workspace",
    "list_session_files",
    "read_session_file",
    "write_session_file",
]

if TYPE_CHECKING:
    from carrel.audit.logger import SandboxLogger
    from carrel.errors import CarrelError
    from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
    from carrel.values import FileInfo, Limits
    from carrel.workspace.aio import AsyncWorkspace
    from carrel.workspace.session_files import (
        delete_session_path,
        delete_session_workspace,
        list_session_files,
        read_session_file,
        write_session_file,
    )
    from carrel.workspace.sessions import WorkspaceManager
    from carrel.workspace.workspace import Workspace
else:
    _HOMES = {
        "AccessMode": "carrel.policy.rules",
        "AsyncWorkspace": "carrel.workspace.aio",
        "CarrelError": "carrel.errors",
        "FileInfo": "carrel.values",
        "Limits": "carrel.values",
        "PathRule": "carrel.policy.rules",
        "SandboxLogger": "carrel.audit.logger",
        "SandboxPolicy": "carrel.policy.rules",
        "Workspace": "carrel.workspace.workspace",
        "WorkspaceManager": "carrel.workspace.sessions",
        "delete_session_path": "carrel.workspace.session_files",
        "delete_session_workspace": "carrel.workspace.session_files",
        "list_session_files": "carrel.workspace.session_files",
        "read_session_file": "carrel.workspace.session_files",
        "write_session_file": "carrel.workspace.session_files",
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
