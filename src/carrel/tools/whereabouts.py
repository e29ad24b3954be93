"""Where the commands and the code of a role run: here, or in the container of the session.

Only the operator lets them run in containers (`containers.tools`). A container sees all files of the
workspace and may change them, and runs any program of its image. So only those roles are let in that may
write and run code anyhow, and only where no part of the workspace is kept from them. All others stay here,
on a view that holds them to what they may.
"""

from __future__ import annotations

from carrel.errors import AccessError
from carrel.policy.roles import Role
from carrel.policy.rules import Access
from carrel.tools.options import Chosen
from carrel.tools.spec import Where
from carrel.workspace.workspace import Workspace


def where_for(role: Role, chosen: Chosen) -> Where:
    """Where those of *role* run, as it is configured and chosen."""
    settings = chosen.containers
    if settings is None or chosen.allowed_paths or chosen.stateful:
        return Where.HERE
    if not (role.may_write and role.may_run_code):
        return Where.HERE
    return Where.CONTAINER if settings.network == "none" else Where.NETWORKED


def where_on(workspace: Workspace, role: Role, chosen: Chosen) -> Where:
    """The same for one workspace: one that may not be changed as a whole is given to no container."""
    where = where_for(role, chosen)
    if where is not Where.HERE and not _is_free(workspace):
        return Where.HERE
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
