"""Patterns mean what deepagents says that they mean."""

from __future__ import annotations

import pytest

from carrel.adapters.deepagents import CarrelBackend
from carrel.workspace.workspace import Workspace
from tests.adapters.deepagents.results import lines, paths


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "d/.h/c.py", "d/b.py"]),
        ("/*.py", ["a.py"]),
        ("d/*.py", ["d/b.py"]),
        ("**/*.py", ["a.py", "d/b.py"]),
        ("d/.h/*.py", ["d/.h/c.py"]),
        ("**/.*/*.py", ["d/.h/c.py"]),
        ("*.{py,md}", ["a.py", "d/.h/c.py", "d/b.py", "d/r.md"]),
        (".*", [".env"]),
        ("*", ["a.py", "d/.h/c.py", "d/b.py", "d/r.md"]),
        ("[ab].py", ["a.py", "d/b.py"]),
        ("[!a].py", ["d/.h/c.py", "d/b.py"]),
        ("?.md", ["d/r.md"]),
        ("d", []),
    ],
)
def test_patterns_mean_what_deepagents_says(
    backend: CarrelBackend, workspace: Workspace, pattern: str, found: list[str]
) -> None:
    for name in ("a.py", ".env", "d/b.py", "d/r.md", "d/.h/c.py"):
        workspace.write(name, "needle\n")
    whole = [f"/workspace/{name}" for name in found]
    assert sorted(paths(backend.glob(pattern))) == whole
    assert sorted(path for path, _, _ in lines(backend.grep("needle", glob=pattern))) == whole


def test_patterns_begin_at_the_place_that_is_searched(backend: CarrelBackend) -> None:
    backend.write("/d/e/f.py", "x")
    assert paths(backend.glob("/e/*.py", "/d")) == ["/workspace/d/e/f.py"]
    assert paths(backend.glob("d/**", "/d")) == []
    assert lines(backend.grep("x", "/d", "e/*.py")) == [("/workspace/d/e/f.py", 1, "x")]
    assert lines(backend.grep("x", "/d/e/f.py", "*.md")) == [("/workspace/d/e/f.py", 1, "x")]


def test_bad_patterns_are_errors_not_raised(backend: CarrelBackend) -> None:
    for pattern in ("../*.py", "", "{1..1000000}"):
        assert "pattern" in str(backend.glob(pattern).error)
        assert "pattern" in str(backend.grep("x", glob=pattern).error)
    assert "empty" in str(backend.grep("").error)
