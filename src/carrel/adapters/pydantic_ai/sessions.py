"""`CarrelSessions`: gives every run of an agent a session, and takes up the one of an earlier run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef

from carrel.adapters.pydantic_ai.workspace import PROVIDER, CarrelWorkspace

Deps = TypeVar("Deps")


@dataclass
class CarrelSessions(AbstractCapability[Deps]):
    """Gives every run a session: that of the conversation if it has one, a new one if not.

    >>> Agent(model, capabilities=[CarrelSessions()])

    A reference comes with the messages of a conversation. Whoever lets others hand in messages checks that
    the session in them is theirs, or gives the workspace of a run by `workspace=` instead.
    """

    make: Callable[[WorkspaceRef | None], CarrelWorkspace] = CarrelWorkspace
    """Names the workspace of a run, by a reference if there is one; nothing is opened by it."""

    def get_workspace(self, ctx: RunContext[Deps], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        """The workspace of a run, unless the reference is somebody else's."""
        if ref is not None and ref.provider != PROVIDER:
            return None
        return self.make(ref)
