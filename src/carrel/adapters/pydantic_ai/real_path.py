"""Where a path leads once its links are followed, as the shell of the workspace sees it."""

from __future__ import annotations

from carrel.shell.budget import Budget, Meter
from carrel.shell.context import Shared, State
from carrel.shell.execution import Execution
from carrel.shell.resolution import Missing, resolve
from carrel.workspace.workspace import Workspace


def real_path(workspace: Workspace, path: str) -> str:
    """The absolute *path* without links; nothing of it need exist, and what is elsewhere is not looked at.

    Raises:
        EscapeError: It leads out of the workspace.
        LoopError: It goes through too many links.
    """
    state = State(workspace.mount)
    shared = Shared(workspace, python=None, operator=None, allowed=())
    looking = Execution(shared, state, Meter(Budget())).looking(state)
    return resolve(looking, path, Missing.ALL)
