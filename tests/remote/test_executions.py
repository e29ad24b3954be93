"""Commands, code and tools that a service runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from carrel import AsyncClient, Budget, Client, Shell, Toolbox, Workspace, create_sandbox
from carrel.errors import MissingError
from carrel.values import ToolOutput
from tests.remote.outcomes import plain
from tests.remote.serving import Serving
from tests.tools.calls import UNTIL_GO


def without_time(result: Any) -> Any:
    """The result of a command, but not how long it took."""
    kind, values = plain(result)
    return kind, {**values, "duration_ms": 0}


COMMANDS = (
    "echo hello",
    "mkdir sub",
    "cd sub",
    "pwd",
    "touch a b",
    "ls",
    "cat missing",
    "cd ..",
    "ls -la nothing",
    "ls *",
    "echo one two | wc -w > count",
    "cat count",
    "rm -rf $(echo sub)",
    "nocommand",
    "",
    "exit 3",
)


def test_a_shell_afar_does_what_one_here_does(far: Any, here: Workspace) -> None:
    there, shell = far.shell(), Shell(here, pipelines=True)
    for command in COMMANDS:
        assert without_time(there.run(command)) == without_time(shell.run(command)), command
        assert there.cwd == shell.cwd


def test_a_shell_is_given_input_and_tells_output_as_it_comes(far: Any) -> None:
    told: list[tuple[str, bytes]] = []
    shell = far.shell()
    result = shell.run("cat", stdin=[b"\xff one\n", b"two\n"], on_output=lambda *each: told.append(each))
    assert (result.exit_code, result.stdout, b"".join(data for _, data in told)) == (
        0,
        b"",
        b"\xff one\ntwo\n",
    )
    assert shell.run("wc -l", stdin=b"1\n2\n").stdout.split() == [b"2"]


def test_two_shells_are_in_places_of_their_own(far: Any) -> None:
    one, other = far.shell(), far.shell()
    one.run("mkdir d")
    one.run("cd d")
    assert (one.cwd, other.run("pwd").stdout) == ("/workspace/d", b"/workspace\n")


def test_the_time_of_a_command_is_limited(far: Any) -> None:
    result = far.shell().run("python -c 'while True: pass'", budget=Budget(seconds=0.5))
    assert result.exit_code == 124


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_command_is_stopped_from_another_thread(service: Serving, protocol: str) -> None:
    with Client(service.url(protocol)) as client:
        shell = client.create().shell()
        begun = threading.Event()
        stopper = threading.Thread(target=lambda: begun.wait(60) and shell.cancel())
        stopper.start()
        code = "print(1, flush=True)\nwhile True: pass"
        result = shell.run("python -", stdin=code.encode(), on_output=lambda *_: begun.set())
        stopper.join()
        assert (result.exit_code, result.error_code) == (130, "shell.cancelled")
        assert shell.run("echo still there").stdout == b"still there\n"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_what_is_given_at_the_start_stops_a_line_before_it_began(service: Serving, protocol: str) -> None:
    with Client(service.url(protocol)) as client:
        shell = client.create().shell()
        result = shell.run("python -c 'while True: pass'", on_start=lambda stop: stop())
        assert result.exit_code == 130


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_task_that_is_cancelled_stops_its_command(service: Serving, protocol: str) -> None:
    async def run() -> None:
        async with AsyncClient(service.url(protocol)) as client:
            workspace = await client.create()
            begun = asyncio.Event()
            running = asyncio.create_task(
                workspace.shell().run(
                    "python -",
                    stdin=b"print(1, flush=True)\nwhile True: pass",
                    on_output=lambda *_: begun.set(),
                )
            )
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            # Code in one session waits for other code there, so that has ended by now.
            result = await workspace.shell().run("python -c 'print(2)'", budget=Budget(seconds=10))
            assert result.stdout == b"2\n"

    asyncio.run(run())


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_what_blocks_can_be_awaited_as_well(service: Serving, protocol: str) -> None:
    async def run(client: Client) -> None:
        workspace = client.create()
        shell, sandbox = workspace.shell(), workspace.sandbox()
        assert (await shell.arun("echo hello")).stdout == b"hello\n"
        assert (await workspace.toolbox("developer").acall("bash", {"command": "pwd"})).success
        begun = asyncio.Event()
        running = asyncio.create_task(
            sandbox.aexecute(
                "print(1, flush=True)\nwhile True: pass",
                on_output=lambda *_: begun.set(),
            )
        )
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await sandbox.aexecute("print(2)")).stdout == "2\n"
        assert sandbox.cancel() == shell.cancel() == 0

    with Client(service.url(protocol)) as client:
        asyncio.run(run(client))


def test_code_runs_on_the_files_of_the_session(far: Any) -> None:
    far.write("main.py", "import sys; open('out', 'w').write(' '.join(sys.argv[1:]))")
    sandbox = far.sandbox()
    result = sandbox.execute_file("main.py", argv=["a", "b"])
    assert (result.success, result.files_created, far.read("out")) == (True, ["out"], b"a b")
    assert result.workspace_path == "/workspace"
    told: list[tuple[str, bytes]] = []
    code = "import os, sys; print(sys.stdin.read(), os.environ['X']); sys.exit(3)"
    result = sandbox.execute(code, stdin="in", env={"X": "1"}, on_output=lambda *each: told.append(each))
    assert (result.exit_code, result.stdout, b"".join(data for _, data in told)) == (3, "in 1\n", b"in 1\n")
    with pytest.raises(MissingError):
        sandbox.execute_file("missing.py")
    assert sandbox.execute("while True: pass", timeout_seconds=0.5).timed_out
    with pytest.raises(TypeError, match="'on_progress'"):
        sandbox.execute("1", on_progress=print)


def test_code_runs_where_and_by_the_name_that_it_is_given(far: Any, here: Workspace) -> None:
    code = "import os, sys; print(os.getcwd(), sys.argv)\nopen('out', 'w')\n1 / 0"
    for workspace, sandbox in ((here, create_sandbox(workspace=here)), (far, far.sandbox())):
        workspace.mkdir("sub")
        result = sandbox.execute(code, cwd="/workspace/sub", name="cell-1", argv=["x"])
        assert result.stdout == "/workspace/sub ['cell-1', 'x']\n"
        assert 'File "cell-1", line 3' in result.stderr
        assert result.files_created == ["sub/out"]
        for cwd in ("/etc", "/workspace/none", "sub", "\0"):
            with pytest.raises(MissingError, match="no such directory"):
                sandbox.execute(code, cwd=cwd)


@pytest.mark.parametrize(
    "code",
    ["x = 1", "x = (", "", "raise ValueError", "x = \0", b"# coding: latin-1\nx = '\xff'", b"x = '\xff'"],
    ids=repr,
)
def test_the_service_judges_whether_a_text_is_python(far: Any, here: Workspace, code: Any) -> None:
    wanted = create_sandbox(workspace=here).validate_code(code)
    assert far.sandbox().validate_code(code) is wanted
    assert far.list() == []


def test_what_is_no_text_is_not_checked(far: Any) -> None:
    with pytest.raises(TypeError, match="must be str or bytes"):
        far.sandbox().validate_code(5)


def test_a_shell_has_a_budget_for_lines_that_have_none(far: Any) -> None:
    shell = far.shell(budget=Budget(seconds=0.5))
    assert shell.budget == Budget(seconds=0.5)
    assert shell.run("python -c 'while True: pass'").exit_code == 124
    assert shell.run("python -c 'print(1)'", budget=Budget(seconds=60)).stdout == b"1\n"


def test_what_was_opened_afar_is_closed_by_leaving_its_block(service: Serving) -> None:
    async def run() -> None:
        async with AsyncClient(service.http) as client:
            workspace = await client.create()
            async with workspace.sandbox() as sandbox, workspace.toolbox("developer") as toolbox:
                assert (await sandbox.execute("print(1)")).stdout == "1\n"
                assert (await toolbox.call("file_list")).success

    asyncio.run(run())


def test_variables_last_in_a_stateful_sandbox(far: Any) -> None:
    kept = far.sandbox(stateful=True)
    kept.execute("x = 41")
    assert kept.execute("print(x + 1)").stdout == "42\n"
    assert not far.sandbox().execute("print(x)").success


CALLS: tuple[tuple[str, Any], ...] = (
    ("file_write", {"path": "a.txt", "content": "hello"}),
    ("file_read", {"path": "a.txt"}),
    ("file_read", {"path": "missing"}),
    ("file_list", {"path": "nowhere"}),
    ("file_read", {}),
    ("file_read", None),
    ("file_edit", {"path": "a.txt", "old_text": "hello", "new_text": "bye"}),
    ("nothing", {}),
)


def test_tools_afar_answer_as_those_here(far: Any, here: Workspace) -> None:
    there, toolbox = far.toolbox("developer"), Toolbox(here, "developer", pipelines=True)
    for name, arguments in CALLS:
        wanted = toolbox.call(name, arguments)
        found = there.call(name, arguments)
        assert (found.success, found.output, found.error) == (wanted.success, wanted.output, wanted.error)
        assert found.metadata.keys() == wanted.metadata.keys()
    assert there.schemas() == toolbox.schemas()
    assert there.schemas("openai") == toolbox.schemas("openai")


def test_the_names_of_tools_are_those_of_the_role(plain_client: Client, here: Workspace) -> None:
    workspace = plain_client.create()
    for role in ("developer", "generalist"):
        assert workspace.toolbox(role).names == Toolbox(here, role).names
    files = workspace.toolbox("developer", profile="files")
    assert files.names == Toolbox(here, "developer", profile="files").names
    assert (
        files.call("exists", {"path": "a"}).data
        == Toolbox(here, profile="files").call("exists", {"path": "a"}).data
    )


@pytest.mark.parametrize("name", [5, None, "\ud800", "", "..", "a/b?c"])
def test_what_is_no_name_of_a_tool_is_an_answer(far: Any, name: Any) -> None:
    answer = far.toolbox("developer").call(name, {})
    assert (answer.success, answer.code) == (False, "tool.unknown")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("is_awaited", [True, False])
def test_the_output_of_a_tool_comes_while_it_runs(service: Serving, protocol: str, is_awaited: bool) -> None:
    async def run(toolbox: Any, go: Callable[[], object]) -> None:
        output: list[bytes] = []
        async with aclosing(toolbox.astream("python_executor", {"code": UNTIL_GO})) as items:
            async for item in items:
                if isinstance(item, ToolOutput):
                    output.append(item.data)
                    go()
        assert (b"".join(output), item.output["stdout"]) == (b"begun\nend\n", "begun\nend\n")
        output.clear()
        result = await toolbox.acall(
            "bash", {"command": "echo a"}, on_output=lambda _, data: output.append(data)
        )
        assert (output, result.success) == ([b"a\n"], True)
        result = await toolbox.acall("none\n", {}, on_output=lambda *_: None)
        assert result.code == "tool.unknown"

    async def run_awaited() -> None:
        async with AsyncClient(service.url(protocol)) as client:
            workspace = await client.create()
            await run(workspace.toolbox("developer"), (service.directory / workspace.session_id / "go").touch)

    if is_awaited:
        asyncio.run(run_awaited())
        return
    with Client(service.url(protocol)) as blocking:
        far = blocking.create()
        asyncio.run(run(far.toolbox("developer"), lambda: far.touch("go")))


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_task_that_is_cancelled_stops_its_tool(service: Serving, protocol: str) -> None:
    async def run() -> None:
        async with AsyncClient(service.url(protocol)) as client:
            toolbox = (await client.create()).toolbox("developer")
            begun = asyncio.Event()
            code = "print(1, flush=True)\nwhile True: pass"
            running = asyncio.create_task(
                toolbox.acall("python_executor", {"code": code}, on_output=lambda *_: begun.set())
            )
            await begun.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            # Code in one session waits for other code there, so that has ended by now.
            result = await toolbox.call("python_executor", {"code": "print(2)", "timeout": 10})
            assert result.output["stdout"] == "2\n"

    asyncio.run(run())
