"""What each caller is offered, and may do."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from carrel.sessions.manager import WorkspaceManager
from tests.fronts.mcp.conftest import Near

WRITING = {"file_write", "file_edit", "file_delete", "file_move", "destroy_session", "reset_workspace"}
RUNNING = {"python_executor"}
REPLACED = {"execute_code", "cancel_execution"}
"""Are not listed beside `python_executor`."""


def test_a_role_is_offered_its_own_tools_and_can_call_no_other(near: Near) -> None:
    talk = near(role="generalist")
    assert not (WRITING | RUNNING | REPLACED) & set(talk.tools)
    assert {"file_read", "file_list", "bash", "create_session", "get_workspace_info"} <= set(talk.tools)
    for tool in (*WRITING, *RUNNING, *REPLACED):
        with pytest.raises(MCPError, match="There is no tool"):
            talk.call(tool, session="s1")
    with pytest.raises(MCPError, match="There is no tool"):
        talk.call("destroy_session")


def test_a_role_that_may_write_is_offered_what_writes(near: Near) -> None:
    assert set(near(role="developer").tools) >= WRITING | RUNNING


def test_one_tool_to_run_code_is_listed_and_the_other_still_works(near: Near) -> None:
    talk = near(role="developer")
    assert not (REPLACED | {"list_runtimes"}) & set(talk.tools)
    assert talk.code("execute_code", session="s1", code="1", language="ruby") == "tool.arguments"
    assert talk.output("list_runtimes")
    alone = near(role="developer", profiles=("sessions",)).tools
    assert alone == [
        *(
            "create_session",
            "get_active_sessions",
            "get_workspace_info",
            "reset_workspace",
            "destroy_session",
        ),
        *("execute_code", "cancel_execution", "list_runtimes", "list_available_packages"),
    ]
    assert set(near(role="developer", profiles=("mcp", "sessions")).tools) >= REPLACED


def test_who_is_bound_to_a_session_cannot_delete_it(near: Near) -> None:
    talk = near(role="developer", session="s1")
    talk.output("file_write", path="a", content="1")
    assert "destroy_session" not in talk.tools
    for arguments in ({}, {"session": "s1"}, {"session": "s2"}):
        with pytest.raises(MCPError, match="There is no tool"):
            talk.call("destroy_session", **arguments)
    assert talk.output("file_read", path="a") == "1"


def test_a_role_that_nobody_configured_has_only_the_tools_that_need_none(near: Near) -> None:
    talk = near(role="nobody")
    assert set(talk.tools) == {
        *("create_session", "get_active_sessions", "get_workspace_info"),
        *("list_runtimes", "list_available_packages"),
    }
    talk.output("create_session", session_id="s1")
    assert talk.refusal("carrel://s1/")["code"] == "access.role"


def test_the_role_of_a_session_serves_a_caller_without_one(near: Near, tmp_path: Path) -> None:
    WorkspaceManager(tmp_path / "sessions").create("s1", role="developer").close()
    assert "file_write" in near(session="s1").tools
    assert "file_write" not in near(session="s2").tools
    talk = near()
    assert talk.output("file_write", session="s1", path="a", content="1")
    with pytest.raises(MCPError, match="There is no tool"):
        talk.call("file_write", session="s2", path="a", content="1")


def test_a_caller_without_a_role_has_no_tools_about_sessions_but_those_of_that_role(
    near: Near, tmp_path: Path
) -> None:
    WorkspaceManager(tmp_path / "sessions").create("s1", role="developer").close()
    assert not (WRITING | RUNNING) & set(near().tools)
    assert set(near(session="s1").tools) >= (WRITING | RUNNING) - {"destroy_session"}
    talk = near()
    talk.output("create_session", session_id="s2")
    for tool in ("destroy_session", "reset_workspace", "execute_code"):
        with pytest.raises(MCPError, match="There is no tool"):
            talk.call(tool, session="s2", **({"code": "1"} if tool == "execute_code" else {}))
    assert talk.output("reset_workspace", session="s1")


def test_what_runs_for_a_caller_without_a_role_may_do_what_the_role_may(
    guest_environ: dict[str, str], near: Near, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[roles.runner]\ntools = ["file_read", "python_executor"]\n')
    monkeypatch.setenv("CARREL_CONFIG", str(file))
    WorkspaceManager(tmp_path / "sessions").create("s1", role="runner").close()
    result = near().envelope("execute_code", session="s1", code="open('a', 'w')")
    assert not result["success"]
    assert "Permission denied" in result["error"]


def test_who_is_bound_to_a_session_need_not_name_it(near: Near) -> None:
    talk = near(role="developer", session="s1")
    assert not {"create_session", "get_active_sessions"} & set(talk.tools)
    tools = {tool.name: tool for tool in talk.run(talk.client.list_tools).tools}
    assert tools["file_read"].input_schema["required"] == ["path"]
    talk.output("file_write", path="a", content="1")
    assert talk.output("file_read", path="a", session="s1") == "1"
    assert talk.read("carrel:///a") == talk.read("carrel://s1/a") == "1"


def test_who_is_bound_to_a_session_finds_no_other(near: Near) -> None:
    other = near(role="developer")
    other.output("file_write", session="s2", path="a", content="secret")
    talk = near(role="developer", session="s1")
    talk.output("file_write", path="a", content="1")
    assert talk.code("file_read", session="s2", path="a") == "session.missing"
    assert talk.code("reset_workspace", session="s2") == "session.missing"
    assert talk.refusal("carrel://s2/a") | {"message": ""} == talk.refusal("carrel://s3/a") | {"message": ""}
    assert other.output("file_read", session="s2", path="a") == "secret"


def test_of_two_tools_with_one_name_the_first_profile_counts(near: Near) -> None:
    talk = near(role="developer", session="s1", profiles=("files", "mcp"))
    assert len(talk.tools) == len(set(talk.tools))
    assert {"exists", "read_media_file"} <= set(talk.tools)
    talk.call("write_file", path="a", content="1")
    assert "data" in talk.envelope("read_file", path="a")
    assert "content" in talk.envelope("read_text_file", path="a")
