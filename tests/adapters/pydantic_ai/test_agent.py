"""An agent of Pydantic AI works in a session from first to last; its models need no network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from carrel.adapters.pydantic_ai import CarrelSessions, CarrelToolset, CarrelWorkspace
from carrel.sessions.manager import WorkspaceManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(tmp_path / "sessions") as manager:
        yield manager


def scripted(*calls: tuple[str, dict[str, object]]) -> FunctionModel:
    """A model that makes *calls* one after another, and then says what the last one answered."""

    def respond(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = {tool.name for tool in info.function_tools}
        returned = returns(messages)
        if len(returned) == len(calls):
            return ModelResponse(parts=[TextPart(f"It is {returned[-1].content!r}")])
        name, arguments = calls[len(returned)]
        assert name in asked
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    return FunctionModel(respond)


def returns(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    return [
        part
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def own_tools(agent: Agent[None, str]) -> None:
    """Tools of the program that use the workspace of the run."""

    @agent.tool
    async def count(ctx: RunContext[None], path: str) -> int:
        return len(await ctx.workspace.read_bytes(path))

    @agent.tool
    async def shell(ctx: RunContext[None], command: str) -> str:
        return (await ctx.workspace.run(command, shell=True)).stdout


def test_a_run_has_the_workspace_and_its_tools(manager: WorkspaceManager) -> None:
    with CarrelWorkspace(manager=manager) as workspace:
        model = scripted(
            ("file_write", {"path": "notes/a.txt", "content": "one\ntwo\n", "create_dirs": True}),
            ("file_read", {"path": "../secret"}),
            ("count", {"path": "notes/a.txt"}),
            ("shell", {"command": "sort -r notes/a.txt | head -1"}),
        )
        agent = Agent(model, toolsets=[CarrelToolset(workspace)])
        own_tools(agent)
        result = asyncio.run(agent.run("Go", workspace=workspace))
        assert result.output == "It is 'two\\n'"
        told = returns(result.all_messages())
        assert [part.outcome for part in told] == ["success", "failed", "success", "success"]
        assert told[2].content == 8
        assert workspace.ref is not None
        session_id = workspace.ref.id
    # The run and the end of its workspace leave the session as it is.
    with manager.open(session_id) as files:
        assert files.read("notes/a.txt") == b"one\ntwo\n"


def test_a_later_run_goes_on_in_the_session_of_the_conversation(
    manager: WorkspaceManager, remembering: Callable[[CarrelWorkspace], CarrelWorkspace]
) -> None:
    capability: CarrelSessions[None] = CarrelSessions(
        lambda ref: remembering(CarrelWorkspace(ref, manager=manager))
    )
    first = Agent(scripted(("shell", {"command": "printf kept > a"})), capabilities=[capability])
    own_tools(first)
    messages = asyncio.run(first.run("Go")).all_messages_json()
    second = Agent(
        scripted(("shell", {"command": "true"}), ("shell", {"command": "cat a"})), capabilities=[capability]
    )
    own_tools(second)
    history = ModelMessagesTypeAdapter.validate_json(messages)
    assert asyncio.run(second.run("Go on", message_history=history)).output == "It is 'kept'"
    assert len(manager.list_workspaces()) == 1
    third = Agent(scripted(("shell", {"command": "ls"})), capabilities=[capability])
    own_tools(third)
    assert asyncio.run(third.run("Begin anew")).output == "It is ''"
    assert len(manager.list_workspaces()) == 2


@pytest.fixture
def remembering() -> Iterator[Callable[[CarrelWorkspace], CarrelWorkspace]]:
    """Closes in the end what it was given."""
    made: list[CarrelWorkspace] = []

    def remember(workspace: CarrelWorkspace) -> CarrelWorkspace:
        made.append(workspace)
        return workspace

    yield remember
    for workspace in made:
        workspace.close()


def test_every_tool_can_be_called_by_a_model_that_makes_its_arguments_up(manager: WorkspaceManager) -> None:
    with CarrelWorkspace(manager=manager) as workspace:
        toolset: CarrelToolset[None] = CarrelToolset(workspace, max_retries=10)
        # What a made-up path or an empty pattern leads to is told, and the run goes on.
        names = ["file_list", "file_search", "file_write", "bash"]
        result = asyncio.run(
            Agent(TestModel(call_tools=names), toolsets=[toolset]).run("Go", workspace=workspace)
        )
        assert len(returns(result.all_messages())) == len(names)


def test_a_reference_of_another_provider_is_left_to_others(manager: WorkspaceManager) -> None:
    from pydantic_ai.usage import RunUsage
    from pydantic_ai.workspaces import WorkspaceRef

    capability: CarrelSessions[None] = CarrelSessions()
    ctx = RunContext(deps=None, model=TestModel(), usage=RunUsage())
    assert capability.get_workspace(ctx, ref=WorkspaceRef(provider="local", id="/etc")) is None
