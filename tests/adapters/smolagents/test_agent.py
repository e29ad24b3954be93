"""A `CodeAgent` of smolagents works in a session; its model is a script and needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smolagents import ChatMessage, CodeAgent, MessageRole, Model, tool

from carrel.adapters.smolagents import CarrelExecutor
from carrel.sessions.functions import read_session_file


class Scripted(Model):  # type: ignore[misc]  # the framework has no types
    """Says one thing after another, and keeps what it was told."""

    def __init__(self, *codes: str) -> None:
        super().__init__()
        self.codes = list(codes)
        self.told: list[str] = []

    def generate(self, messages: list[Any], **options: Any) -> ChatMessage:
        self.told.append("".join(part["text"] for part in messages[-1].content))
        return ChatMessage(
            role=MessageRole.ASSISTANT, content=f"Thought: on.\n<code>\n{self.codes.pop(0)}\n</code>"
        )


def make_agent(model: Scripted, executor: CarrelExecutor, **options: Any) -> CodeAgent:
    return CodeAgent(model=model, executor=executor, verbosity_level=0, **options)


def rain(month: str) -> int:
    """Tell how much it rained.

    Args:
        month: The month.
    """
    return {"may": 40, "june": 2}[month]


def test_an_agent_works_step_by_step_with_tools_files_and_a_final_answer(
    executor: CarrelExecutor, sessions: Path
) -> None:
    model = Scripted(
        "total = rain('may') + rain(month=month)\nprint('so far', total)",
        "rain('july')",
        "open('total.txt', 'w').write(str(total))\nfinal_answer({'total': total})",
    )
    agent = make_agent(model, executor, tools=[tool(rain)])
    assert agent.run("How much?", additional_args={"month": "june"}) == {"total": 42}
    assert "so far 42" in model.told[1]
    assert "KeyError: 'july'" in model.told[2]
    assert read_session_file(executor.session_id, "total.txt", sessions) == b"42"


def test_what_was_printed_before_an_error_is_told_to_the_model(executor: CarrelExecutor) -> None:
    model = Scripted("print('got here')\n1 / 0", "final_answer('well')")
    assert make_agent(model, executor, tools=[]).run("Go") == "well"
    steps = make_agent(Scripted("final_answer(1)"), executor, tools=[])
    assert steps.run("Go") == 1
    assert "ZeroDivisionError" in model.told[1]


def test_another_agent_can_be_called_from_the_code(
    guest: None, sessions: Path, executor: CarrelExecutor
) -> None:
    with CarrelExecutor(workspace_root=sessions) as other:
        helper = make_agent(
            Scripted("final_answer('from the helper')"), other, tools=[], name="helper", description="Helps."
        )
        model = Scripted("said = helper('Do it')\nfinal_answer(said)")
        said = make_agent(model, executor, tools=[], managed_agents=[helper]).run("Go")
    assert "from the helper" in said


def test_leaving_an_agent_cleans_up_and_keeps_the_files(executor: CarrelExecutor, sessions: Path) -> None:
    with make_agent(Scripted("open('a', 'w').write('b')\nfinal_answer(1)"), executor, tools=[]) as agent:
        agent.run("Go")
    assert read_session_file(executor.session_id, "a", sessions) == b"b"
