"""`exists`: a plain yes or no, and what it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.tools.profiles.files.answers import data, done, refused


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("f", "file"),
        ("d", "directory"),
        ("d/", "directory"),
        (".", "directory"),
        ("/workspace/d/g", "file"),
        ("to_file", "file"),
        ("to_directory", "directory"),
        ("pipe", "other"),
        ("missing", None),
        ("f/below", None),
        ("f/", None),
        ("missing/below", None),
        ("nowhere", None),
        ("loop", None),
    ],
)
def test_the_answer_is_yes_or_no(files: Toolbox, directory: Path, path: str, kind: str | None) -> None:
    tree(directory, "f", "d/g", "to_file => f", "to_directory => d", "nowhere => missing", "loop => loop")
    os.mkfifo(directory / "pipe")
    answer = done(files, "exists", path=path)
    assert answer.data == {"exists": kind is not None, "type": kind}
    assert ("path" in answer.metadata) == (kind is not None)


def test_what_lies_outside_is_answered_alike_whether_it_exists_or_not(
    files: Toolbox, directory: Path, outside: Path
) -> None:
    tree(directory, f"there => {outside}/secret", f"gone => {outside}/missing")
    errors = {
        refused(files, "exists", code, path=path).to_json().replace(path, "PATH")
        for code, path in (
            ("access.outside", str(outside / "secret")),
            ("access.outside", str(outside / "missing")),
        )
    }
    assert len(errors) == 1
    links = {
        refused(files, "exists", "path.escape", path=path).to_json().replace(path, "PATH")
        for path in ("there", "gone")
    }
    assert len(links) == 1


def test_asking_changes_nothing(files: Toolbox, directory: Path) -> None:
    assert data(files, "exists", path="a/b/c") == {"exists": False, "type": None}
    assert os.listdir(directory) == []
