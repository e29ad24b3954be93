"""Paths with and without the mount, and back again."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.adapters.deepagents import CarrelBackend
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.workspace.workspace import Workspace
from tests.adapters.deepagents.results import content, lines, paths


def test_a_path_means_the_same_with_and_without_the_mount(backend: CarrelBackend) -> None:
    assert backend.write("/a/b.txt", "one").path == "/workspace/a/b.txt"
    assert content(backend, "/workspace/a/b.txt") == content(backend, "/a//b.txt") == "one"
    assert paths(backend.ls("/")) == paths(backend.ls("/workspace/")) == ["/workspace/a"]
    assert backend.execute("cat /workspace/a/b.txt").output == "one"


def test_answers_begin_at_the_root_that_was_chosen(workspace: Workspace) -> None:
    backend = CarrelBackend(workspace, root="/")
    assert backend.write("/workspace/a/b.txt", "one\n").path == "/a/b.txt"
    assert paths(backend.ls("/workspace")) == ["/a"]
    assert paths(backend.glob("*.txt")) == ["/a/b.txt"]
    assert lines(backend.grep("one", "/a")) == [("/a/b.txt", 1, "one")]
    assert backend.edit("/a/b.txt", "one", "two").path == "/a/b.txt"
    assert backend.delete("/workspace/a").path == "/a"


def test_a_path_in_an_answer_always_leads_back(workspace: Workspace) -> None:
    """Also of a directory that is called like the mount."""
    backend = CarrelBackend(workspace, root="/")
    workspace.write("workspace/a.txt", "inner")
    workspace.write("a.txt", "outer")
    found = paths(backend.glob("a.txt"))
    assert found == ["/a.txt", "/workspace/workspace/a.txt"]
    assert [content(backend, path) for path in found] == ["outer", "inner"]
    assert backend.delete("/workspace/workspace").path == "/workspace/workspace"


def test_another_root_is_refused(workspace: Workspace) -> None:
    with pytest.raises(ValueError, match="must be '/' or '/workspace'"):
        CarrelBackend(workspace, root="/elsewhere")


def test_what_another_rule_allows_keeps_its_path(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    (shared / "words").mkdir(parents=True)
    (shared / "words/list.txt").write_text("apple\n")
    own.mkdir()
    policy = SandboxPolicy.for_workspace(own, allow=[PathRule(str(shared), AccessMode.READ_ONLY)])
    with Workspace.open(own, policy=policy) as workspace:
        for root in ("/", "/workspace"):
            backend = CarrelBackend(workspace, root=root)
            path = f"{shared}/words/list.txt"
            assert content(backend, path) == "apple\n"
            assert paths(backend.ls(str(shared))) == [f"{shared}/words"]
            assert lines(backend.grep("apple", str(shared))) == [(path, 1, "apple")]
            assert backend.write(path, "").error == f"File '{path}': permission_denied"
            assert backend.delete(path).error == f"File '{path}': permission_denied"
