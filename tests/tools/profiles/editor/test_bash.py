"""`bash` as Claude models know it: a command or a restart, and one text as the answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.start_signal import LONG, StartSignal


@pytest.fixture
def box(workspace: Workspace) -> Toolbox:
    return Toolbox(workspace, profile="editor", pipelines=True)


def test_the_schema_is_that_of_the_tool(box: Toolbox) -> None:
    (bash,) = (tool for tool in box.tools() if tool.name == "bash")
    schema = bash.load().parameters.schema()
    assert list(schema["properties"]) == ["command", "restart", "cursor"]
    assert schema["required"] == []


def test_output_and_errors_are_one_text(box: Toolbox) -> None:
    result = box.call("bash", {"command": "echo out; cat missing; printf end"})
    assert (result.success, result.output) == (
        True,
        "out\nend\ncat: missing: No such file or directory\n",
    )
    assert result.text() == result.output


def test_a_status_that_is_not_0_is_reported(box: Toolbox) -> None:
    result = box.call("bash", {"command": "echo out; cat missing"})
    assert (result.success, result.code, result.metadata["exit_code"]) == (False, "tool.status", 1)
    assert result.output == "out\ncat: missing: No such file or directory\n"
    assert result.error == "Command exited with status 1"
    assert result.text().endswith("Command exited with status 1")


def test_a_line_that_is_refused_is_reported_once(box: Toolbox) -> None:
    result = box.call("bash", {"command": "echo $(id)"})
    assert (result.success, result.code, result.output) == (False, "shell.metacharacter", "")
    assert result.text().count("not allowed") == 1


def test_a_restart_forgets_where_the_shell_was(box: Toolbox) -> None:
    assert box.call("bash", {"command": "mkdir d; cd d; A=1; pwd"}).output == "/workspace/d\n"
    assert box.call("bash", {"command": "pwd; echo $A"}).output == "/workspace/d\n1\n"
    result = box.call("bash", {"restart": True})
    assert (result.success, result.output) == (True, "The shell has been restarted.")
    assert result.metadata == {"cwd": "/workspace"}
    assert box.call("bash", {"command": "pwd; echo $A"}).output == "/workspace\n\n"
    box.call("bash", {"command": "cd d"})
    assert box.call("bash", {"command": "pwd", "restart": True}).output == "/workspace\n"


def test_a_restart_stops_what_runs(directory: Path) -> None:
    started = StartSignal()
    with started.workspace(directory) as workspace, ThreadPoolExecutor(1) as pool:
        box = Toolbox(workspace, profile="editor", pipelines=True)
        running = pool.submit(box.call, "bash", {"command": LONG})
        started.wait()
        assert box.call("bash", {"restart": True}).success
        assert running.result().code == "shell.cancelled"


def test_a_call_without_command_and_restart_is_refused(box: Toolbox) -> None:
    for arguments in ({}, {"restart": False}, {"cursor": "x"}, None):
        result = box.call("bash", arguments)
        assert (result.success, result.code) == (False, "tool.arguments")
        assert "'command' is missing" in (result.error or "")


def test_a_long_text_is_cut_and_says_how_to_continue(workspace: Workspace) -> None:
    box = Toolbox(workspace, profile="editor", answer_bytes=100)
    call: dict[str, str] = {"command": "seq 1 100"}
    texts = []
    while True:
        result = box.call("bash", call)
        cursor = result.metadata.get("next_cursor")
        if cursor is None:
            texts.append(result.output)
            break
        text, _, note = result.output.rpartition("\n")
        assert note.endswith(f" bytes follow: repeat the call with cursor {cursor!r}]")
        texts.append(f"{text}\n")
        call["cursor"] = cursor
    assert "".join(texts) == "".join(f"{number}\n" for number in range(1, 101))
    assert len(texts) == 3


def test_a_model_reads_the_beginning_and_the_end_of_a_long_text(workspace: Workspace) -> None:
    box = Toolbox(workspace, profile="editor", answer_bytes=100)
    text = box.call("bash", {"command": "seq 1 100"}).text()
    assert text.startswith("1\n2\n")
    assert text.endswith("\n99\n100\n")
    note = text[text.index("[Cut: ") :].partition("\n")[0]
    assert "lines are left out here. To read them, repeat the call with cursor '" in note
    rest = box.call("bash", {"command": "seq 1 100", "cursor": note.split("'")[1]})
    before = text.partition("\n[Cut")[0].split("\n")
    assert rest.text().startswith(f"{int(before[-1]) + 1}\n")
    assert rest.text().endswith("]")


def test_a_command_that_prints_nothing_says_so(workspace: Workspace) -> None:
    result = Toolbox(workspace, profile="editor").call("bash", {"command": "true"})
    assert (result.output, result.text()) == ("", "[No output]")


def test_the_operator_s_ceiling_of_time_holds(workspace: Workspace) -> None:
    box = Toolbox(workspace, profile="editor", shell_timeout_seconds=0.05)
    result = box.call("bash", {"command": "sleep 1000"})
    assert (result.code, result.output) == ("limit.time", "")
    assert "timed out after 0.05s" in (result.error or "")
