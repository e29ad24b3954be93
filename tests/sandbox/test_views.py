"""A guest on a view sees and changes no more than the view; and whoever watches sees what it writes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode
from carrel.sandbox.factory import create_sandbox
from carrel.sandbox.shell import Shell
from carrel.sandbox.workspace_source import OpenWorkspaceSource
from carrel.workspace.workspace import Workspace
from tests.sandbox.house import said
from tests.workspace.planting import plant, snapshot

CHANGES = """
import os, pathlib, shutil
def attempt(action):
    try:
        action()
    except OSError as error:
        print(type(error).__name__)
    else:
        print("done")
attempt(lambda: open("f", "w"))
attempt(lambda: open("f", "r+"))
attempt(lambda: open("f", "a").write("x"))
attempt(lambda: open("new", "x"))
attempt(lambda: os.mkdir("d2"))
attempt(lambda: os.remove("f"))
attempt(lambda: os.rename("f", "g"))
attempt(lambda: os.rmdir("empty"))
attempt(lambda: shutil.rmtree("d"))
attempt(lambda: shutil.copy("f", "g"))
"""


def test_a_guest_changes_nothing_in_a_read_only_view(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f", "d/g", "empty/")
    before = snapshot(directory)
    result = create_sandbox(workspace=workspace.narrowed(mode=AccessMode.READ_ONLY)).execute(CHANGES)
    assert "done" not in result.stdout.split()
    assert len(result.stdout.split()) == 10
    assert snapshot(directory) == before


@pytest.mark.parametrize("mount", ["/workspace", "/app"])
def test_a_guest_sees_only_what_a_view_shows(mount: str, workspace: Workspace, directory: Path) -> None:
    plant(
        directory,
        "allowed/f",
        "allowed/deep/er/g",
        "allowed/over => ../secret/f",
        "secret/f = secret data",
        "top",
    )
    view = workspace.narrowed(within=["allowed", "missing"])
    sandbox = create_sandbox(workspace=view, policy=ExecutionPolicy(guest_mount_path=mount))
    code = f"""
import os
print(sorted(os.listdir(".")), sorted(os.listdir("{mount}/allowed")))
print([sorted(files) for _, _, files in os.walk("{mount}/allowed/deep")])
open("allowed/new", "w").write("made")
for path in ("top", "secret/f", "nothing", "allowed/over", "allowed/../secret/f", "/workspace/top", "new"):
    for mode in "rw":
        try:
            print(open(path, mode).read())
        except OSError as error:
            print(type(error).__name__, end=" ")
print(os.path.exists("secret"), os.path.exists("nothing"))
"""
    result = sandbox.execute(code)
    told = said(result).split("\n")
    assert told[0] == "['allowed', 'missing'] ['deep', 'f', 'new', 'over']".replace("'new', ", "")
    assert told[1] == "[[], ['g']]"
    assert "secret data" not in result.stdout
    assert told[2].endswith("False False")
    assert told[2].count("Error") == 14
    assert result.files_created == ["allowed/new"]
    assert result.workspace_path == ""
    assert [path for path in snapshot(directory) if "new" in path] == ["allowed/new"]


def test_a_view_that_shows_nothing_runs_a_guest_all_the_same(workspace: Workspace) -> None:
    view = workspace.narrowed(within=["a"]).narrowed(within=["b"])
    assert said(create_sandbox(workspace=view).execute("print(1)")) == "1\n"


def test_variables_are_not_shared_with_a_workspace_that_lay_where_this_one_lies(workspace: Workspace) -> None:
    place = OpenWorkspaceSource(workspace)
    view = workspace.narrowed()
    assert place.key(view) == place.key(view) != place.key(workspace)
    keys = set()
    for _ in range(50):
        view = workspace.narrowed()
        keys.add(place.key(view))
    assert len(keys) == 50


# Watching


def test_whoever_watches_sees_what_a_guest_writes(workspace: Workspace) -> None:
    sandbox = create_sandbox(workspace=workspace)
    with workspace.gate.watching() as events:
        result = sandbox.execute("open('a', 'w').write('x')")
        asyncio.run(sandbox.aexecute("open('b', 'w').write('x')"))
    assert result.files_created == ["a"]
    assert {event.path for event in events} == {"a", "b"}


def test_whoever_watches_sees_every_stage_of_a_pipeline(workspace: Workspace) -> None:
    shell = Shell(workspace, pipelines=True)
    write = 'python -c \'open("z", "w").write("x")\''
    with workspace.gate.watching() as outer:
        with workspace.gate.watching() as events:
            result = shell.run(
                f"echo a | tee x; echo b > y; {write} | cat; touch w | cat; seq 300000 > large"
            )
        shell.run("touch later")
        asyncio.run(shell.arun("touch awaited"))
    shell.run("touch last")
    assert result.exit_code == 0
    assert {event.path for event in events} == {"x", "y", "z", "w", "large"}
    assert {event.path for event in outer} == {"x", "y", "z", "w", "large", "later", "awaited"}
