"""The tools over gRPC answer as they do in the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from carrel.errors import RoleDeniedError
from carrel.fronts.grpc.handlers.tools import tool_answer, tool_arguments
from carrel.fronts.grpc.streams import PIECE_BYTES
from carrel.fronts.json_document import MAX_VALUES
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.core.spec import Profile
from carrel.tools.core.table import TOOLS
from carrel.tools.remote import parse_tool_answer
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolImage, ToolResult
from tests.fronts.grpc.handlers.test_executions import FOR_EVER
from tests.fronts.grpc.handlers.test_files import until
from tests.fronts.grpc.serving import SECONDS, Served

DEVELOPER = messages.Context(role="developer")


def write(served: Served, session: str, path: str, content: str, **more: Any) -> messages.ToolAnswer:
    request = messages.FileWriteRequest(session_id=session, path=path, content=content, **more)
    answer: messages.ToolAnswer = served.call("FileWrite", request)
    return answer


# As in the examples that show what the role in the context is for


def test_a_developer_writes_a_file_that_the_next_request_reads(served: Served) -> None:
    answer = write(served, "persist-test", "data.txt", "test data", context=DEVELOPER)
    assert (answer.success, answer.output) == (True, "/workspace/data.txt")
    request = messages.FileReadRequest(session_id="persist-test", context=DEVELOPER, path="data.txt")
    again = served.call("FileRead", request)
    assert (again.success, again.output, again.size_bytes) == (True, "test data", 9)


def test_without_the_role_of_a_developer_there_is_no_writing(served: Served) -> None:
    answer = write(served, "no-role", "test.txt", "Hello")
    assert (answer.success, answer.code) == (False, "tool.unknown")
    assert not served.path("no-role", "test.txt").exists()


def test_the_role_may_be_chosen_by_metadata_and_the_request_goes_before_it(served: Served) -> None:
    developer = served.by(role="developer")
    assert write(developer, "by-metadata", "a", "x").success
    assert not write(developer, "by-metadata", "a", "x", context=messages.Context(role="critic")).success


def test_json_comes_parsed(served: Served) -> None:
    write(served, "parsed", "config.json", '{"key": "value"}', context=DEVELOPER)
    answer = served.call("FileRead", messages.FileReadRequest(session_id="parsed", path="config.json"))
    assert answer.WhichOneof("payload") == "output_json"
    assert json.loads(answer.output_json) == {"key": "value"}
    assert json.loads(answer.metadata_json)["file_type"] == ".json"


def test_files_are_listed_by_pattern(served: Served) -> None:
    for name in ("main.py", "lib/utils.py", "notes.md"):
        write(served, "listing", name, "x", create_dirs=True, context=DEVELOPER)
    request = messages.FileListRequest(session_id="listing", path=".", pattern="*.py", recursive=True)
    answer = served.call("FileList", request)
    assert sorted(each["path"] for each in json.loads(answer.output_json)) == ["lib/utils.py", "main.py"]
    assert json.loads(answer.metadata_json)["file_count"] == 2


def test_a_file_is_found_edited_and_deleted(served: Served, session: str) -> None:
    found = served.call("FileSearch", messages.FileSearchRequest(session_id=session, query="two"))
    assert "a.txt" in found.output_json
    edit = messages.FileEditRequest(
        session_id=session, context=DEVELOPER, path="a.txt", old_text="two", new_text="2"
    )
    assert served.call("FileEdit", edit).success
    assert served.path(session, "a.txt").read_bytes() == b"one\n2\nthree\n"
    delete = messages.FileDeleteRequest(session_id=session, context=DEVELOPER, path="a.txt")
    assert served.call("FileDelete", delete).success
    assert not served.path(session, "a.txt").exists()


def test_a_command_runs_and_one_with_a_metacharacter_does_not(served: Served, session: str) -> None:
    ran = served.call(
        "ExecuteCommand", messages.ExecuteCommandRequest(session_id=session, command="wc -l a.txt")
    )
    assert ran.success
    assert "3 a.txt" in ran.output + ran.output_json
    assert ran.exit_code == 0
    request = messages.ExecuteCommandRequest(session_id=session, command="ls; rm -rf /")
    assert served.call("ExecuteCommand", request).code == "shell.metacharacter"


def test_code_runs_for_a_role_that_may_run_code(served: Served, session: str) -> None:
    request = messages.ExecutePythonRequest(session_id=session, context=DEVELOPER, code="print(6 * 7)")
    answer = served.call("ExecutePython", request)
    assert answer.success, answer.error
    assert "42" in answer.output + answer.output_json
    plain = messages.ExecutePythonRequest(session_id=session, code="print(6 * 7)")
    assert served.call("ExecutePython", plain).code == "tool.unknown"


def test_output_comes_in_messages_and_the_result_at_last(served: Served, session: str) -> None:
    request = messages.CallToolRequest(
        session_id=session, name="bash", arguments_json='{"command": "cat a.txt missing"}'
    )
    first, second, last = served.call("CallToolStream", request)
    assert first.stdout == b"one\ntwo\nthree\n"
    assert b"missing" in second.stderr
    wanted = served.call("CallTool", request)
    assert (last.result.output_json, last.result.error) == (wanted.output_json, wanted.error)


def test_long_output_comes_in_small_messages(served: Served, session: str) -> None:
    request = messages.CallToolRequest(
        session_id=session, name="bash", arguments_json='{"command": "seq 30000"}'
    )
    *output, last = served.call("CallToolStream", request)
    assert max(len(each.stdout) for each in output) == PIECE_BYTES
    assert b"".join(each.stdout for each in output).split() == [b"%d" % n for n in range(1, 30_001)]
    assert last.result.success


def test_a_streamed_call_that_nobody_reads_is_stopped(served: Served, session: str) -> None:
    arguments = json.dumps({"code": FOR_EVER, "timeout": 300})
    request = messages.CallToolRequest(
        session_id=session, context=DEVELOPER, name="python_executor", arguments_json=arguments
    )
    call = served.stub("CallToolStream")(request, timeout=SECONDS)
    assert next(call).stdout == b"begun\n"
    assert len(served.service.executions) == 1
    call.cancel()
    until(lambda: len(served.service.executions) == 0)


# Errors are answers


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "none"}, "tool.unknown"),
        ({"name": "bash", "arguments_json": "{"}, "request.invalid"),
        ({"name": "bash", "arguments_json": '{"comand": "ls"}'}, "tool.arguments"),
        ({"name": "bash", "profile": "none"}, "request.invalid"),
        ({"name": "bash", "session_id": "../etc"}, "session.invalid_id"),
    ],
)
def test_what_is_wrong_with_a_streamed_call_is_its_one_message(
    served: Served, session: str, fields: dict[str, Any], code: str
) -> None:
    request = messages.CallToolRequest(**{"session_id": session, **fields})
    (event,) = served.call("CallToolStream", request)
    assert (event.result.success, event.result.code) == (False, code)
    assert event.result == served.call("CallTool", request)


@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"path": "missing"}, "path.missing"),
        ({"path": "../../../etc/passwd"}, "path.escape"),
        ({"path": "/etc/passwd"}, "access.outside"),
        ({"path": "sub"}, "path.is_directory"),
        ({"path": ""}, "tool.arguments"),
        ({"path": "a.txt", "offset": -1}, "tool.arguments"),
        ({"path": "a.txt", "encoding": "morse"}, "tool.arguments"),
        ({"path": "a.txt", "session_id": "../etc"}, "session.invalid_id"),
        ({"path": "a.txt", "session_id": ""}, "session.invalid_id"),
    ],
)
def test_what_is_wrong_with_a_call_is_in_its_answer(
    served: Served, session: str, request_fields: dict[str, Any], code: str
) -> None:
    answer = served.call("FileRead", messages.FileReadRequest(**{"session_id": session, **request_fields}))
    assert (answer.success, answer.code) == (False, code)
    assert answer.error
    assert str(served.sessions) not in str(answer)


def test_a_key_answers_for_a_role_that_it_may_not_choose(served: Served) -> None:
    critic = served.by(served.key("critic-alone", "critic"))
    answer = write(critic, "s", "a", "x", context=DEVELOPER)
    assert (answer.success, answer.code) == (False, "access.role")
    request = messages.ListToolsRequest(context=DEVELOPER)
    with pytest.raises(RoleDeniedError):
        critic.call("ListTools", request)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1, column 2"),
        ("NaN", "number"),
        ("[" * 100_000, "nested"),
        ("9" * 5000, "number"),
        ("[]", "object"),
        ('{"path": 5}', "path"),
    ],
)
def test_arguments_that_cannot_be_read_are_named(served: Served, session: str, text: str, said: str) -> None:
    request = messages.CallToolRequest(session_id=session, name="file_read", arguments_json=text)
    answer = served.call("CallTool", request)
    assert not answer.success
    assert answer.code in ("request.invalid", "tool.arguments")
    assert said in answer.error


def test_arguments_with_too_many_values_are_refused_before_they_are_decoded(
    served: Served, session: str
) -> None:
    text = '{"path": [' + "0," * MAX_VALUES + "0]}"
    answer = served.call(
        "CallTool", messages.CallToolRequest(session_id=session, name="file_read", arguments_json=text)
    )
    assert (answer.success, answer.code) == (False, "limit.body")
    request = messages.CallRequest(session_id=session, operation="read", arguments_json=text)
    status, error = served.refusal("Call", request)
    assert (status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "limit.body")


def test_arguments_of_any_size_below_the_limits_are_read(served: Served, session: str) -> None:
    text = "x" * 2**21
    request = messages.CallRequest(
        session_id=session, operation="write", arguments_json=json.dumps({"path": "large", "data": text})
    )
    served.call("Call", request)
    assert served.path(session, "large").read_text() == text


def test_a_profile_that_is_not_there_is_named(served: Served, session: str) -> None:
    request = messages.CallToolRequest(session_id=session, name="file_read", profile="nope")
    answer = served.call("CallTool", request)
    assert answer.code == "request.invalid"
    assert "'nope'" in answer.error


# The same as in the library


CALLS: list[tuple[Profile, str, Any]] = [
    (Profile.AGENT, "file_read", {"path": "a.txt"}),
    (Profile.AGENT, "file_read", {"path": "sub/\ud800"}),
    (Profile.AGENT, "file_list", {"path": "."}),
    (Profile.AGENT, "nothing", {}),
    (Profile.AGENT, "file_read", None),
    (Profile.FILES, "read_file", {"path": "a.txt"}),
    (Profile.FILES, "exists", {"path": "nope"}),
    (Profile.FILES, "file_info", {"path": "nope"}),
    (Profile.EDITOR, "str_replace_based_edit_tool", {"command": "view", "path": "/workspace/a.txt"}),
    (Profile.CODING, "grep", {"pattern": "t"}),
    (Profile.MCP, "list_allowed_directories", {}),
    (Profile.MCP, "read_text_file", {"path": "a.txt", "head": 1}),
]


@pytest.mark.parametrize(("profile", "name", "arguments"), CALLS)
def test_any_tool_answers_what_it_answers_in_the_library(
    served: Served, session: str, profile: Profile, name: str, arguments: Any
) -> None:
    with (
        WorkspaceManager(served.sessions).open(session) as workspace,
        Toolbox(workspace, profile=profile) as own,
    ):
        expected = own.call(name, arguments)
    request = messages.CallToolRequest(
        session_id=session,
        context=DEVELOPER,
        name=name,
        profile=profile,
        arguments_json="" if arguments is None else json.dumps(arguments),
    )
    assert parse_tool_answer(served.call("CallTool", request)) == expected


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("format", ["json", "openai", "mcp"])
def test_the_tools_are_those_of_the_role(
    served: Served, tmp_path: Path, profile: Profile, format: str
) -> None:
    request = messages.ListToolsRequest(context=DEVELOPER, profile=profile, format=format)
    with WorkspaceManager(tmp_path / "own").create() as workspace, Toolbox(workspace, profile=profile) as own:
        assert json.loads(served.call("ListTools", request).tools_json) == own.schemas(format)


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(success=True),
        ToolResult(success=True, output=""),
        ToolResult(success=True, output="half a \ud800", metadata={"size_bytes": 2**70, "exit_code": "x"}),
        ToolResult(success=True, output=[1, None, {"a": "ü"}], metadata={"size_bytes": 5, "exit_code": 1}),
        ToolResult(success=True, data={"exists": False}),
        ToolResult(success=True, output={"on": 1}, model_text="on: 1\n"),
        ToolResult(
            success=True,
            images=(
                ToolImage(path="p", media_type="image/gif", size_bytes=3, width=2, height=1, data="AA=="),
            ),
        ),
        ToolResult(success=False, error="What?", metadata={"code": "path.missing", "path": "\ud800"}),
        ToolResult(success=False, output={"stdout": "x"}, error="", metadata={"code": "tool.status"}),
    ],
)
def test_a_result_comes_out_of_its_message_as_it_went_in(result: ToolResult) -> None:
    message = messages.ToolAnswer.FromString(tool_answer(result).SerializeToString())
    assert parse_tool_answer(message) == result


def test_every_field_of_a_tools_message_is_an_argument_of_the_tool() -> None:
    rows = {
        "file_read": messages.FileReadRequest(),
        "file_write": messages.FileWriteRequest(),
        "file_list": messages.FileListRequest(),
        "file_search": messages.FileSearchRequest(),
        "file_edit": messages.FileEditRequest(),
        "file_delete": messages.FileDeleteRequest(),
        "bash": messages.ExecuteCommandRequest(),
        "python_executor": messages.ExecutePythonRequest(),
    }
    for name, message in rows.items():
        schema = TOOLS[Profile.AGENT][name].load().parameters.schema()
        fields = {field.name for field in message.DESCRIPTOR.fields} - {"session_id", "context"}
        assert fields == set(schema["properties"]), name
        assert set(tool_arguments(message)) == set(schema["required"]), name
