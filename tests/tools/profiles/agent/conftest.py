"""The tools of a developer on a workspace on disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace


@pytest.fixture
def tools(workspace: Workspace) -> Iterator[Toolbox]:
    """The tools as they are without any configuration."""
    with Toolbox(workspace, "developer") as toolbox:
        yield toolbox
