"""`bash` and `python_executor` in the container of a session, for those roles that may do anything there."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.policy.rules import AccessMode
from carrel.sandbox.engines import engines
from carrel.sessions.containers import locks_dir
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.core.formats import Format
from carrel.tools.core.spec import Profile
from carrel.tools.operations.commands import MAX_ARGUMENT_BYTES
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace
from tests.engines import PYTHON, require_engine
from tests.tools.calls import UNTIL_GO

ROLES = {
    "developer": ("file_read", "file_write", "file_list", "bash", "python_executor"),
    "critic": ("file_read", "file_list", "bash"),
    "runner": ("bash", "python_executor"),
    "writer": ("file_write", "bash"),
}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkspaceManager]:
    address = require_engine()
    root = tmp_path_factory.mktemp("tools") / "sessions"
    with WorkspaceManager(root) as manager:
        yield manager
    engines().close()
    with Engine.connect(address) as engine:
        assert Containers(engine, locks_dir(root)).known() == []


@pytest.fixture(scope="module")
def session(sessions: WorkspaceManager) -> Iterator[Workspace]:
    """One for all tests, as each takes a container; they use different files."""
    with sessions.create("one") as workspace:
        workspace.write("start.txt", b"here\n")
        yield workspace


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_CONTAINER_ENGINE", require_engine())
    monkeypatch.setenv("CARREL_CONTAINER_IMAGE", PYTHON)
    monkeypatch.setenv("CARREL_CONTAINER_TOOLS", "yes")


@pytest.fixture
def toolbox(session: Workspace) -> Iterator[Toolbox]:
    with Toolbox(session) as made:
        yield made


def bash(toolbox: Toolbox, command: str, **arguments: Any) -> ToolResult:
    return toolbox.call("bash", {"command": command, **arguments})


def is_contained(toolbox: Toolbox) -> bool:
    """Whether commands see the whole of a system."""
    result = bash(toolbox, "ls /proc/self/status")
    assert result.success or "outside workspace" in str(result.error)
    return result.success


# What runs there


def test_a_command_is_one_of_the_image_in_the_workspace(toolbox: Toolbox) -> None:
    assert is_contained(toolbox)
    result = bash(toolbox, "pwd; id -u; cat start.txt | tr a-z A-Z; echo wrong >&2; exit 3")
    user = 65532 if os.geteuid() == 0 else os.geteuid()
    assert result.output == {
        "stdout": f"/workspace\n{user}\nHERE\n",
        "stderr": "wrong\n",
        "exit_code": 3,
    }
    assert not result.success
    assert result.error == "Command exited with status 3: wrong"
    assert result.metadata["code"] == "tool.status"
    assert (result.metadata["cwd"], result.metadata["stderr_bytes"]) == ("/workspace", 6)


def test_a_command_line_is_no_part_of_ours(toolbox: Toolbox) -> None:
    result = bash(toolbox, "echo \"$0\" \"$#\" '$1' \"'\"; printf '%s' 'a\nb'")
    assert result.output["stdout"] == "sh 0 $1 '\na\nb"


def test_what_a_command_changes_is_reported_and_counted(toolbox: Toolbox, session: Workspace) -> None:
    before = session.usage().disk_bytes
    result = bash(toolbox, "mkdir made; printf 12345 >made/file; rm -f nothing")
    assert result.success
    told = {(each["action"], each["path"]) for each in result.metadata["changes"]}
    assert told == {("created", "/workspace/made"), ("created", "/workspace/made/file")}
    assert session.usage().disk_bytes == before + 5
    assert session.read("made/file") == b"12345"


def test_there_is_no_network_and_the_root_cannot_be_written(toolbox: Toolbox) -> None:
    result = bash(toolbox, "ls /sys/class/net; touch /etc/x")
    assert result.output["stdout"] == "lo\n"
    assert "Read-only file system" in result.output["stderr"]


def test_nothing_lasts_but_files(toolbox: Toolbox) -> None:
    bash(toolbox, "cd /tmp; export LASTS=1; echo kept >/tmp/lasts; sleep 1000 &")
    assert bash(toolbox, 'pwd; echo "[$LASTS]"; cat /tmp/lasts').output["stdout"] == "/workspace\n[]\nkept\n"


def test_a_long_answer_is_cut_and_continues_without_another_run(session: Workspace) -> None:
    with Toolbox(session, answer_bytes=4000) as toolbox:
        command = "date >>times; i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done"
        first = bash(toolbox, command)
        assert first.metadata["truncated"]
        text, rest = first.output["stdout"], first
        while cursor := rest.metadata.get("next_cursor"):
            rest = bash(toolbox, command, cursor=cursor)
            text += rest.output["stdout"]
    assert text == "".join(f"line {number}\n" for number in range(1000))
    assert session.read("times").count(b"\n") == 1


def test_more_output_than_there_may_be_is_lost_and_that_is_reported(session: Workspace) -> None:
    with Toolbox(session, shell_output_bytes=1000) as toolbox:
        result = bash(toolbox, "yes | head -c 100000; echo done >&2")
    assert result.success
    assert result.output["stdout"] == "y\n" * 500
    assert result.output["stderr"] == "done\n"
    assert result.metadata["output_lost"] is True


def test_a_command_that_takes_too_long_is_ended(toolbox: Toolbox) -> None:
    result = bash(toolbox, "echo begun; sleep 1000", timeout=1)
    assert result.metadata["code"] == "limit.time"
    assert result.error is not None
    assert result.error.startswith("Command timed out after 1s")
    assert result.output["stdout"] == "begun\n"
    assert result.output["exit_code"] == 124


def test_a_task_that_is_cancelled_ends_its_command(
    toolbox: Toolbox, session: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(toolbox.acall("bash", {"command": "echo x >begun; sleep 1000"}))
        while not session.exists("begun"):
            assert not task.done(), task.result()
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with caplog.at_level(logging.INFO, "carrel"):
        asyncio.run(cancelled())
    (ended,) = (text for text in caplog.messages if text.startswith("execution.complete"))
    assert "trap_reason=cancelled" in ended


@pytest.mark.parametrize(
    "command", ["echo \0", "echo \ud800", "x" * (MAX_ARGUMENT_BYTES + 1)], ids=["nul", "surrogate", "long"]
)
def test_what_no_program_can_be_given_is_refused(toolbox: Toolbox, command: str) -> None:
    result = bash(toolbox, command)
    assert result.metadata["code"] == "tool.arguments"


def test_python_is_that_of_the_image(toolbox: Toolbox, session: Workspace) -> None:
    code = "import os, subprocess, sys; print(sys.platform, os.getcwd(), input())\n"
    code += "subprocess.run(['touch', 'by-python']);"
    result = toolbox.call("python_executor", {"code": code, "stdin": "said"})
    assert result.output == {"stdout": "linux /workspace said\n", "stderr": "", "exit_code": 0}
    assert result.metadata["files_created"] == ["/workspace/by-python"]
    assert session.exists("by-python")
    failed = toolbox.call("python_executor", {"code": "1 / 0"})
    assert failed.error == "Code exited with status 1: ZeroDivisionError: division by zero"
    assert toolbox.call("python_executor", {"code": "x = 20\nx + 1"}).output["stdout"] == "21\n"


@pytest.mark.parametrize("profile", [Profile.EDITOR, Profile.CODING])
def test_a_shell_that_is_restarted_has_an_empty_tmp(session: Workspace, profile: Profile) -> None:
    with Toolbox(session, profile=profile) as toolbox:
        assert bash(toolbox, "echo out; echo err >&2; echo x >/tmp/here; cd /").output == "out\nerr\n"
        restarted = toolbox.call("bash", {"restart": True})
        assert (restarted.output, restarted.metadata["cwd"]) == (
            "The shell has been restarted.",
            "/workspace",
        )
        assert bash(toolbox, "ls -A /tmp; pwd").output == "/workspace\n"


# Who is not let in


@pytest.mark.parametrize("role", ["critic", "runner", "writer"])
def test_a_role_that_may_not_write_or_run_code_stays_here(session: Workspace, role: str) -> None:
    with Toolbox(session, role, roles=ROLES) as toolbox:
        assert not is_contained(toolbox)
        assert bash(toolbox, "cat start.txt").success
        if role != "writer":
            assert not bash(toolbox, "touch by-reader").success
            assert not session.exists("by-reader")
    if role == "runner":
        with Toolbox(session, role, roles=ROLES) as toolbox:
            told = toolbox.call("python_executor", {"code": "import sys; print(sys.platform)"})
            assert told.output["stdout"] == "wasi\n"
            assert not toolbox.call("python_executor", {"code": "open('by-reader', 'w')"}).success


def test_a_part_of_the_workspace_is_given_to_no_container(session: Workspace) -> None:
    session.write("part/f", b"f")
    with Toolbox(session, allowed_paths=["part"]) as toolbox:
        assert not is_contained(toolbox)
    with session.narrowed(within=["part"]) as view, Toolbox(view) as toolbox:
        assert not is_contained(toolbox)
    with session.narrowed(mode=AccessMode.READ_ONLY) as view, Toolbox(view) as toolbox:
        assert not is_contained(toolbox)
        assert not bash(toolbox, "touch by-view").success


@pytest.mark.parametrize(
    ("name", "value"),
    [("CARREL_CONTAINER_TOOLS", "no"), ("CARREL_CONTAINER_IMAGE", ""), ("CARREL_SANDBOX", "no")],
)
def test_without_the_operators_word_nothing_runs_there(
    session: Workspace, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with Toolbox(session) as toolbox:
        assert not is_contained(toolbox)


def test_no_option_of_a_toolbox_lets_it_in(session: Workspace) -> None:
    with pytest.raises(TypeError, match="containers"):
        Toolbox(session, containers=None)  # type: ignore[call-arg]  # that is the point


# What is told of them


def described(toolbox: Toolbox) -> dict[str, str]:
    return {each["name"]: each["description"] for each in toolbox.schemas(Format.ANTHROPIC)}


@pytest.mark.parametrize("profile", [Profile.AGENT, Profile.EDITOR, Profile.CODING])
def test_the_descriptions_say_where_it_runs(
    session: Workspace, monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    with Toolbox(session, profile=profile) as toolbox:
        told = described(toolbox)
    assert "in a Linux container of this session, without network, in the workspace" in told["bash"]
    assert "the programs are those of its image" in told["bash"]
    assert "help" not in told["bash"]
    for role in ("critic", "runner", "writer"):
        with Toolbox(session, role, profile=profile, roles=ROLES) as toolbox:
            assert "container" not in str(described(toolbox))
    monkeypatch.setenv("CARREL_CONTAINER_NETWORK", "bridge")
    with Toolbox(session, profile=profile) as toolbox:
        assert "in a network that its operator chose" in described(toolbox)["bash"]
        assert "{network}" not in str(described(toolbox))


def test_python_says_so_too(toolbox: Toolbox) -> None:
    told = described(toolbox)["python_executor"]
    assert "the Python of the session's container, without network" in told
    assert "sandbox" not in told


# The engine is away


def test_an_engine_that_does_not_answer_is_an_answer(
    session: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CARREL_CONTAINER_ENGINE", f"unix://{tmp_path}/nothing")
    with Toolbox(session) as toolbox:
        for name, arguments in (("bash", {"command": "ls"}), ("python_executor", {"code": "1"})):
            result = toolbox.call(name, arguments)
            assert result.metadata["code"] == "engine.missing"
            assert str(tmp_path) not in str(result)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"command": "echo begun; while [ ! -e go ]; do sleep 0.01; done; echo end"}),
        ("python_executor", {"code": UNTIL_GO}),
    ],
)
def test_output_comes_while_a_program_runs(
    session: Workspace, toolbox: Toolbox, tool: str, arguments: dict[str, object]
) -> None:
    output: list[bytes] = []

    def take(stream: str, data: bytes) -> None:
        output.append(data)
        session.write("go", "")

    result = asyncio.run(toolbox.acall(tool, arguments, on_output=take))
    session.remove("go")
    assert output[0] == b"begun\n"
    assert b"".join(output) == b"begun\nend\n"
    assert result.output["stdout"] == "begun\nend\n"
