"""An agent of deepagents works in a session."""

from __future__ import annotations

import base64
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from carrel.adapters.deepagents import CarrelBackend
from carrel.workspace.workspace import Workspace
from tests.tools.images import png


class Scripted(GenericFakeChatModel):
    """A model with fixed answers, which accepts any tools."""

    def bind_tools(self, tools: object, **options: object) -> Scripted:
        return self


def call(name: str, **arguments: object) -> AIMessage:
    return AIMessage(content="", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}"}])


def test_an_agent_writes_finds_and_runs(backend: CarrelBackend, workspace: Workspace) -> None:
    model = Scripted(
        messages=iter(
            [
                call("write_file", file_path="/notes/plan.txt", content="read\nwrite\n"),
                call("grep", pattern="write", output_mode="content"),
                call("execute", command="sort -r notes/plan.txt | head -n 1"),
                call("read_file", file_path="/workspace/notes/nothing.txt"),
                AIMessage(content="done"),
            ]
        )
    )
    agent = create_deep_agent(model=model, backend=backend)
    answer: dict[str, Any] = agent.invoke({"messages": [{"role": "user", "content": "Plan."}]})
    told = [str(message.content) for message in answer["messages"] if isinstance(message, ToolMessage)]
    assert "/workspace/notes/plan.txt" in told[0]
    assert "/workspace/notes/plan.txt:\n  2: write" in told[1]
    assert told[2].startswith("write\n")
    assert told[3] == "Error: File '/workspace/notes/nothing.txt': file_not_found"
    assert answer["messages"][-1].content == "done"
    assert workspace.read("notes/plan.txt") == b"read\nwrite\n"


def test_what_is_too_long_for_a_model_lies_in_the_session(
    backend: CarrelBackend, workspace: Workspace
) -> None:
    steps = [call("execute", command="seq 40000"), AIMessage(content="done")]
    agent = create_deep_agent(model=Scripted(messages=iter(steps)), backend=backend)
    answer: dict[str, Any] = agent.invoke({"messages": [{"role": "user", "content": "Count."}]})
    (told,) = [str(message.content) for message in answer["messages"] if isinstance(message, ToolMessage)]
    (path,) = workspace.glob("large_tool_results/*")
    assert f"/{path}" in told
    assert len(told) < 10_000
    assert workspace.read(path).startswith(b"1\n2\n3\n")
    assert b"40000" in workspace.read(path)


def test_an_agent_sees_an_image(backend: CarrelBackend, workspace: Workspace) -> None:
    workspace.write("p.png", png())
    steps = [call("read_file", file_path="/workspace/p.png"), AIMessage(content="done")]
    agent = create_deep_agent(model=Scripted(messages=iter(steps)), backend=backend)
    answer: dict[str, Any] = agent.invoke({"messages": [{"role": "user", "content": "Look."}]})
    (told,) = [message for message in answer["messages"] if isinstance(message, ToolMessage)]
    block: Any
    (block,) = told.content_blocks
    assert (block["type"], block["mime_type"]) == ("image", "image/png")
    assert base64.b64decode(block["base64"]) == png()
