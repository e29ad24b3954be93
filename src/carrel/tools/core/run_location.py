"""Where the commands and the code of a role run: in this process, or in the session's container.

Only the operator can allow containers (`containers.tools`). A container can read and change every file of
the workspace and run any program of its image. So only roles that may write and run code use it, and only
when no part of the workspace is withheld from them. All other roles run here, on a view that enforces what
they may do.
"""

from __future__ import annotations

from carrel.errors import AccessError
from carrel.policy.roles import Role
from carrel.policy.rules import Access
from carrel.tools.core.options import ResolvedOptions
from carrel.tools.core.spec import RunLocation
from carrel.workspace.workspace import Workspace


def role_run_location(role: Role, options: ResolvedOptions) -> RunLocation:
    """Return where commands and code of *role* run on a whole workspace."""
    settings = options.containers
    if settings is None or options.allowed_paths or options.stateful:
        return RunLocation.HERE
    if not (role.may_write and role.may_run_code):
        return RunLocation.HERE
    return RunLocation.CONTAINER if settings.network == "none" else RunLocation.NETWORKED


def workspace_run_location(workspace: Workspace, role: Role, options: ResolvedOptions) -> RunLocation:
    """Return where commands and code run on *workspace*: only a fully writable one goes to a container."""
    location = role_run_location(role, options)
    if location is not RunLocation.HERE and not _is_fully_writable(workspace):
        return RunLocation.HERE
    return location


def _is_fully_writable(workspace: Workspace) -> bool:
    if workspace.within is not None:
        return False
    try:
        workspace.gate.permit(Access.WRITE, ".")
    except AccessError:
        return False
    return True
