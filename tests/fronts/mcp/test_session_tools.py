"""The tools about sessions themselves."""

from __future__ import annotations

import pytest

from tests.fronts.mcp.conftest import Near
from tests.fronts.mcp.talk import Talk


@pytest.fixture
def talk(near: Near) -> Talk:
    return near(role="developer")


def test_code_in_another_language_is_refused(talk: Talk) -> None:
    told = talk.envelope("execute_code", session="s1", code="1", language="ruby")
    assert told["metadata"]["code"] == "tool.arguments"
    assert told["error"].startswith("Unsupported language: 'ruby'; the languages are: python")


@pytest.mark.parametrize(
    "arguments",
    [
        {"code": ""},
        {"code": "x" * 10_001},
        {"code": "1", "timeout": 0},
        {"code": "1", "timeout": 301},
        {"code": "1", "timeout": "30"},
        {},
    ],
)
def test_what_execute_code_does_not_take_is_refused_before_anything_is_made(
    talk: Talk, arguments: dict[str, object]
) -> None:
    assert talk.code("execute_code", session="s1", **arguments) == "tool.arguments"
    assert talk.code("get_workspace_info", session="s1") == "session.missing"


def test_code_that_fails_says_how(near: Near, guest_environ: dict[str, str]) -> None:
    talk = near(role="developer", session="s1")
    told = talk.envelope("execute_code", code="print(1)\nraise ValueError('no')")
    assert not told["success"]
    assert told["error"] == "The code ended with status 1: ValueError: no"
    assert (told["output"]["stdout"], told["output"]["exit_code"]) == ("1\n", 1)
    assert told["metadata"]["code"] == "tool.status"


def test_code_that_runs_can_be_cancelled_by_the_name_that_its_progress_tells(
    near: Near, guest_environ: dict[str, str]
) -> None:
    talk = near(role="developer", session="s1")
    cancelled: list[object] = []

    async def run() -> dict[str, object]:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            assert message is not None
            name = message.partition(":")[0]
            if not cancelled:
                answer = await talk.client.call_tool("cancel_execution", {"execution_id": name})
                cancelled.append(answer.structured_content["output"])

        code = {"code": "print('begun', flush=True)\nwhile True: pass", "timeout": 60}
        answer = await talk.client.call_tool("execute_code", code, progress_callback=hear)
        told: dict[str, object] = answer.structured_content
        return told

    told = talk.run(run)
    assert not told["success"]
    metadata = told["metadata"]
    assert isinstance(metadata, dict)
    assert cancelled[0] == {"execution_id": metadata["execution_id"], "cancelled": True}


def test_what_never_ran_cannot_be_cancelled(talk: Talk) -> None:
    assert talk.code("cancel_execution", session="s1", execution_id="x") == "request.unknown"


def test_a_session_cannot_be_made_twice_or_under_any_name(talk: Talk) -> None:
    made = talk.output("create_session")
    assert talk.code("create_session", session_id=made["session_id"]) == "session.exists"
    assert talk.code("create_session", session_id="../x") == "session.invalid_id"


def test_sessions_are_listed_page_by_page(talk: Talk) -> None:
    for name in ("a", "b", "c"):
        talk.output("create_session", session_id=name)
    first = talk.output("get_active_sessions", count=2)
    assert [each["session_id"] for each in first["sessions"]] == ["a", "b"]
    rest = talk.output("get_active_sessions", count=2, after=first["next"])
    assert ([each["session_id"] for each in rest["sessions"]], rest["next"]) == (["c"], None)


def test_what_code_may_use_is_told_without_the_host(talk: Talk) -> None:
    (runtime,) = talk.output("list_runtimes")["runtimes"]
    assert runtime.keys() == {"language", "version"}
    assert runtime["language"] == "python"
    packages = talk.output("list_available_packages")["python"]
    assert {"numpy", "sandbox_utils"} <= packages.keys()
