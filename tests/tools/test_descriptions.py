"""What models are told of tools is what is in force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.tools.core.spec import Profile
from carrel.tools.profiles.agent.python_executor import PACKAGES
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement

BASHES = [Profile.AGENT, Profile.CODING, Profile.EDITOR]


def definition(toolbox: Toolbox, name: str) -> dict[str, Any]:
    return next(each for each in toolbox.schemas("anthropic") if each["name"] == name)


def description(toolbox: Toolbox, name: str) -> str:
    found = definition(toolbox, name)["description"]
    assert "{" not in found
    assert isinstance(found, str)
    return found


@requirement("R-26")
@pytest.mark.parametrize("profile", BASHES)
@pytest.mark.parametrize("pipelines", [False, True])
def test_bash_says_which_operators_work(workspace: Workspace, profile: Profile, pipelines: bool) -> None:
    workspace.mkdir("src")
    workspace.write("src/a.py", "# TODO\n# TODO too\n")
    with Toolbox(workspace, profile=profile, pipelines=pipelines) as toolbox:
        said = description(toolbox, "bash")
        example = said.partition("Example: ")[2].partition(". The working")[0]
        assert toolbox.call("bash", {"command": example}).text().splitlines()[0] == "src/a.py:1:# TODO"
        piped = toolbox.call("bash", {"command": "echo a | cat > b && cat b"})
        assert piped.success is pipelines
        assert ("joined by |, &&, || and ;" in said) is pipelines
        assert ("no |, &&, ;, redirections" in said) is not pipelines
        loop = toolbox.call("bash", {"command": "for each in a b; do echo $each; done"})
        assert not loop.success
        assert not toolbox.call("bash", {"command": "echo $(ls)"}).success


@requirement("R-26")
@pytest.mark.parametrize(
    ("profile", "argument", "usual", "capped"),
    [
        (Profile.AGENT, "timeout", (10, 30), (2, 2)),
        (Profile.CODING, "timeout_ms", (120_000, 600_000), (2500, 2500)),
    ],
)
def test_the_longest_timeout_of_commands_is_that_of_the_operator(
    workspace: Workspace, profile: Profile, argument: str, usual: tuple[int, int], capped: tuple[int, int]
) -> None:
    for seconds, expected in ((None, usual), (2.5, capped), (10_000, usual)):
        with Toolbox(workspace, profile=profile, shell_timeout_seconds=seconds) as toolbox:
            schema = definition(toolbox, "bash")["input_schema"]["properties"][argument]
            assert (schema["default"], schema["maximum"]) == expected
            ran = toolbox.call("bash", {"command": "true", argument: usual[1]})
            assert ran.metadata["timeout_seconds"] * (1000 if profile is Profile.CODING else 1) >= expected[1]


@requirement("R-26")
def test_the_longest_timeout_of_code_is_that_of_the_policy(workspace: Workspace) -> None:
    for policy, expected in (
        (None, (30, 60)),
        (ExecutionPolicy(timeout_seconds=7), (7, 7)),
        (ExecutionPolicy(timeout_seconds=0.5), (1, 1)),
        (ExecutionPolicy(timeout_seconds=200), (30, 60)),
    ):
        with Toolbox(workspace, policy=policy) as toolbox:
            schema = definition(toolbox, "python_executor")["input_schema"]["properties"]["timeout"]
            assert (schema["default"], schema["maximum"]) == expected


@requirement("R-26")
def test_python_says_how_much_memory_there_is_and_whether_variables_persist(workspace: Workspace) -> None:
    with Toolbox(workspace) as toolbox:
        said = description(toolbox, "python_executor")
    assert "128 MB of memory" in said
    assert "Variables do not persist between calls." in said
    policy = ExecutionPolicy(memory_bytes=256_000_000)
    with Toolbox(workspace, stateful=True, policy=policy) as toolbox:
        said = description(toolbox, "python_executor")
    assert "256 MB of memory" in said
    assert "Variables persist between calls." in said


@requirement("R-26")
def test_the_packages_that_python_names_are_in_the_guest(
    workspace: Workspace, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    code = f"import importlib.util, json; print(json.dumps([*filter(importlib.util.find_spec, {PACKAGES})]))"
    with Toolbox(workspace) as toolbox:
        said = description(toolbox, "python_executor")
        found = json.loads(toolbox.call("python_executor", {"code": code}).text())
    assert found == list(PACKAGES)
    assert ", ".join(PACKAGES) in said
