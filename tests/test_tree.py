"""The root of the repository holds what belongs there, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NAMES = {
    *(".ci", ".dockerignore", ".editorconfig", ".gitignore"),
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"),
    *("Dockerfile", "Makefile", "compose.yaml", "constraints.txt", "pyproject.toml", "zensical.toml"),
    *("bench", "docs", "scripts", "src", "tests"),
}


def test_the_root_holds_only_known_names() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tops = {path.partition("/")[0] for path in listed.split("\0") if path and (ROOT / path).exists()}
    assert tops == NAMES
