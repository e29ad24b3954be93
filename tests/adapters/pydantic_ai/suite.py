"""The suite that Pydantic AI publishes for workspaces, on ours; run by `peer_suite.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from carrel.adapters.pydantic_ai import CarrelWorkspace
from carrel.sessions.manager import WorkspaceManager

NEEDS_PROCESSES = frozenset({
    "test_background_child_does_not_hold_up_completed_command",
    "test_cancellation_stops_foreground_work",
    "test_destroying_environment_during_command_raises_unavailable",
    "test_permission_denied_uses_builtin_error",
})  # fmt: skip
"""What asks for jobs, process ids, loops or `chmod`; for all others the shell passes as a real one."""


class TestCarrelWorkspace(WorkspaceBackendSuite):
    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def manager(self, tmp_path: Path) -> Iterator[WorkspaceManager]:
        with WorkspaceManager(tmp_path / "sessions") as manager:
            yield manager

    @pytest.fixture
    def attach_backend(self, manager: WorkspaceManager) -> Callable[[WorkspaceRef], WorkspaceBackend]:
        return lambda ref: CarrelWorkspace(ref, manager=manager)

    @pytest.fixture
    def fresh_backend(self, manager: WorkspaceManager) -> Callable[[], WorkspaceBackend]:
        return lambda: CarrelWorkspace(manager=manager)

    @pytest.fixture
    def backend(self, fresh_backend: Callable[[], WorkspaceBackend]) -> WorkspaceBackend:
        return fresh_backend()

    @pytest.fixture
    def destroy_environment(self, manager: WorkspaceManager) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert backend.ref is not None
            manager.delete_workspace(backend.ref.id)

        return destroy

    @pytest.fixture
    def has_real_posix_shell(self, request: pytest.FixtureRequest) -> bool:
        return request.function.__name__ not in NEEDS_PROCESSES
