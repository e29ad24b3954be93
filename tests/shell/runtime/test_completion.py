"""Completions of a partly typed command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.shell.runtime.completion import complete
from carrel.shell.runtime.shell import BareShell
from carrel.workspace.workspace import Workspace


@pytest.fixture
def shell(workspace: Workspace, directory: Path) -> BareShell:
    (directory / "docs" / "deep").mkdir(parents=True)
    (directory / "my docs").mkdir()
    for name in (
        "data.txt",
        "a b.txt",
        "$x",
        "it's",
        ".hidden",
        "docs/one",
        "docs/.two",
        "my docs/in side",
        "#x",
    ):
        (directory / name).touch()
    return BareShell(workspace, pipelines=True, env={"HOT": "1"})


@pytest.mark.parametrize(
    "before", ["", "  ", "cat a | ", "cat a |", "pwd; ", "pwd && ", "pwd || ", "pwd\n; "]
)
def test_where_a_command_begins_commands_are_offered(shell: BareShell, before: str) -> None:
    assert complete(shell, before, "pw") == ["pwd "]
    assert complete(shell, before, "ex") == ["exit ", "export "]
    assert complete(shell, before, "zz") == []


def test_only_commands_that_may_be_run_are_offered(workspace: Workspace) -> None:
    shell = BareShell(workspace, commands={"export"})
    assert complete(shell, "", "ex") == ["export "]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("d", ["data.txt ", "docs/"]),
        ("docs", ["docs/"]),
        ("docs/", ["docs/deep/", "docs/one "]),
        ("docs/o", ["docs/one "]),
        ("docs/.", ["docs/.two "]),
        ("./d", ["./data.txt ", "./docs/"]),
        (".", [".hidden "]),
        (".h", [".hidden "]),
        ("a", ["a\\ b.txt "]),
        ("a\\ b", ["a\\ b.txt "]),
        ("my\\ docs/", ["my\\ docs/in\\ side "]),
        ("it", ["it\\'s "]),
        ("#", ["\\#x "]),
        ("\\$", ["\\$x "]),
        ("/workspace/da", ["/workspace/data.txt "]),
        ("~/da", ["~/data.txt "]),
        ("~/docs/o", ["~/docs/one "]),
        ("~docs/o", []),
        ("none/", []),
        ("data.txt/", []),
        ("zz", []),
    ],
)
def test_elsewhere_paths_are_offered(shell: BareShell, word: str, expected: list[str]) -> None:
    assert complete(shell, "cat ", word) == expected


def test_hidden_names_are_offered_only_if_that_was_typed(shell: BareShell) -> None:
    assert not any(each.startswith(".") for each in complete(shell, "cat ", ""))


def test_what_is_offered_is_read_back_as_the_name(shell: BareShell, directory: Path) -> None:
    offered = "".join(complete(shell, "cat ", ""))
    (command,) = shell.analyze(f"which {offered.replace('/', '/ ')}").commands
    assert {name.rstrip("/") for name in command[1:]} == {
        path.name for path in directory.iterdir() if not path.name.startswith(".")
    }


def test_paths_are_relative_to_the_working_directory(shell: BareShell) -> None:
    shell.run("cd docs")
    assert complete(shell, "cat ", "o") == ["one "]
    assert complete(shell, "cat ", "../da") == ["../data.txt "]


def test_after_a_redirect_paths_are_offered(shell: BareShell) -> None:
    assert complete(shell, "cat > ", "da") == ["data.txt "]
    assert complete(shell, "cat < ", "da") == ["data.txt "]


def test_variables_are_offered(shell: BareShell) -> None:
    assert complete(shell, "cat ", "$HO") == ["$HOME", "$HOT"]
    assert complete(shell, "", "$HOT") == ["$HOT"]
    shell.run("export HOP")
    assert complete(shell, "cat ", "$HO") == ["$HOME", "$HOT"]


def test_nothing_outside_is_offered(shell: BareShell, directory: Path, outside: Path) -> None:
    (directory / "out").symlink_to(outside)
    for word in (f"{outside}/", "../", "../outside/", "out/", "/", "/etc/"):
        assert complete(shell, "cat ", word) == []


def test_names_that_a_terminal_could_obey_are_not_offered(shell: BareShell, directory: Path) -> None:
    (directory / "x\x1b[2J").touch()
    Path(os.fsdecode(os.fsencode(directory) + b"/x\xff")).touch()
    (directory / "x1").touch()
    assert complete(shell, "cat ", "x") == ["x1 "]
