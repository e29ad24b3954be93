"""Where the commands and the code of a role run: in this process, or in the session's container.

Only the operator lets them run in containers (`containers.tools`). A container sees all files of the
workspace and may change them, and runs any program of its image. So only those roles are let in that may
write and run code anyhow, and only where no part of the workspace is kept from them. All others stay here,
on a view that holds them to what they may.
"""

from __future__ import annotations

from carrel.errors import AccessError
from carrel.policy.roles import Role
from carrel.policy.rules import Access
from carrel.tools.core.options import ResolvedOptions
from carrel.tools.core.spec import RunLocation
from carrel.workspace.workspace import Workspace


def role_run_location(role: Role, chosen: ResolvedOptions) -> RunLocation:
    """Where those of *role* run, as it is configured and chosen."""
    settings = chosen.containers
    if settings is None or chosen.allowed_paths or chosen.stateful:
        return RunLocation.HERE
    if not (role.may_write and role.may_run_code):
        return RunLocation.HERE
    return RunLocation.CONTAINER if settings.network == "none" else RunLocation.NETWORKED


def workspace_run_location(workspace: Workspace, role: Role, chosen: ResolvedOptions) -> RunLocation:
    """The same for one workspace: one that may not be changed as a whole is given to no container."""
    where = role_run_location(role, chosen)
    if where is not RunLocation.HERE and not _is_free(workspace):
        return RunLocation.HERE
    return where


def _is_free(workspace: Workspace) -> bool:
    """Whether all of the workspace may be changed."""
    if workspace.within is not None:
        return False
    try:
        workspace.gate.permit(Access.WRITE, ".")
    except AccessError:
        return False
    return True
