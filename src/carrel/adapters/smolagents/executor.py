"""`CarrelExecutor`: runs the code of a `CodeAgent` in the guest of a session."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast  # Any: what tools and variables are

from smolagents.local_python_executor import CodeOutput, InterpreterError, PythonExecutor
from smolagents.utils import truncate_content

from carrel.adapters.smolagents.conversation import Conversation
from carrel.adapters.smolagents.json_codec import encode
from carrel.policy.execution import MAX_NUMBER, WORKSPACE, ExecutionPolicy
from carrel.runtimes.api import RuntimeType
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.sandbox.factory import create_session_sandbox, get_session_sandbox
from carrel.values import Limits

LOGS_CHARACTERS = 50_000
"""How much of what a step prints is told to the model."""
_LOADER = """
import sys
driver = sys.modules.get("_carrel_driver")
is_fresh = driver is None
if is_fresh:
    driver = sys.modules["_carrel_driver"] = type(sys)("_carrel_driver")
    for source in sources:
        exec(compile(source, "<carrel>", "exec"), driver.__dict__)
driver.run(order, is_fresh)
"""
_ENDED = {
    TrapReason.TIMEOUT: "it took longer than {policy.timeout_seconds:g} s",
    TrapReason.MEMORY: "it needed more than {policy.memory_bytes} bytes of memory",
}


class CarrelExecutor(PythonExecutor):  # type: ignore[misc]  # the framework has no types
    """Runs the code of a `CodeAgent` in the guest of a session: Python in WebAssembly, on its files.

    >>> CodeAgent(tools=[...], model=model, executor=CarrelExecutor())

    Variables and imports last from step to step. Tools stay on the host: code in the guest calls them with
    values and gets values, and can call no other. What it may import is what the guest has, whatever
    `additional_authorized_imports` says. The time of the tools that a step calls is part of its own.
    """

    def __init__(
        self,
        session_id: str | None = None,
        *,
        workspace_root: str | os.PathLike[str] | None = None,
        policy: ExecutionPolicy | None = None,
        limits: Limits | None = None,
        ttl_seconds: float | None = None,
        max_print_outputs_length: int = LOGS_CHARACTERS,
    ) -> None:
        """Work in a session, which is made if there is none.

        Args:
            session_id: The session; a new one by default.
            workspace_root: The sessions directory; the configured one by default.
            policy: What a step may take.
            limits: Ceilings of a session that has no id yet.
            ttl_seconds: How long such a session may be idle; the configured time by default.
            max_print_outputs_length: How many characters of what a step prints are told to the model.

        Raises:
            SessionIdError: The id breaks the rule.
            RuntimeDisabledError: The configuration switches guest code off.
        """
        policy = policy or ExecutionPolicy()
        # What is printed is cut here: on its way it also carries what code and host say to each other.
        whole = replace(policy, stdout_max_bytes=MAX_NUMBER, stderr_max_bytes=MAX_NUMBER)
        if session_id is None:
            session_id, sandbox = create_session_sandbox(
                RuntimeType.PYTHON,
                whole,
                workspace_root,
                limits=limits,
                ttl_seconds=ttl_seconds,
                stateful=True,
            )
        else:
            sandbox = get_session_sandbox(
                session_id, RuntimeType.PYTHON, whole, workspace_root, stateful=True
            )
        self.session_id = session_id
        """The session whose files the code works on."""
        self.state: dict[str, Any] = {}
        """What the framework looks at when a step fails: `_print_outputs`, what the last one printed."""
        self._sandbox = sandbox
        self._policy = policy
        self._logs_characters = max_print_outputs_length
        self._tools: Mapping[str, Callable[..., Any]] = {}
        self._variables: dict[str, Any] = {}
        self._news: dict[str, Any] = {}
        self._steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cleanup()

    def send_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Let code call *tools*, and no others, from the next step on."""
        self._tools = dict(tools)

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Set variables before the next step.

        Raises:
            TypeError: One of them cannot be handed to the guest.
        """
        given = {name: encode(value) for name, value in variables.items()}
        self._variables |= given
        self._news |= given

    def __call__(self, code_action: str) -> CodeOutput:
        """Run one step.

        Raises:
            InterpreterError: It failed or was ended; the message is for the model.
            CarrelError: It could not be run at all.
        """
        self._steps += 1
        mark = f"\x1e{secrets.token_hex(16)} "
        heard = Conversation(
            mark.encode(), self._tools, self._told_variables, most_bytes=self._policy.stdout_max_bytes
        )
        order = {
            "mark": mark,
            "code": code_action,
            "name": f"<step {self._steps}>",
            "tools": list(self._tools),
            "news": bool(self._news),
        }
        result = self._sandbox.execute(
            _script(order),
            stdin=cast(BinaryIO, heard.input),  # only `read` is called, and it has that
            on_output=heard.hear,
            keep_output=False,
            cwd=WORKSPACE,
        )
        return self._output(heard, result)

    def cleanup(self) -> None:
        """Stop what runs and forget all variables; the session and its files stay."""
        self._sandbox.close()
        self._sandbox.reset()

    def _told_variables(self, is_fresh: bool) -> dict[str, Any]:
        """The variables that are new to the guest, which knows none if it is fresh."""
        news, self._news = self._news, {}
        return self._variables if is_fresh else news

    def _output(self, heard: Conversation, result: SandboxResult) -> CodeOutput:
        """What became of a step, as the framework wants it."""
        told = str(result.metadata.get("message") or "")
        logs = truncate_content(_notes(result) + heard.printed + told, max_length=self._logs_characters)
        self.state["_print_outputs"] = logs
        if heard.final is not None:
            return CodeOutput(output=heard.final[0], logs=logs, is_final_answer=True)
        if heard.error is not None:
            raise InterpreterError(f"Code execution failed:\n{heard.error}")
        if not heard.is_told or result.trap_reason is not None:
            raise InterpreterError(f"Code execution failed: {_why(result, self._policy)}")
        return CodeOutput(output=heard.value, logs=logs, is_final_answer=False)


def _script(order: dict[str, Any]) -> str:
    """Source that runs a step without leaving a name of its own."""
    return f"exec({_LOADER!r}, {{'sources': {_sources()!r}, 'order': {json.dumps(order)!r}}})"


@cache
def _sources() -> tuple[str, ...]:
    """What the guest needs for that: values as JSON, and what stands around a step."""
    here = Path(__file__)
    return tuple(here.with_name(name).read_text("utf-8") for name in ("json_codec.py", "driver.py"))


def _notes(result: SandboxResult) -> str:
    """What the model has to know about the interpreter."""
    if (reason := result.metadata.get("state_lost")) is None:
        return ""
    return f"(Python was started anew, because {reason}: variables of earlier steps are gone.)\n"


def _why(result: SandboxResult, policy: ExecutionPolicy) -> str:
    reason = result.trap_reason
    if reason is None:
        return f"Python exited with status {result.exit_code}"
    if reason in _ENDED:
        return _ENDED[reason].format(policy=policy)
    return str(result.metadata.get("message") or reason.replace("_", " ")).removeprefix("carrel: ").strip()
