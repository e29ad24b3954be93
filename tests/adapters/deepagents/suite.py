"""The suite of LangChain for sandbox backends, run with our backend by `tests/adapters/peer_suite.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from carrel import WorkspaceManager
from carrel.adapters.deepagents import CarrelBackend


class TestCarrelBackend(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CarrelBackend]:
        root: Path = tmp_path_factory.mktemp("sessions")
        with WorkspaceManager(root) as manager, manager.create("suite") as workspace:
            yield CarrelBackend(workspace)

    @property
    def sandbox_root_dir(self) -> str:
        return "/workspace/suite"
