"""Agents of the SDK work in sessions."""

from __future__ import annotations

from typing import Any

from agents import RunConfig, Runner
from agents.items import ToolCallOutputItem
from agents.sandbox import Manifest, SandboxAgent, SandboxRunConfig
from agents.sandbox.entries import Dir, File
from agents.testing import ScriptedModel, assistant_message, function_call

from carrel.adapters.openai_agents import CarrelSandboxClient
from carrel.sessions.manager import WorkspaceManager
from tests.adapters.openai_agents.awaiting import awaited, content, started


def run_config(client: CarrelSandboxClient, **options: Any) -> RunConfig:
    return RunConfig(sandbox=SandboxRunConfig(client=client, **options), tracing_disabled=True)


def outputs(items: list[Any]) -> list[str]:
    return [str(item.output) for item in items if isinstance(item, ToolCallOutputItem)]


def told(output: str) -> tuple[str, str]:
    """The status and the output that an agent is told of a command."""
    head, _, printed = output.partition("\nOutput:\n")
    return head.splitlines()[-1].rpartition(" ")[2], printed


@awaited
async def test_an_agent_runs_commands_in_a_session_that_ends_with_the_run(
    client: CarrelSandboxClient, manager: WorkspaceManager
) -> None:
    model = ScriptedModel(
        [
            [function_call("exec_command", {"cmd": "cat in.txt | wc -l"}, call_id="1")],
            [function_call("exec_command", {"cmd": "pwd && nosuch", "workdir": "d"}, call_id="2")],
            [function_call("exec_command", {"cmd": "sleep 60", "yield_time_ms": 10}, call_id="3")],
            [assistant_message("done")],
        ]
    )
    manifest = Manifest(entries={"in.txt": File(content=b"1\n2\n"), "d": Dir()})
    agent = SandboxAgent(name="A", instructions="Work.", model=model, default_manifest=manifest)
    answer = await Runner.run(agent, "Go.", run_config=run_config(client))
    first, second, third = outputs(answer.new_items)
    assert told(first) == ("0", "2\n")
    assert told(second)[0] == "127"
    assert told(second)[1].startswith("/workspace/d\nnosuch: command not found")
    assert told(third)[1] == "Command timed out after 0.010 seconds."
    assert answer.final_output == "done"
    assert manager.list_workspaces() == []


@awaited
async def test_an_agent_works_in_a_session_that_is_handed_to_it(client: CarrelSandboxClient) -> None:
    patch = "*** Begin Patch\n*** Add File: plan.txt\n+read\n+write\n*** End Patch"
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "1", "id": "1"}
    from openai.types.responses import ResponseCustomToolCall

    model = ScriptedModel([[ResponseCustomToolCall.model_validate(call)], [assistant_message("done")]])
    agent = SandboxAgent(name="A", instructions="Work.", model=model)
    async with started(client) as sandbox:
        config = RunConfig(sandbox=SandboxRunConfig(session=sandbox), tracing_disabled=True)
        await Runner.run(agent, "Go.", run_config=config)
        assert await content(sandbox, "plan.txt") == b"read\nwrite"
