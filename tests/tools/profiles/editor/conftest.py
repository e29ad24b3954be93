"""The text editor, for a developer on a workspace on disk."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace


@pytest.fixture
def editor(workspace: Workspace) -> Iterator[Toolbox]:
    """The tools as they are without any configuration."""
    with Toolbox(workspace, "developer", profile="editor") as toolbox:
        yield toolbox
