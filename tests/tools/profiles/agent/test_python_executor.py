"""`python_executor` runs code in the guest, on the files that the role may use."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.tools.toolbox import Toolbox
from carrel.values import Limits, ToolResult
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.tools.start_signal import LONG_CODE, StartSignal

READER = {"reader": ("file_read", "bash", "python_executor")}
"""A role that runs code but does not write."""


@pytest.fixture(autouse=True)
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


@pytest.fixture
def box(workspace: Workspace) -> Toolbox:
    return Toolbox(workspace)


def python(box: Toolbox, code: str, **arguments: object) -> ToolResult:
    """Run code, and see that the answer is JSON and says nothing of the host."""
    result = box.call("python_executor", {"code": code, **arguments})
    answer = result.to_json()
    assert "workspace_path" not in answer
    assert "logs_dir" not in answer
    assert json.loads(answer)["success"] is result.success
    return result


def said(result: ToolResult) -> str:
    """What code printed that succeeded and did not complain."""
    assert (result.success, result.error, result.output["stderr"]) == (True, None, "")
    return str(result.output["stdout"])


# What it answers


def test_what_is_printed_comes_back_with_the_status(box: Toolbox) -> None:
    result = python(box, "print(sum(range(100)))")
    assert result.output == {"stdout": "4950\n", "stderr": "", "exit_code": 0}
    metadata = dict(result.metadata)
    assert metadata.pop("duration_ms") > 0
    assert metadata.pop("memory_used_bytes") > 0
    assert metadata == {
        "exit_code": 0,
        "timeout_seconds": 30,
        "trap_reason": None,
        "stdout_bytes": 5,
        "stderr_bytes": 0,
        "files_created": [],
        "files_modified": [],
        "files_deleted": [],
    }


def test_the_value_of_a_last_expression_is_shown(box: Toolbox) -> None:
    assert said(python(box, "x = 20\nprint('text')\nx + 1")) == "text\n21\n"
    assert said(python(box, "x = 20\nx + 1;")) == ""


def test_a_module_that_is_missing_is_the_reason(box: Toolbox) -> None:
    result = python(box, "import requests")
    assert "No module named 'requests': not available here" in (result.error or "")


@requirement("E-48")
@pytest.mark.parametrize("code", ["", " \n\t"])
def test_empty_code_is_refused(box: Toolbox, code: str) -> None:
    result = python(box, code)
    assert (result.success, result.code) == (False, "tool.arguments")
    assert (result.error or "").startswith("No code provided to execute")


def test_code_that_fails_reports_its_exception(box: Toolbox) -> None:
    result = python(box, "print('here')\n1/0")
    assert (result.success, result.code, result.output["exit_code"]) == (False, "tool.status", 1)
    assert result.error == "Code exited with status 1: ZeroDivisionError: division by zero"
    assert result.output["stdout"] == "here\n"
    assert result.output["stderr"].endswith("ZeroDivisionError: division by zero\n")
    assert python(box, "raise SystemExit(7)").error == "Code exited with status 7"


def test_it_begins_in_the_workspace_and_reads_what_it_is_given(box: Toolbox, workspace: Workspace) -> None:
    workspace.write("near.py", b"name = 'near'")
    code = "import os, near; print(os.getcwd(), near.name, input(), sorted(os.listdir()))"
    assert said(python(box, code, stdin="given\n")) == "/workspace near given ['near.py']\n"


def test_files_that_it_changed_are_reported(box: Toolbox, workspace: Workspace, directory: Path) -> None:
    workspace.write("old", b"123")
    workspace.write("gone", b"")
    result = python(
        box, "import os\nopen('new', 'w').write('ab')\nopen('old', 'a').write('4')\nos.remove('gone')"
    )
    said(result)
    metadata = result.metadata
    assert metadata["files_created"] == ["/workspace/new"]
    assert metadata["files_modified"] == ["/workspace/old"]
    assert metadata["files_deleted"] == ["/workspace/gone"]
    assert {"action": "created", "path": "/workspace/new", "size_bytes": 2} in metadata["changes"]
    assert (directory / "old").read_bytes() == b"1234"
    assert str(directory) not in result.to_json()


def test_very_many_files_are_counted(box: Toolbox) -> None:
    metadata = python(box, "for n in range(103): open(f'f{n}', 'w').close()").metadata
    assert (len(metadata["files_created"]), metadata["files_left_out"]) == (100, 3)


def test_code_that_utf_8_cannot_hold_is_reported(box: Toolbox) -> None:
    for arguments in ({"code": "print('\ud800')"}, {"code": "1", "stdin": "\udfff"}):
        result = box.call("python_executor", arguments)
        assert (result.success, result.code) == (False, "text.encoding")
        assert (result.error or "").endswith("UTF-8 cannot encode. Write such characters as escapes.")


def test_a_write_that_was_lost_is_a_failure(directory: Path) -> None:
    with Workspace.open(directory, limits=Limits(file_bytes=10)) as workspace:
        result = python(Toolbox(workspace), "f = open('f', 'w'); f.write('x' * 100)")
    assert (result.success, result.code) == (False, "tool.status")
    assert "was lost" in (result.error or "")
    assert [lost["path"] for lost in result.metadata["lost_writes"]] == ["/workspace/f"]


def test_files_are_those_of_the_other_tools(box: Toolbox) -> None:
    box.call("bash", {"command": "mkdir d"})
    said(python(box, "open('/workspace/d/f', 'w').write('from python')"))
    assert box.call("bash", {"command": "cat d/f"}).output["stdout"] == "from python"


def test_only_the_allowed_paths_are_there(workspace: Workspace) -> None:
    for path in ("open/f", "shut/f"):
        workspace.write(path, b"content")
    box = Toolbox(workspace, allowed_paths=["open"])
    code = "import os; print(os.getcwd(), os.listdir(), open('open/f').read(), os.path.exists('shut'))"
    assert said(python(box, code)) == "/workspace ['open'] content False\n"
    assert python(box, "open('shut/g', 'w')").success is False
    assert workspace.list("shut")[0].name == "f"


def test_variables_do_not_last_unless_the_operator_wants_it(workspace: Workspace) -> None:
    forgetful, stateful = Toolbox(workspace), Toolbox(workspace, stateful=True)
    for box in (forgetful, stateful):
        said(python(box, "x = 6 * 7"))
    assert "NameError" in (python(forgetful, "print(x)").error or "")
    assert said(python(stateful, "print(x)")) == "42\n"


# Limits


@requirement("E-47")
def test_the_requested_timeout_has_a_maximum(box: Toolbox, workspace: Workspace) -> None:
    asked = python(box, "1", timeout=300).metadata
    assert (asked["timeout_seconds"], asked["timeout_capped"]) == (60, True)
    operator_s = Toolbox(workspace, policy=ExecutionPolicy(timeout_seconds=5))
    assert python(operator_s, "1").metadata["timeout_seconds"] == 5
    assert python(box, "1", timeout=2).metadata["timeout_seconds"] == 2
    assert python(box, "open('f', 'w')", timeout=301).code == "tool.arguments"
    assert not workspace.exists("f")


def test_code_that_takes_too_long_is_stopped(box: Toolbox, workspace: Workspace) -> None:
    hurried = Toolbox(workspace, policy=ExecutionPolicy(timeout_seconds=0.1))
    result = python(hurried, "while True: pass", timeout=60)
    assert (result.success, result.code, result.output["exit_code"]) == (False, "limit.time", 124)
    assert (result.error or "").startswith("Code timed out after 0.1s")
    assert result.metadata["trap_reason"] == "timeout"
    assert said(python(box, "print('again')")) == "again\n"


def test_what_the_policy_does_not_give_is_reported(workspace: Workspace) -> None:
    box = Toolbox(workspace, policy=ExecutionPolicy(file_operations=100, stdout_max_bytes=10))
    result = python(box, "x = bytearray(10**9)")
    assert (result.success, result.code) == (False, "limit.memory_bytes")
    assert result.metadata["trap_reason"] == "memory_limit"
    result = python(box, "import os\nwhile True: os.listdir()")
    found = (result.code, result.metadata["trap_reason"])
    assert found == ("limit.file_operations", "file_operations"), result
    result = python(box, "print('x' * 20)")
    assert (result.output["stdout"], result.metadata["stdout_truncated"]) == ("x" * 10, True)


def test_a_long_output_is_cut_and_continues_by_cursor(workspace: Workspace) -> None:
    box = Toolbox(workspace, answer_bytes=1000)
    code = "open('runs', 'a').write('.')\nfor n in range(1000): print(n)"
    found = [python(box, code)]
    while cursor := found[-1].metadata.get("next_cursor"):
        found.append(python(box, code, cursor=cursor))
    text = "".join(part.output["stdout"] for part in found)
    assert text == "".join(f"{number}\n" for number in range(1000))
    assert len(found) == 4
    assert workspace.read("runs") == b"."


# Roles


def test_a_role_that_does_not_write_runs_code_that_cannot(workspace: Workspace, directory: Path) -> None:
    workspace.write("f", b"content")
    workspace.mkdir("d")
    box = Toolbox(workspace, "reader", roles=READER, pipelines=True)
    assert said(python(box, "print(open('f').read())")) == "content\n"
    for code in (
        "open('f', 'w')",
        "open('f', 'a')",
        "open('f', 'r+')",
        "open('new', 'w')",
        "open('/app/new', 'w')",
        "import os; os.remove('f')",
        "import os; os.rename('f', 'g')",
        "import os; os.mkdir('e')",
        "import os; os.rmdir('d')",
        "import os; os.truncate('f', 1)",
        "import os; os.symlink('f', 'l')",
        "import shutil; shutil.rmtree('d')",
    ):
        before = (directory / "f").stat()
        result = python(box, code)
        assert (result.success, result.output["exit_code"]) == (False, 1), code
        assert "changes" not in result.metadata, code
        assert sorted(path.name for path in directory.iterdir()) == ["d", "f"], code
        assert (directory / "f").stat() == before, code
        through_bash = box.call("bash", {"command": f'python -c "{code}"', "timeout": 30})
        assert through_bash.output["exit_code"] == 1, code
        assert (directory / "f").stat() == before, code
    assert said(python(box, "open('/tmp/t', 'w').write('1'); print(open('/tmp/t').read())")) == "1\n"


# Guest code that cannot run


def test_guest_code_that_is_switched_off_is_reported(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_SANDBOX", "0")
    result = python(Toolbox(workspace), "open('f', 'w')")
    assert (result.success, result.code) == (False, "runtime.disabled")
    assert "switched off" in (result.error or "")
    assert not workspace.exists("f")


def test_an_engine_that_is_missing_is_reported(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("carrel.runtimes.wasm.build.installed.find_spec", lambda name: None)
    result = python(Toolbox(workspace), "open('f', 'w')")
    assert (result.success, result.code) == (False, "runtime.missing")
    assert str(tmp_path) not in result.to_json()


# Stopping


def test_a_task_that_is_cancelled_stops_its_code(directory: Path) -> None:
    started = StartSignal()

    async def work(box: Toolbox) -> ToolResult:
        task = asyncio.create_task(box.acall("python_executor", {"code": LONG_CODE, "timeout": 60}))
        await asyncio.to_thread(started.wait)
        waiting = asyncio.create_task(box.acall("python_executor", {"code": "print(1)"}))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await waiting

    with started.workspace(directory) as workspace:
        assert said(asyncio.run(work(Toolbox(workspace)))) == "1\n"


def test_closing_stops_what_runs(directory: Path) -> None:
    started = StartSignal()
    with started.workspace(directory) as workspace, ThreadPoolExecutor(1) as pool:
        box = Toolbox(workspace)
        running = pool.submit(python, box, LONG_CODE, timeout=60)
        started.wait()
        box.close()
        result = running.result()
    assert (result.success, result.metadata["trap_reason"]) == (False, "cancelled")


def test_code_of_two_threads_runs_in_turn(box: Toolbox) -> None:
    code = "n = int(open('n').read()); open('n', 'w').write(str(n + 1));"
    said(python(box, "open('n', 'w').write('0')"))
    with ThreadPoolExecutor(2) as pool:
        assert [said(result) for result in pool.map(lambda _: python(box, code), range(6))] == [""] * 6
    assert said(python(box, "print(open('n').read())")) == "6\n"
