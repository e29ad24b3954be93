"""`list_allowed_directories`: where files may be used, and never where they lie on the host."""

from __future__ import annotations

from pathlib import Path

from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def test_it_is_the_workspace(mcp: Toolbox, directory: Path) -> None:
    answer = done(mcp, "list_allowed_directories")
    assert answer.output == "Allowed directories:\n/workspace"
    assert str(directory) not in answer.to_json()


def test_it_is_only_what_may_be_used_of_the_workspace(workspace: Workspace) -> None:
    mcp = Toolbox(workspace, profile="mcp", allowed_paths=["out", "/workspace/data/in"])
    said_so = said(mcp, "list_allowed_directories")
    assert said_so == "Allowed directories:\n/workspace/data/in\n/workspace/out"


def test_other_paths_of_the_policy_are_shown_as_they_are_named(directory: Path, outside: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, allow=[PathRule(str(outside), AccessMode.READ_ONLY)])
    with Workspace.open(directory, policy=policy) as workspace:
        mcp = Toolbox(workspace, profile="mcp")
        answer = done(mcp, "list_allowed_directories")
        assert answer.metadata["directories"] == ["/workspace", str(outside)]
        assert said(mcp, "read_text_file", path=f"{outside}/secret") == "secret data"


def test_it_takes_no_arguments(mcp: Toolbox) -> None:
    refused(mcp, "list_allowed_directories", "tool.arguments", path=".")
