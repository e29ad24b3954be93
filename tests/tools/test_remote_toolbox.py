"""A toolbox of a service: the same results, and an error when the service does not answer."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import ClosedError, ConfigError, RoleDeniedError, UnauthenticatedError, UnreachableError
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.remote import RemoteTools
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolOutput, ToolResult
from carrel.workspace.workspace import Workspace
from tests.command_line import execute
from tests.fronts.grpc.handlers.test_executions import FOR_EVER
from tests.fronts.grpc.handlers.test_files import until
from tests.fronts.grpc.serving import Served, serving
from tests.tools.calls import UNTIL_GO
from tests.tools.images import png

CRITIC = ("file_read", "file_list", "file_search", "bash")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, guest_cache: Path) -> Iterator[Served]:
    sessions = tmp_path_factory.mktemp("remote") / "sessions"
    with serving(sessions, CARREL_CACHE=str(guest_cache)) as made:
        yield made


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nothing answers, for as long as it is held."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


def test_the_calls_go_to_the_session_of_the_workspace(served: Served, workspace: Workspace) -> None:
    with Toolbox(workspace, address=served.server.address) as toolbox:
        written = toolbox.call("file_write", {"path": "a.txt", "content": "far"})
        assert (written.success, written.output) == (True, "/workspace/a.txt")
        assert toolbox.call("file_read", {"path": "a.txt"}).output == "far"
    assert not workspace.exists("a.txt")
    assert served.path("abc-123", "a.txt").read_text() == "far"


def test_the_answers_are_those_of_a_toolbox_here(served: Served) -> None:
    served.call("EnsureSession", messages.SessionRequest(session_id="same"))
    served.path("same", "a.json").write_text('{"a": [1, "ü"]}')
    served.path("same", "p.png").write_bytes(png())
    calls: list[tuple[Any, Any]] = [
        ("file_read", {"path": "a.json"}),
        ("file_read", {"path": "p.png"}),
        ("file_read", {"path": "nope"}),
        ("file_list", {"path": "."}),
        ("file_read", None),
        ("file_read", {"path": 5}),
        ("nothing", {}),
        ("bash", {"command": "cat nope"}),
        ("bash", {"command": "cat a | b"}),
    ]
    with (
        WorkspaceManager(served.sessions).open("same") as workspace,
        Toolbox(workspace, here=True) as own,
        Toolbox(None, session_id="same", address=served.server.address) as far,
    ):
        assert (far.names, far.tools(), far.schemas("mcp")) == (own.names, own.tools(), own.schemas("mcp"))
        for name, arguments in calls:
            expected, found = own.call(name, arguments), far.call(name, arguments)
            assert _timeless(found) == _timeless(expected)
            assert found.content("anthropic") == expected.content("anthropic")
            assert _timeless(asyncio.run(far.acall(name, arguments))) == _timeless(expected)


def _timeless(result: Any) -> Any:
    document = result.to_dict()
    document["metadata"] = {
        name: value for name, value in document["metadata"].items() if name != "duration_ms"
    }
    return json.loads(json.dumps(document))


@pytest.mark.parametrize("name", ["file_read", 5, "\ud800"])
@pytest.mark.parametrize("arguments", [{"path": {1, 2}}, {"path": float("nan")}, {"path": b"x"}])
def test_what_cannot_be_sent_is_an_answer_too(served: Served, name: Any, arguments: Any) -> None:
    with Toolbox(None, session_id="s", address=served.server.address) as toolbox:
        result = toolbox.call(name, arguments)
        assert (result.success, result.code in ("tool.arguments", "tool.unknown")) == (False, True)


def test_the_configuration_names_the_service_and_the_key(
    served: Served, monkeypatch: pytest.MonkeyPatch, workspace: Workspace
) -> None:
    monkeypatch.setenv("CARREL_SANDBOX_ADDR", served.server.address)
    monkeypatch.setenv("CARREL_SANDBOX_KEY", served.key("by-variable", "critic"))
    with Toolbox(workspace, "critic") as toolbox:
        toolbox.call("file_list", {"path": "."})
        assert served.path("abc-123", tenant="by-variable").exists()
        assert "file_write" not in toolbox.names
    with Toolbox(workspace, "developer") as toolbox:
        assert toolbox.call("file_list", {"path": "."}).code == "access.role"
        with pytest.raises(RoleDeniedError):
            toolbox.schemas()
    with Toolbox(workspace, here=True) as toolbox:
        assert toolbox.call("file_write", {"path": "here", "content": ""}).success
    assert workspace.exists("here")


def test_a_key_that_is_not_known_is_an_answer(served: Served) -> None:
    with Toolbox(None, session_id="s", address=served.server.address, key="carrel_no_such") as toolbox:
        result = toolbox.call("file_list", {"path": "."})
        assert (result.success, result.code) == (False, "caller.unknown")
        assert "carrel_no_such" not in str(result)
        with pytest.raises(UnauthenticatedError):
            _ = toolbox.names


# Nobody answers


def test_a_service_that_cannot_be_reached_is_said_and_nothing_is_done_here(
    workspace: Workspace, nowhere: str
) -> None:
    with Toolbox(workspace, address=nowhere) as toolbox:
        for result in (
            toolbox.call("file_write", {"path": "a", "content": "x"}),
            asyncio.run(toolbox.acall("file_write", {"path": "a", "content": "x"})),
        ):
            assert (result.success, result.code) == (False, "service.unreachable")
            assert result.error is not None
            for said in (nowhere, "`carrel serve`", "address"):
                assert said in result.error
        for ask in (toolbox.schemas, toolbox.tools, lambda: toolbox.names):
            with pytest.raises(UnreachableError, match=nowhere):
                ask()
    assert not workspace.exists("a")


def test_what_answers_but_is_no_service_of_ours_is_an_error(workspace: Workspace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with Toolbox(workspace, address=f"127.0.0.1:{port}") as toolbox:
            running = asyncio.run(_answered_with(toolbox, listener, b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    assert running.code == "service.unreachable"


async def _answered_with(toolbox: Toolbox, listener: socket.socket, answer: bytes) -> Any:
    calling = asyncio.create_task(toolbox.acall("file_list", {"path": "."}))
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    other, _ = await loop.sock_accept(listener)
    with other:
        await loop.sock_sendall(other, answer)
    return await calling


def test_a_task_that_is_cancelled_ends_the_work_there(served: Served) -> None:
    async def cancelled() -> None:
        with Toolbox(None, session_id="cancelled", address=served.server.address) as toolbox:
            arguments = {"code": FOR_EVER, "timeout": 300}
            running = asyncio.create_task(toolbox.acall("python_executor", arguments))
            await asyncio.to_thread(until, lambda: len(served.service.executions) == 1)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await asyncio.to_thread(until, lambda: len(served.service.executions) == 0)

    asyncio.run(cancelled())


def test_output_comes_from_the_service_while_code_runs(served: Served) -> None:
    seen: list[tuple[str, bytes]] = []

    def remember(stream: str, data: bytes) -> None:
        seen.append((stream, data))
        served.path("streamed", "go").write_text("")

    async def run() -> ToolResult:
        with Toolbox(None, session_id="streamed", address=served.server.address) as toolbox:
            return await toolbox.acall("python_executor", {"code": UNTIL_GO}, on_output=remember)

    result = asyncio.run(run())
    assert seen == [("stdout", b"begun\n"), ("stdout", b"end\n")]
    assert result.output["stdout"] == "begun\nend\n"


def test_an_iterator_that_is_closed_ends_the_work_there(served: Served) -> None:
    async def run() -> None:
        with Toolbox(None, session_id="closed", address=served.server.address) as toolbox:
            items = toolbox.astream("python_executor", {"code": FOR_EVER, "timeout": 300})
            assert await anext(items) == ToolOutput(stream="stdout", data=b"begun\n")
            assert len(served.service.executions) == 1
            await items.aclose()
            await asyncio.to_thread(until, lambda: len(served.service.executions) == 0)

    asyncio.run(run())


def test_what_goes_wrong_with_a_streamed_call_is_its_result(served: Served, nowhere: str) -> None:
    async def results(toolbox: Toolbox, name: Any, arguments: Any) -> list[Any]:
        return [item async for item in toolbox.astream(name, arguments)]

    with Toolbox(None, session_id="wrong", address=served.server.address) as toolbox:
        for name, arguments, code in (
            ("none", {}, "tool.unknown"),
            (5, {}, "tool.unknown"),
            ("bash", {"comand": "ls"}, "tool.arguments"),
            ("bash", object(), "tool.arguments"),
            ("bash", {"command": "cat missing"}, "tool.status"),
        ):
            *_, result = asyncio.run(results(toolbox, name, arguments))
            assert (result.success, result.code) == (False, code)
    with Toolbox(None, session_id="wrong", address=nowhere) as toolbox:
        (result,) = asyncio.run(results(toolbox, "bash", {"command": "ls"}))
        assert result.code == "service.unreachable"


def test_a_closed_toolbox_answers_that_it_is_closed(served: Served) -> None:
    toolbox = Toolbox(None, session_id="s", address=served.server.address)
    toolbox.close()
    toolbox.close()
    assert toolbox.call("file_list", {"path": "."}).code == "workspace.closed"
    assert asyncio.run(toolbox.acall("file_list", {"path": "."})).code == "workspace.closed"
    with pytest.raises(ClosedError):
        toolbox.schemas()


# How it is made


def test_what_only_counts_here_cannot_be_chosen_for_a_service(workspace: Workspace, nowhere: str) -> None:
    with pytest.raises(ValueError, match="option 'allowed_paths' cannot be set"):
        Toolbox(workspace, address=nowhere, allowed_paths=["sub"])
    with pytest.raises(ValueError, match="session_id is required"):
        Toolbox(None, address=nowhere)
    with pytest.raises(ValueError, match="a workspace is needed"):
        Toolbox(None, session_id="s")


@pytest.mark.parametrize(
    "address",
    ["", "host:port", "http://host:1", "host:0", "host:99999", "user:secret@host:1", "unix:/x", "a b"],
)
def test_an_invalid_address_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RemoteTools(address, "s")
    assert "secret" not in str(caught.value)


def test_a_key_that_cannot_be_sent_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        RemoteTools("host:1", "s", key="secret\n")
    assert "secret" not in str(caught.value)


# The command line


def carrel(*words: str, **variables: str) -> tuple[int, Any]:
    answer = execute(*words, environ={**os.environ, **variables})
    assert answer.out, answer.err
    return answer.status, answer.json


def test_the_command_line_calls_the_service_that_is_configured(served: Served, tmp_path: Path) -> None:
    words = ("tool", "from-cli", "file_write", '{"path": "a", "content": "x"}', "--role", "developer")
    address = {"CARREL_SANDBOX_ADDR": served.server.address, "CARREL_SESSIONS_DIR": str(tmp_path / "none")}
    status, answer = carrel(*words, **address)
    assert (status, answer["output"]) == (0, "/workspace/a")
    assert served.path("from-cli", "a").read_text() == "x"
    assert not (tmp_path / "none").exists()
    carrel("--sessions-dir", str(tmp_path / "own"), *words, **address)
    assert (tmp_path / "own/from-cli/a").read_text() == "x"


def test_the_command_line_says_that_no_service_answers(nowhere: str) -> None:
    status, answer = carrel("tool", "s", "file_list", '{"path": "."}', CARREL_SANDBOX_ADDR=nowhere)
    assert (status, answer["metadata"]["code"]) == (5, "service.unreachable")


def test_the_command_line_lists_the_tools_of_the_service_that_is_configured(
    served: Served, nowhere: str, tmp_path: Path
) -> None:
    address = {"CARREL_SANDBOX_ADDR": served.server.address}
    bound = {**address, "CARREL_SANDBOX_KEY": served.key("lists", role="critic")}
    status, answer = carrel("tools", "--json", **bound)
    assert (status, {tool["name"] for tool in answer["tools"]}) == (0, {*CRITIC})
    _, schemas = carrel("tools", "--format", "anthropic", **bound)
    assert {schema["name"] for schema in schemas} == {*CRITIC}
    _, here = carrel("--sessions-dir", str(tmp_path), "tools", "--role", "developer", "--json", **bound)
    assert {tool["name"] for tool in here["tools"]} > {*CRITIC}
    for variables, status in (({"CARREL_SANDBOX_ADDR": nowhere}, 5), (bound, 3)):
        refused = execute("tools", "--role", "developer", environ={**os.environ, **variables})
        assert (refused.status, refused.out) == (status, b""), refused.err
