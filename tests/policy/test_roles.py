"""Roles: which tools somebody has, and what follows from that."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.config.table import DEFAULT_ROLES
from carrel.policy.roles import Role

NAMES = st.sampled_from(
    ["file_read", "file_write", "file_list", "file_edit", "bash", "python_executor", "read", "x", ""]
)


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("developer", ("file_read", "file_write", "file_list", "bash", "python_executor")),
        ("generalist", ("file_read", "file_list", "bash")),
        ("critic", ("file_read", "file_list", "bash")),
    ],
)
def test_the_roles_that_are_there_by_default(name: str, tools: tuple[str, ...]) -> None:
    assert Role.find(name, DEFAULT_ROLES) == Role(name, tools)
    assert len(DEFAULT_ROLES) == 3


@pytest.mark.parametrize("name", ["", "nobody", "Developer", "developer ", "default", "*"])
def test_a_role_that_is_not_configured_has_no_tools(name: str) -> None:
    role = Role.find(name, DEFAULT_ROLES)
    assert (role.name, role.tools) == (name, ())
    assert not role.may_write
    assert not role.may_run_code


def test_only_developers_write_and_run_code() -> None:
    roles = [Role.find(name, DEFAULT_ROLES) for name in DEFAULT_ROLES]
    assert [role.name for role in roles if role.may_write] == ["developer"]
    assert [role.name for role in roles if role.may_run_code] == ["developer"]


def test_a_tool_comes_along_with_another() -> None:
    role = Role("r", ("file_read", "file_edit"))
    assert role.allows("file_search", "file_read")
    assert role.allows("file_edit", "file_write")
    assert not role.allows("file_write", "file_write")
    assert not role.allows("file_delete", "file_write")
    assert not role.allows("anything")


@given(NAMES, NAMES | st.none(), st.lists(NAMES))
def test_a_role_allows_what_it_names_and_nothing_else(
    tool: str, along_with: str | None, tools: list[str]
) -> None:
    role = Role("r", tuple(tools))
    assert role.allows(tool, along_with) == (tool in tools or along_with in tools)
    assert role.may_write == ("file_write" in tools)
    assert role.may_run_code == ("python_executor" in tools)


@given(st.lists(NAMES), st.lists(NAMES), NAMES)
def test_more_tools_never_allow_less(some: list[str], more: list[str], tool: str) -> None:
    small, large = Role("r", tuple(some)), Role("r", (*some, *more))
    assert large.allows(tool) or not small.allows(tool)
    assert large.may_write or not small.may_write


def test_a_role_does_not_change_with_the_list_it_was_made_of() -> None:
    tools = ["file_read"]
    role = Role.find("r", {"r": tools})
    tools.append("file_write")
    assert role.tools == ("file_read",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        role.tools = ("file_write",)  # type: ignore[misc]  # that is what is tried
