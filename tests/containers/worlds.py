"""The worlds of attacks and races, in a directory of the host that a container has at `/workspace`.

The host looks at everything from beneath; whatever is tried goes through `ContainerFiles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from carrel.containers.files import ContainerFiles
from carrel.policy.rules import SandboxPolicy
from carrel.workspace.workspace import Workspace
from tests.attack.world import World
from tests.contract.slots import Slot, take_slot
from tests.race.arena import Arena, quiet


@dataclass(slots=True, kw_only=True)
class ContainerWorld(World):
    """A world whose workspace is files in a container."""

    slot: Slot

    def _open(self) -> Workspace:
        self.root.mkdir()
        inside = f"{self.slot.outer}/{self.base.name}/parent/ROOT"
        return on_container(ContainerFiles(self.slot.container, inside), self)


def on_container(files: ContainerFiles, world: ContainerWorld | None = None) -> Workspace:
    """A workspace on files in a container."""
    policy = SandboxPolicy.for_workspace("/workspace")
    if world is None:
        return Workspace(files, policy=policy, logger=quiet())
    return Workspace(files, policy=policy, limits=world.limits)


class ContainerArena(Arena):
    """An arena whose workspace is files in a container."""

    def __init__(self, kind: str = "container") -> None:
        self.slot = take_slot(kind)
        super().__init__(self.slot.base / "arena", "container")

    def _open(self, confinement: str, *, session: bool) -> Workspace:
        (self.top / "ws").mkdir(parents=True)
        return on_container(ContainerFiles(self.slot.container, f"{self.slot.outer}/arena/ws"))

    def _inside(self) -> Path:
        return self.top / "ws"
