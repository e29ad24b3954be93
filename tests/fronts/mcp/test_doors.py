"""The same conversation through every door: over pipes and over a socket, in both eras of the protocol."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

from tests.fronts.mcp.conftest import ONE_AT_A_TIME, Http
from tests.fronts.mcp.talk import LEGACY, MODERN, Talk, command, talking

SESSION = "s1"


@pytest.fixture(
    scope="module",
    params=[("stdio", LEGACY), ("stdio", MODERN), ("http", LEGACY), ("http", MODERN)],
    ids="-".join,
)
def talk(
    request: pytest.FixtureRequest, guest_environ: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Talk]:
    """A developer who may use any session, and run one thing at a time."""
    door, mode = request.param
    if door == "http":
        http: Http = request.getfixturevalue("http")
        key = http.key(f"developer-{mode}", role="developer")
        with http.talking(key, mode) as found:
            yield found
        return
    env = {**guest_environ, ONE_AT_A_TIME: "1"}
    server = command(tmp_path_factory.mktemp("started") / "sessions", "--role", "developer", env=env)
    with talking(server, mode) as found:
        yield found


def test_the_era_is_the_one_that_the_client_opens_with(talk: Talk, request: pytest.FixtureRequest) -> None:
    assert talk.client.protocol_version == ("2025-11-25" if LEGACY in request.node.name else "2026-07-28")
    assert talk.client.server_info is not None
    assert talk.client.server_info.name == "carrel"


def test_every_tool_says_what_it_does_to_files_and_takes_a_session(talk: Talk) -> None:
    tools = {tool.name: tool for tool in talk.run(talk.client.list_tools).tools}
    assert {"file_read", "file_write", "bash", "python_executor", "destroy_session"} <= tools.keys()
    assert all(tool.title for tool in tools.values())
    read, write = tools["file_read"], tools["file_write"]
    assert read.annotations is not None
    assert read.annotations.read_only_hint is True
    assert write.annotations is not None
    assert (write.annotations.read_only_hint, write.annotations.destructive_hint) == (False, True)
    assert read.input_schema["required"] == ["session", "path"]
    assert read.input_schema["additionalProperties"] is False


def test_what_is_written_can_be_read(talk: Talk) -> None:
    talk.output("file_write", session=SESSION, path="a.txt", content="one\n")
    answer = talk.envelope("file_read", session=SESSION, path="a.txt")
    assert answer["output"] == "one\n"
    assert answer["metadata"]["path"] == "/workspace/a.txt"
    assert talk.text("file_read", session=SESSION, path="a.txt") == "one\n"


def test_what_goes_wrong_in_a_tool_is_an_answer(talk: Talk) -> None:
    answer = talk.call("file_read", session=SESSION, path="missing")
    assert answer.is_error
    assert answer.structured_content["metadata"]["code"] == "path.missing"
    assert talk.code("file_read", session=SESSION) == "tool.arguments"
    assert talk.code("file_read", session=SESSION, path="a", more=1) == "tool.arguments"
    assert talk.code("file_read", path="a") == "tool.arguments"
    assert talk.code("file_read", session="../x", path="a") == "session.invalid_id"
    assert talk.code("file_read", session=7, path="a") == "tool.arguments"


def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(talk: Talk) -> None:
    with pytest.raises(MCPError, match="There is no tool 'nothing'") as error:
        talk.call("nothing")
    assert error.value.code == -32602


def test_code_runs_on_the_files_of_the_session(talk: Talk) -> None:
    code = "print(open('made.txt', 'w').write('abc'))"
    ran = talk.envelope("execute_code", session=SESSION, code=code)
    assert ran["success"]
    assert (ran["output"]["stdout"], ran["output"]["files_created"]) == ("3\n", ["made.txt"])
    assert talk.output("file_read", session=SESSION, path="made.txt") == "abc"


def test_a_file_is_a_resource(talk: Talk) -> None:
    talk.output("file_write", session=SESSION, path="sub/b c.json", content='{"b": 1}', create_dirs=True)
    assert talk.read(f"carrel://{SESSION}/sub/b%20c.json") == '{"b": 1}'
    listed = json.loads(talk.read(f"carrel://{SESSION}/sub"))
    assert [(each["name"], each["kind"]) for each in listed] == [("b c.json", "file")]
    assert talk.read(listed[0]["uri"]) == '{"b": 1}'
    sessions = talk.run(talk.client.list_resources).resources
    assert f"carrel://{SESSION}/" in [each.uri for each in sessions]


def test_who_listens_for_a_file_is_told_of_every_change(talk: Talk) -> None:
    talk.output("file_write", session=SESSION, path="watched", content="1")
    uri = f"carrel://{SESSION}/watched"

    async def listen() -> str:
        async with talk.client.listen(resource_subscriptions=[uri]) as heard:
            await talk.client.call_tool("file_write", {"session": SESSION, "path": "other", "content": ""})
            await talk.client.call_tool("file_write", {"session": SESSION, "path": "watched", "content": "2"})
            event = await anext(aiter(heard))
            assert isinstance(event, ResourceUpdated)
            return event.uri

    async def subscribe() -> str:
        send, receive = anyio.create_memory_object_stream[str](10)

        async def hear(message: object) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                await send.send(message.params.uri)

        talk.client.session._message_handler = hear
        with warnings.catch_warnings():
            # It is of the older era, which is why it is tried.
            warnings.simplefilter("ignore")
            await talk.client.subscribe_resource(uri)
            await talk.client.call_tool("file_write", {"session": SESSION, "path": "watched", "content": "3"})
            with anyio.fail_after(30), receive:
                heard = await receive.receive()
            await talk.client.unsubscribe_resource(uri)
        send.close()
        return heard

    is_modern = talk.client.protocol_version == "2026-07-28"
    assert talk.run(listen if is_modern else subscribe) == uri


@pytest.mark.timeout(45)  # the call would run for 60 s
def test_a_long_call_tells_how_far_it_is_and_stops_when_nobody_wants_it(talk: Talk) -> None:
    heard: list[tuple[float, str | None]] = []

    async def wait() -> bool:
        with anyio.CancelScope() as scope:

            async def hear(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, message))
                scope.cancel()

            forever = {"session": SESSION, "code": "while True: pass", "timeout": 60}
            await talk.client.call_tool("python_executor", forever, progress_callback=hear)
        return scope.cancelled_caught

    assert talk.run(wait)
    assert heard[0][0] > 0
    # No second thing may run before the first one has ended.
    answers = (talk.envelope("bash", session=SESSION, command="echo again") for _ in repeat(None))
    codes = (answer["metadata"].get("code") for answer in answers)
    assert next(code for code in codes if code != "limit.executions") is None


def test_sessions_are_made_looked_at_reset_and_ended(talk: Talk) -> None:
    made = talk.output("create_session", session_id="made", ttl_seconds=60)
    assert (made["session_id"], made["ttl_seconds"]) == ("made", 60)
    talk.output("file_write", session="made", path="a", content="12345")
    assert talk.output("get_workspace_info", session="made")["usage"] == {"disk_bytes": 5, "entries": 1}
    assert "made" in [each["session_id"] for each in talk.output("get_active_sessions")["sessions"]]
    talk.output("reset_workspace", session="made")
    assert talk.code("file_read", session="made", path="a") == "path.missing"
    talk.output("destroy_session", session="made")
    assert talk.code("get_workspace_info", session="made") == "session.missing"
    assert talk.code("destroy_session", session="made") == "session.missing"


def test_no_answer_speaks_of_the_host(talk: Talk, tmp_path: Path) -> None:
    answers = [
        talk.call("get_workspace_info", session=SESSION),
        talk.call("get_active_sessions"),
        talk.call("list_runtimes"),
        talk.call("list_available_packages"),
        talk.call("execute_code", session=SESSION, code="print(1)"),
        talk.call("file_read", session=SESSION, path="/etc/passwd"),
    ]
    told = " ".join(answer.model_dump_json() for answer in answers)
    for word in (str(tmp_path.parent), "site-packages", "root:"):
        assert word not in told
