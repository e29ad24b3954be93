"""Commands and code whose output comes as it is printed, and that end when nobody waits for them."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from carrel.errors import RequestError, RoleDeniedError, SessionMissingError
from carrel.fronts.grpc.dispatcher import MAX_FIELDS, _parser
from carrel.remote.json_codec import parse
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.runtimes.result import SandboxResult
from carrel.shell.result import ShellResult
from tests.fronts.grpc.handlers.test_files import until
from tests.fronts.grpc.serving import SECONDS, Served

FOR_EVER = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.01)"


def printed(events: list[messages.ExecutionEvent]) -> tuple[bytes, bytes, Any]:
    """What came out of both streams, and the result."""
    assert [each.WhichOneof("event") for each in (events[0], events[-1])] == ["execution_id", "result_json"]
    out = b"".join(each.stdout for each in events)
    err = b"".join(each.stderr for each in events)
    assert events[-1].offset == len(out) + len(err)
    return out, err, json.loads(events[-1].result_json)


def test_a_command_tells_what_it_prints_and_how_it_ended(served: Served, session: str) -> None:
    request = messages.ExecuteCommandStreamRequest(session_id=session, command="cat a.txt nope")
    out, err, result = printed(served.call("ExecuteCommandStream", request))
    ended = parse(result, ShellResult)
    assert (out, ended.stdout, ended.stderr) == (b"one\ntwo\nthree\n", out, err)
    assert ended.exit_code == 1


def test_a_command_reads_what_it_is_given_and_prints_it_in_small_pieces(served: Served, session: str) -> None:
    stdin = b"line\n" * 20_000
    request = messages.ExecuteCommandStreamRequest(session_id=session, command="cat -", stdin=stdin)
    events = served.call("ExecuteCommandStream", request)
    assert printed(events)[0] == stdin
    assert all(len(each.stdout) <= 2**14 for each in events)


def test_a_named_shell_remembers_where_it_is(served: Served, session: str) -> None:
    def run(command: str, shell: str | None) -> bytes:
        request = messages.ExecuteCommandStreamRequest(session_id=session, command=command, shell=shell)
        return printed(served.call("ExecuteCommandStream", request))[0]

    run("cd sub", "mine")
    assert run("pwd", "mine") == b"/workspace/sub\n"
    assert run("pwd", None) == b"/workspace\n"


def test_code_tells_what_it_prints_and_what_it_changed(served: Served, session: str) -> None:
    code = (
        "import sys, os\nprint(sys.argv[1:], os.environ['A'], input())\n"
        "open('new', 'w').write('x')\nsys.exit(3)"
    )
    request = messages.ExecutePythonStreamRequest(
        session_id=session, code=code, argv=["x", "ü"], env={"A": "b"}, stdin=b"given\n"
    )
    out, _, result = printed(served.call("ExecutePythonStream", request))
    ended = parse(result, SandboxResult)
    assert out == "['x', 'ü'] b given\n".encode()
    assert (ended.exit_code, ended.files_created, ended.workspace_path) == (3, ["new"], "/workspace")


def test_a_file_of_the_workspace_is_run(served: Served, session: str) -> None:
    served.path(session, "main.py").write_text("print('from a file')")
    request = messages.ExecutePythonStreamRequest(session_id=session, file="main.py")
    assert printed(served.call("ExecutePythonStream", request))[0] == b"from a file\n"


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (messages.ExecutePythonStreamRequest(code="", timeout_seconds=-1), RequestError),
        (messages.ExecutePythonStreamRequest(), RequestError),
        (messages.ExecutePythonStreamRequest(code="1", session_id="none"), SessionMissingError),
        (
            messages.ExecutePythonStreamRequest(code="1", context=messages.Context(role="critic")),
            RoleDeniedError,
        ),
    ],
)
def test_code_that_cannot_be_run_is_an_error(
    served: Served, session: str, request_: messages.ExecutePythonStreamRequest, kind: type[Exception]
) -> None:
    request_.session_id = request_.session_id or session
    assert type(served.refusal("ExecutePythonStream", request_)[1]) is kind


def test_code_whose_time_is_over_ends_as_such(served: Served, session: str) -> None:
    request = messages.ExecutePythonStreamRequest(session_id=session, code=FOR_EVER, timeout_seconds=1)
    out, _, result = printed(served.call("ExecutePythonStream", request))
    assert out == b"begun\n"
    assert parse(result, SandboxResult).timed_out


def running(served: Served) -> int:
    return len(served.service.executions)


def test_whoever_goes_away_ends_what_runs(served: Served, session: str) -> None:
    request = messages.ExecutePythonStreamRequest(session_id=session, code=FOR_EVER)
    call = served.stub("ExecutePythonStream")(request, timeout=SECONDS)
    assert [next(call).WhichOneof("event") for _ in range(2)] == ["execution_id", "stdout"]
    assert running(served) == 1
    call.cancel()
    until(lambda: running(served) == 0)


def test_a_deadline_ends_what_runs(served: Served, session: str) -> None:
    request = messages.ExecutePythonStreamRequest(session_id=session, code=FOR_EVER)
    call = served.stub("ExecutePythonStream")(request, timeout=0.5)
    with pytest.raises(grpc.RpcError):
        list(call)
    assert call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    until(lambda: running(served) == 0)


def test_a_tool_that_nobody_waits_for_is_stopped(served: Served, session: str) -> None:
    request = messages.ExecutePythonRequest(
        session_id=session, context=messages.Context(role="developer"), code=FOR_EVER, timeout=300
    )
    call = served.stub("ExecutePython").future(request, timeout=SECONDS)
    until(lambda: running(served) == 1)
    call.cancel()
    until(lambda: running(served) == 0)


@pytest.mark.parametrize(
    "more", [{"argv": ["a"] * MAX_FIELDS}, {"env": {str(number): "" for number in range(MAX_FIELDS)}}]
)
def test_too_many_arguments_are_refused_before_they_are_parsed(
    served: Served, session: str, more: dict[str, Any]
) -> None:
    request = messages.ExecutePythonStreamRequest(session_id=session, code="1", **more)
    status, error = served.refusal("ExecutePythonStream", request)
    assert (status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "limit.body")


@pytest.mark.parametrize("data", [b"\x08", b"\xff" * 11, b"\x0b\x01", b"\x0d\0"])
def test_bytes_that_are_no_message_are_left_to_the_parser(data: bytes) -> None:
    parse = _parser(messages.DESCRIPTOR.services_by_name["WorkspaceService"].methods_by_name["GetSession"])
    assert isinstance(parse(data), RequestError)
