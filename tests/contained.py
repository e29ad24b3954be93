"""Sessions whose programs run in containers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from carrel.config.settings import ContainerSettings
from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.container.runtime import ContainerRuntime
from carrel.runtimes.result import SandboxResult
from carrel.sandbox.container import ContainerSandbox
from carrel.sandbox.workspace_source import SessionSource
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB, Limits
from carrel.workspace.workspace import Workspace
from tests.engines import PYTHON, require_engine


class Contained:
    """A directory of sessions, and what runs in their containers."""

    def __init__(self, root: Path, **settings: Any) -> None:  # the fields of the settings are of many types
        self.root = root / "sessions"
        self.address = settings.pop("address", None) or require_engine()
        given = {"image": PYTHON, "memory_bytes": 128 * MIB, **settings, "address": self.address}
        self.settings = ContainerSettings(**given)
        self.state = root / "state"
        self.manager = WorkspaceManager(self.root, containers=self.settings)
        self.runtime = self.another()

    def another(self) -> ContainerRuntime:
        """A runtime of its own, as another process would have."""
        return ContainerRuntime(self.settings, state=lambda: self.state)

    def new(
        self, session_id: str | None = None, *, limits: Limits | None = None, **policy: Any
    ) -> ContainerSandbox:
        """A sandbox on a new session, with a policy of these fields."""
        with self.manager.create(session_id, limits=limits) as workspace:
            made = str(workspace.session_id)
        return self.get(made, **policy)

    def get(self, session_id: str, **policy: Any) -> ContainerSandbox:
        """A sandbox on a session that is there."""
        place = SessionSource(self.manager, session_id)
        given = ExecutionPolicy(**policy) if policy else None
        return ContainerSandbox(place, engine=self.runtime, policy=given)

    def open(self, sandbox: ContainerSandbox) -> Workspace:
        """The gate to the files of *sandbox*."""
        return self.manager.open(str(sandbox.session_id))

    def files(self, sandbox: ContainerSandbox) -> Path:
        """Where the host has them."""
        return self.root / str(sandbox.session_id)

    def container(self, sandbox: ContainerSandbox) -> Container:
        """Its container, as somebody else sees it."""
        engine = Engine.connect(self.address)
        keeper = Containers(engine, self.root / ".carrel" / "containers")
        found = keeper._find(str(sandbox.session_id))
        assert found is not None
        return found

    def close(self) -> None:
        """Remove all containers."""
        self.runtime.close()
        self.manager.close()
        for directory in (self.root / ".carrel" / "containers", self.state):
            if directory.exists():
                with Engine.connect(self.address) as engine:
                    keeper = Containers(engine, directory)
                    for key in keeper.known():
                        keeper.remove(key)


class Shared:
    """One session for many tests, whose files go after each."""

    def __init__(self, contained: Contained) -> None:
        self.contained = contained
        self.sandbox = contained.new("shared")

    def empty(self) -> ContainerSandbox:
        """The sandbox with no files."""
        for each in self.contained.files(self.sandbox).iterdir():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
        with self.contained.open(self.sandbox) as workspace:
            workspace.recount()
        return self.sandbox


def said(result: SandboxResult) -> str:
    """The output of a program that succeeded and did not complain."""
    assert (result.stderr, result.success, result.exit_code) == ("", True, 0), result.stderr
    return result.stdout
