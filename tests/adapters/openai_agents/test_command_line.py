"""Commands of the SDK in the shell of carrel."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents.sandbox import Manifest
from agents.sandbox.errors import ExecTimeoutError
from agents.sandbox.types import User

from carrel.adapters.openai_agents import CarrelSandboxClient
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import Budget
from tests.adapters.openai_agents.awaiting import awaited, started


@pytest.mark.parametrize(
    ("command", "shell", "printed"),
    [
        (("echo one | tee f && cat f",), True, b"one\none\n"),
        (("echo", "a  b", "$HOME"), True, b"a  b $HOME\n"),
        (("echo", "a; b", "$HOME", "it's", "*"), False, b"a; b $HOME it's *\n"),
        (("echo one; echo two",), ["bash", "-lc"], b"one\ntwo\n"),
        (("echo one; echo two",), ["/bin/zsh", "-c"], b"one\ntwo\n"),
        (("sh", "-c", "echo $HOME"), False, b"/workspace\n"),
        (("sh", "-c", 'echo "$1" $#', "sh", "a  b; c"), False, b"a  b; c 1\n"),
        (("cd d\npwd\ncd /\npwd",), True, b"/workspace/d\n/workspace/d\n"),
    ],
)
@awaited
async def test_commands_are_lines_or_words(
    client: CarrelSandboxClient, command: tuple[str, ...], shell: bool | list[str], printed: bytes
) -> None:
    async with started(client) as sandbox:
        await sandbox.mkdir("d")
        assert (await sandbox.exec(*command, shell=shell)).stdout == printed


@awaited
async def test_each_command_begins_at_the_top_with_the_variables_of_the_manifest(
    manager: WorkspaceManager,
) -> None:
    client = CarrelSandboxClient(manager, env={"A": "ours", "B": "ours"})
    manifest = Manifest.model_validate({"environment": {"value": {"B": "its"}}})
    async with await client.create(manifest=manifest) as sandbox:
        await sandbox.exec("mkdir d && cd d && export A=other")
        assert (await sandbox.exec("pwd && echo $A $B")).stdout == b"/workspace\nours its\n"


@awaited
async def test_what_is_missing_or_refused_has_a_status(client: CarrelSandboxClient) -> None:
    async with started(client) as sandbox:
        missing = await sandbox.exec("nosuch", "--flag", shell=False)
        assert (missing.exit_code, missing.stdout) == (127, b"")
        assert b"nosuch: command not found" in missing.stderr
        assert (await sandbox.exec("echo $(id)")).exit_code == 2
        assert (await sandbox.exec("bash", "-x", "f", shell=False)).exit_code == 127


@awaited
async def test_time_is_limited_by_whoever_gives_less(manager: WorkspaceManager) -> None:
    async with started(CarrelSandboxClient(manager)) as sandbox:
        with pytest.raises(ExecTimeoutError):
            await sandbox.exec("sleep 60", timeout=0.01)
    client = CarrelSandboxClient(manager, budget=Budget(seconds=0.01))
    async with started(client) as sandbox:
        for timeout in (None, 3600):
            with pytest.raises(ExecTimeoutError):
                await sandbox.exec("sleep 60", timeout=timeout)


@awaited
async def test_there_are_no_users(client: CarrelSandboxClient) -> None:
    async with started(client, f=b"") as sandbox:
        for call in (
            sandbox.exec("ls", user="eve"),
            sandbox.read(Path("f"), user=User(name="eve")),
            sandbox.rm("f", user="eve"),
        ):
            with pytest.raises(ValueError, match="no users"):
                await call
