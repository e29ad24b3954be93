"""`bash` runs command lines, reports how they ended, and stops them in time."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carrel.testing.tree import tree
from carrel.tools.core.options import ANSWER_BYTES
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement
from tests.tools.start_signal import LONG, StartSignal


@pytest.fixture
def box(workspace: Workspace) -> Toolbox:
    return Toolbox(workspace)


@pytest.fixture
def piped(workspace: Workspace) -> Toolbox:
    return Toolbox(workspace, pipelines=True)


@pytest.fixture
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


def bash(box: Toolbox, command: str, **arguments: object) -> ToolResult:
    """Run a command line, and see that the answer is JSON."""
    result = box.call("bash", {"command": command, **arguments})
    assert json.loads(result.to_json())["metadata"]["exit_code"] == result.output["exit_code"]
    return result


def out(box: Toolbox, command: str) -> str:
    """What a line prints that succeeds and does not complain."""
    result = bash(box, command)
    assert (result.success, result.error, result.output["stderr"]) == (True, None, "")
    return str(result.output["stdout"])


# What it answers


def test_what_is_printed_comes_back_with_the_status(box: Toolbox) -> None:
    result = bash(box, "echo hello")
    assert (result.success, result.error) == (True, None)
    assert result.output == {"stdout": "hello\n", "stderr": "", "exit_code": 0}
    metadata = dict(result.metadata)
    assert metadata.pop("duration_ms") > 0
    assert metadata == {
        "command": "echo hello",
        "cwd": "/workspace",
        "exit_code": 0,
        "timeout_seconds": 10,
        "stdout_bytes": 6,
        "stderr_bytes": 0,
    }


def test_the_working_directory_is_the_workspace_and_not_that_of_the_host(
    box: Toolbox, directory: Path
) -> None:
    assert out(box, "pwd") == "/workspace\n"
    assert out(box, "env") == "HOME=/workspace\nLANG=C.UTF-8\nPATH=\nPWD=/workspace\n"
    for line in ("pwd", "env", "workspace", "ls -la", "stat .", "cd /", "cat ../x", f"cat {directory}/x"):
        assert str(directory.parent) not in bash(box, line).to_json().replace(f"{directory}/x", "")


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("cat config.json", "{}\n"),
        ("head -n 10 log.txt", "".join(f"Error {number}\n" for number in range(10))),
        ("tail -n 20 log.txt", "".join(f"Error {number}\n" for number in range(10, 30))),
        ("wc data.csv", "1 1 4 data.csv\n"),
        ("pwd", "/workspace\n"),
        ("mkdir -p output/reports", ""),
        ("rm -r temp/", ""),
        ("cp source.txt backup.txt", ""),
        ("mv old.txt new.txt", ""),
        ("touch marker.txt", ""),
        ('find . -name "*.py"', "./data/a.py\n"),
        ("grep -i error log.txt", "".join(f"Error {number}\n" for number in range(30))),
        ('echo "Hello World"', "Hello World\n"),
    ],
)
def test_the_promised_commands_do_what_they_are_known_for(
    box: Toolbox, directory: Path, line: str, printed: str
) -> None:
    log = "".join(f"Error {number}\n" for number in range(30))
    tree(directory, "config.json = {}\n", f"log.txt = {log}", "data.csv = a,b\n", "temp/f")
    tree(directory, "source.txt = s", "old.txt = o", "data/a.py")
    assert out(box, line) == printed


def test_what_the_promised_commands_change_is_reported(box: Toolbox, directory: Path) -> None:
    tree(directory, "temp/f", "source.txt = s", "old.txt = o", "data/.h", "data/a.py")
    assert [line.split()[-1] for line in out(box, "ls -la data/").splitlines()[1:]] == [
        ".",
        "..",
        ".h",
        "a.py",
    ]
    done = [
        (change["action"], change["path"])
        for line in (
            "mkdir -p output/reports",
            "rm -r temp/",
            "cp source.txt backup.txt",
            "mv old.txt new.txt",
            "touch marker.txt",
        )
        for change in bash(box, line).metadata["changes"]
    ]
    assert done == [
        ("created", "/workspace/output"),
        ("created", "/workspace/output/reports"),
        ("deleted", "/workspace/temp"),
        ("created", "/workspace/backup.txt"),
        ("moved", "/workspace/new.txt"),
        ("created", "/workspace/marker.txt"),
    ]


def test_a_status_that_is_not_0_is_a_failure_with_its_output(piped: Toolbox) -> None:
    result = bash(piped, "echo here; cat missing")
    assert (result.success, result.code) == (False, "tool.status")
    assert result.error == "Command exited with status 1: cat: missing: No such file or directory"
    assert result.output == {
        "stdout": "here\n",
        "stderr": "cat: missing: No such file or directory\n",
        "exit_code": 1,
    }
    assert bash(piped, "false").error == "Command exited with status 1"


def test_bytes_that_are_no_text_are_replaced(box: Toolbox, directory: Path) -> None:
    (directory / "f").write_bytes(b"a\xff\xc3\xa9\n")
    assert out(box, "cat f") == "a\ufffdé\n"


@pytest.mark.parametrize("name", ["curl http://x", "wget x", "bash -c 'ls'", "nc -l", "LS"])
def test_programs_of_the_host_are_not_allowed(box: Toolbox, name: str) -> None:
    result = bash(box, name)
    assert (result.success, result.output["exit_code"]) == (False, 127)
    assert "not found" in (result.error or "")
    assert "not allowed" in (result.error or "")


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("ls | cat /etc/passwd", "|"), ("ls; rm -rf /", ";"), ("ls && echo pwned", "&&"),
        ("ls || echo fallback", "||"), ("echo a > f", ">"), ("cat < f", "<"), ("echo a >> f", ">>"),
        ("echo $(whoami)", "$("), ("echo `id`", "`"), ("ls\npwd", "\\n"), ("ls\rpwd", "\\r"),
    ],
)  # fmt: skip
def test_a_metacharacter_is_refused_and_nothing_is_done(
    box: Toolbox, directory: Path, line: str, sign: str
) -> None:
    result = bash(box, line)
    assert (result.success, result.code) == (False, "shell.metacharacter")
    assert (result.error or "").startswith(f"Shell metacharacter not allowed: {sign} (at character ")
    assert (result.error or "").endswith(f". {result.metadata['next']}")
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "word"), [("echo 'a", "quoting"), ('echo "a', "quoting"), ("", "Empty"), ("  ", "Empty")]
)
def test_a_line_that_cannot_be_read_is_reported(box: Toolbox, line: str, word: str) -> None:
    result = bash(box, line)
    assert (result.success, result.code) == (False, "shell.syntax")
    assert word in (result.error or "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "'command' is missing"),
        ({"command": 1}, "'command' must be a text, not 1"),
        ({"command": "ls", "timeout": 0}, "'timeout' must be a whole number from 1 to 30, not 0"),
        ({"command": "ls", "timeout": 31}, "'timeout' must be a whole number from 1 to 30, not 31"),
        ({"command": "ls", "time": 3}, "there is no argument 'time'"),
    ],
)
def test_wrong_arguments_are_reported_and_nothing_is_run(
    box: Toolbox, directory: Path, arguments: dict[str, object], problem: str
) -> None:
    if "command" in arguments and arguments["command"] == "ls":
        arguments = {**arguments, "command": "touch f"}
    result = box.call("bash", arguments)
    assert (result.success, result.code) == (False, "tool.arguments")
    assert problem in (result.error or "")
    assert list(directory.iterdir()) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters()), st.sampled_from(["agent", "editor", "coding"]), st.booleans())
def test_any_text_gets_an_answer_that_is_json(
    workspace: Workspace, command: str, profile: str, quoted: bool
) -> None:
    line = f"echo '{command}'" if quoted else f"{command} \ud800 '"
    result = Toolbox(workspace, "critic", profile=profile).call("bash", {"command": line})
    assert json.loads(result.to_json())["success"] == (result.error is None)
    assert result.code != "tool.failed"


def test_commands_that_are_not_allowed_do_not_exist(workspace: Workspace) -> None:
    for path in ("open/f", "shut/f"):
        workspace.write(path, path.encode())
    box = Toolbox(workspace, allowed_paths=["open"], pipelines=True)
    assert out(box, "cat open/f") == "open/f"
    lines = (
        "cat @/f",
        "ls @",
        "cd @",
        "rm -r @",
        "touch @/g",
        "echo > @/g",
        "cp open/f @",
        "test -e @ || false",
    )
    for line in lines:
        shut = bash(box, line.replace("@", "shut"))
        missing = bash(box, line.replace("@", "nope"))
        assert not shut.success
        assert shut.output["stderr"].replace("shut", "nope") == missing.output["stderr"], line
    assert out(box, "cd open; find .") == ".\n./f\n"
    assert [info.name for info in workspace.list("shut")] == ["f"]


# What it remembers


def test_the_shell_remembers_where_it_is_and_its_variables(piped: Toolbox) -> None:
    assert bash(piped, "mkdir d && cd d && NAME=value").metadata["cwd"] == "/workspace/d"
    assert out(piped, "pwd; echo $NAME") == "/workspace/d\nvalue\n"
    assert bash(piped, "exit 3").output["exit_code"] == 3
    assert out(piped, "pwd; echo $NAME") == "/workspace/d\nvalue\n"


def test_two_toolboxes_share_files_but_no_shell(workspace: Workspace) -> None:
    one, other = (Toolbox(workspace, pipelines=True) for _ in range(2))
    out(one, "mkdir d && cd d && touch f")
    assert out(other, "pwd; find .") == "/workspace\n.\n./d\n./d/f\n"


def test_lines_of_several_threads_run_one_after_another(piped: Toolbox) -> None:
    out(piped, "echo 0 > n")
    line = "cat n >> all; echo 1 >> n"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: bash(piped, line), range(12)))
    assert [result.output["exit_code"] for result in results] == [0] * 12
    assert out(piped, "wc -l all") == "78 all\n"


# What it changed


def test_changes_are_reported_also_those_of_a_pipeline(piped: Toolbox, directory: Path) -> None:
    (directory / "old").write_bytes(b"12345")
    result = bash(piped, "echo one | tee a | cat > b; rm old; mkdir d; mv a d/a")
    assert result.success, result.error
    changes = result.metadata["changes"]
    assert {"action": "created", "path": "/workspace/b", "size_bytes": 4} in changes
    assert {"action": "deleted", "path": "/workspace/old", "size_bytes": 5} in changes
    assert {"action": "created", "path": "/workspace/d", "type": "directory"} in changes
    moved = {"action": "moved", "path": "/workspace/d/a", "from": "/workspace/a", "size_bytes": 4}
    assert changes[-1] == moved
    assert "changes" not in bash(piped, "cat b | wc").metadata


@pytest.mark.usefixtures("guest")
def test_changes_of_guest_code_are_reported(piped: Toolbox) -> None:
    result = bash(piped, "echo hello | python -c \"open('f', 'w').write(input())\" | cat", timeout=30)
    assert (result.success, result.output["stderr"]) == (True, "")
    assert result.metadata["changes"] == [{"action": "created", "path": "/workspace/f", "size_bytes": 5}]


def test_what_two_calls_change_at_once_is_reported_by_each(workspace: Workspace) -> None:
    boxes = [Toolbox(workspace, pipelines=True) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(lambda box: bash(box[1], f"echo x | tee {box[0]}"), enumerate(boxes))
        paths = [[change["path"] for change in result.metadata["changes"]] for result in results]
    assert paths == [[f"/workspace/{number}"] for number in range(4)]


# Time


def test_a_line_that_takes_too_long_is_stopped(piped: Toolbox) -> None:
    result = bash(piped, "echo begun; sleep 1000", timeout=1)
    assert (result.success, result.code, result.output["exit_code"]) == (False, "limit.time", 124)
    assert "timed out after 1s" in (result.error or "")
    assert result.output["stdout"] == "begun\n"
    assert out(piped, "echo again") == "again\n"


@pytest.mark.usefixtures("guest")
def test_guest_code_that_takes_too_long_is_stopped(piped: Toolbox, workspace: Workspace) -> None:
    hurried = Toolbox(workspace, pipelines=True, shell_timeout_seconds=0.1)
    result = bash(hurried, "python -c 'import time; time.sleep(1000)'")
    assert (result.success, result.code, result.output["exit_code"]) == (False, "limit.time", 124)
    assert "timed out" in (result.error or "")
    assert out(piped, "python -c 'print(1)'") == "1\n"


def test_the_operator_s_ceiling_of_time_holds(workspace: Workspace) -> None:
    result = bash(Toolbox(workspace, shell_timeout_seconds=0.05), "sleep 1000", timeout=30)
    assert (result.code, result.metadata["timeout_seconds"]) == ("limit.time", 0.05)
    assert bash(Toolbox(workspace, shell_timeout_seconds=None), "pwd").metadata["timeout_seconds"] == 10


def test_the_time_of_file_operations_is_not_that_of_commands(workspace: Workspace) -> None:
    box = Toolbox(workspace, timeout_ms=1, pipelines=True)
    assert out(box, "sleep 0.05; touch a; ls") == "a\n"


def test_the_operator_s_ceiling_of_output_holds(workspace: Workspace) -> None:
    result = bash(Toolbox(workspace, shell_output_bytes=20), "seq 1 100")
    assert (result.success, result.code) == (False, "limit.output_bytes")
    assert (result.output["stdout"] + result.output["stderr"]).startswith("1\n2\n3\n")


def test_a_task_that_is_cancelled_stops_its_line_alone(directory: Path) -> None:
    started = StartSignal()

    async def work(box: Toolbox) -> ToolResult:
        task = asyncio.create_task(box.acall("bash", {"command": LONG, "timeout": 30}))
        await asyncio.to_thread(started.wait)
        waiting = asyncio.create_task(box.acall("bash", {"command": "echo next", "timeout": 30}))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await waiting

    with started.workspace(directory) as workspace:
        result = asyncio.run(work(Toolbox(workspace, pipelines=True, shell_timeout_seconds=None)))
    assert result.output == {"stdout": "next\n", "stderr": "", "exit_code": 0}


def test_a_task_that_waits_for_another_line_can_be_cancelled(directory: Path) -> None:
    started = StartSignal()

    async def work(box: Toolbox) -> None:
        first = asyncio.create_task(box.acall("bash", {"command": LONG, "timeout": 30}))
        await asyncio.to_thread(started.wait)
        second = asyncio.create_task(box.acall("bash", {"command": "touch second", "timeout": 30}))
        # It is handed to its thread now.
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert not first.done()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    with started.workspace(directory) as workspace:
        asyncio.run(work(Toolbox(workspace, pipelines=True)))
    assert not (directory / "second").exists()


@pytest.mark.usefixtures("guest")
def test_a_task_that_is_cancelled_stops_guest_code(directory: Path) -> None:
    started = StartSignal()
    command = "python -c \"open('begun', 'w').close()\nwhile True: pass\""

    async def work(box: Toolbox) -> ToolResult:
        task = asyncio.create_task(box.acall("bash", {"command": command, "timeout": 30}))
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await box.acall("bash", {"command": "python -c 'print(1)'", "timeout": 30})

    with started.workspace(directory) as workspace:
        result = asyncio.run(work(Toolbox(workspace, pipelines=True)))
    assert result.output == {"stdout": "1\n", "stderr": "", "exit_code": 0}


def test_commands_that_take_long_do_not_hold_up_other_calls(directory: Path) -> None:
    started = StartSignal()

    async def work(box: Toolbox) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        task = asyncio.create_task(box.acall("bash", {"command": LONG, "timeout": 30}))
        await asyncio.sleep(0)
        result = await box.acall("file_search", {"query": "one"})
        assert result.success
        assert not task.done()
        await asyncio.to_thread(started.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with started.workspace(directory) as workspace:
        workspace.write("f", b"one")
        asyncio.run(work(Toolbox(workspace, pipelines=True)))


def test_awaited_lines_answer_like_the_others(box: Toolbox) -> None:
    result = asyncio.run(box.acall("bash", {"command": "echo hi"}))
    assert result.output == {"stdout": "hi\n", "stderr": "", "exit_code": 0}


# Closing


def test_closing_stops_what_runs(directory: Path) -> None:
    started = StartSignal()
    with started.workspace(directory) as workspace, ThreadPoolExecutor(1) as pool:
        box = Toolbox(workspace, pipelines=True)
        running = pool.submit(box.call, "bash", {"command": LONG, "timeout": 30})
        started.wait()
        box.close()
        result = running.result()
        assert (result.success, result.code) == (False, "shell.cancelled")
        workspace.read("begun")


def test_a_closed_toolbox_runs_nothing(workspace: Workspace) -> None:
    with Toolbox(workspace) as box:
        out(box, "echo 1")
    for name, arguments in (("bash", {"command": "echo 1"}), ("python_executor", {"code": "1"})):
        result = box.call(name, arguments)
        assert (result.success, result.output, result.code) == (False, None, "workspace.closed")
    workspace.write("f", b"")


# Long output


def parts(box: Toolbox, command: str) -> list[ToolResult]:
    """All answers that it takes to get the whole output."""
    found = [bash(box, command)]
    while cursor := found[-1].metadata.get("next_cursor"):
        assert found[-1].metadata["truncated"] is True
        found.append(bash(box, command, cursor=cursor))
    assert "truncated" not in found[-1].metadata
    return found


def test_a_long_output_is_cut_and_continues_by_cursor(workspace: Workspace) -> None:
    box = Toolbox(workspace, answer_bytes=1000)
    found = parts(box, "seq 1 1000")
    texts = [part.output["stdout"] for part in found]
    assert "".join(texts) == "".join(f"{number}\n" for number in range(1, 1001))
    assert all(len(text) <= 1000 and text.endswith("\n") for text in texts)
    assert len(texts) == 4
    assert {part.metadata["stdout_bytes"] for part in found} == {3893}


@requirement("R-24")
def test_a_model_reads_the_beginning_and_the_end_of_a_long_output(workspace: Workspace) -> None:
    box = Toolbox(workspace)
    whole = "".join(f"{number}\n" for number in range(1, 20_001))
    result = bash(box, "seq 1 20000")
    assert result.output["stdout"] == whole
    assert "truncated" not in result.metadata
    beginning, note, ending = re.split(r"(\[Cut: .*\]\n)", result.text())
    assert whole.startswith(beginning)
    assert whole.endswith(ending)
    assert len(beginning) + len(ending) <= ANSWER_BYTES
    assert min(len(beginning), len(ending)) > ANSWER_BYTES // 3
    assert beginning.endswith("\n")
    middle = whole[len(beginning) : -len(ending)]
    assert note.startswith(f"[Cut: {len(middle)} bytes in {middle.count(chr(10))} lines are left out here.")
    rest = bash(box, "seq 1 20000", cursor=note.split("'")[1])
    assert rest.output["stdout"] == middle + ending
    shown, _, last = rest.text().rpartition("\n")
    assert middle.startswith(shown)
    left = len(middle + ending) - len(shown) - 1
    assert last.startswith(f"[{left} bytes follow: repeat the call with cursor '")
    third = bash(box, "seq 1 20000", cursor=last.split("'")[1])
    assert (middle + ending).startswith(shown + "\n" + third.output["stdout"][:10])


def test_a_model_reads_both_streams_as_text(workspace: Workspace) -> None:
    box = Toolbox(workspace, pipelines=True)
    workspace.write("f", b'say "\\n"')
    assert bash(box, "cat f").text() == 'say "\\n"'
    assert bash(box, "true").text() == "[No output]"
    failed = bash(box, "cat f none")
    problem = "cat: none: No such file or directory"
    assert failed.text() == f'say "\\n"\nCommand exited with status 1: {problem}'
    failed = bash(box, "cat f none nothing")
    assert failed.text() == (
        f'say "\\n"\n[stderr]\n{problem}\ncat: nothing: No such file or directory\n'
        f"Command exited with status 1: {problem}"
    )
    assert bash(box, "false").text() == "Command exited with status 1"


def test_the_middle_of_one_long_line_is_left_out_between_characters(workspace: Workspace) -> None:
    workspace.write("f", "ü" * 1000)
    text = bash(Toolbox(workspace, answer_bytes=101), "cat f").text()
    beginning, note, ending = text.split("\n")
    assert (set(beginning), set(ending)) == ({"ü"}, {"ü"})
    assert len((beginning + ending).encode()) <= 101
    assert note.startswith(f"[Cut: {2000 - len((beginning + ending).encode())} bytes are left out here. ")


def test_a_long_output_does_not_hide_the_errors(workspace: Workspace) -> None:
    box = Toolbox(workspace, answer_bytes=1000, pipelines=True)
    found = parts(box, "seq 1 1000; cat missing; false")
    assert found[0].output["stderr"] == "cat: missing: No such file or directory\n"
    assert "".join(part.output["stderr"] for part in found[1:]) == ""
    assert {part.error for part in found} == {
        "Command exited with status 1: cat: missing: No such file or directory"
    }


def test_a_command_is_not_run_again_to_continue(workspace: Workspace) -> None:
    box = Toolbox(workspace, answer_bytes=100, pipelines=True)
    found = parts(box, "echo ran >> log; seq 1 100")
    assert workspace.read("log") == b"ran\n"
    assert "changes" in found[0].metadata
    assert all("changes" not in part.metadata for part in found[1:])


def test_a_cursor_may_be_used_twice(workspace: Workspace) -> None:
    box = Toolbox(workspace, answer_bytes=100)
    cursor = bash(box, "seq 1 100").metadata["next_cursor"]
    assert bash(box, "seq 1 100", cursor=cursor) == bash(box, "seq 1 100", cursor=cursor)


def test_a_cursor_that_is_not_known_is_reported(workspace: Workspace) -> None:
    box = Toolbox(workspace, answer_bytes=100)
    cursor = bash(box, "seq 1 100").metadata["next_cursor"]
    gone = Toolbox(workspace, answer_bytes=100).call("bash", {"command": "seq 1 100", "cursor": cursor})
    assert (gone.success, gone.code) == (False, "tool.cursor")
    assert gone.error == (
        "The rest of this output is no longer kept. Run it again, and let it print less at once."
    )
    for command, wrong, problem in (
        ("seq 1 101", cursor, "belongs to another call"),
        ("seq 1 100", "", "does not come from a result"),
        ("seq 1 100", cursor.rpartition(".")[0], "does not come from a result"),
        ("seq 1 100", cursor + ".x", "does not come from a result"),
    ):
        result = box.call("bash", {"command": command, "cursor": wrong})
        assert (result.success, result.code) == (False, "tool.arguments")
        assert problem in (result.error or "")


def test_a_long_command_is_not_reported_again_in_full(box: Toolbox) -> None:
    answer = box.call("bash", {"command": "true " + "x" * 100_000})
    assert answer.success
    assert answer.metadata["command"] == "true " + "x" * 995 + "..."
    assert len(answer.to_json()) < 2000
