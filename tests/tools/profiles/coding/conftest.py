"""The tools that coding models know, for a developer on a workspace on disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace


@pytest.fixture
def coding(workspace: Workspace) -> Iterator[Toolbox]:
    """The tools as they are without any configuration."""
    with Toolbox(workspace, "developer", profile="coding") as toolbox:
        yield toolbox
