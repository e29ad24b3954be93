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
"""How much output of a step the model sees."""
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
_TRAP_MESSAGES = {
    TrapReason.TIMEOUT: "it took longer than {policy.timeout_seconds:g} s",
    TrapReason.MEMORY: "it needed more than {policy.memory_bytes} bytes of memory",
}


class CarrelExecutor(PythonExecutor):  # type: ignore[misc]  # the framework has no types
    """Runs the code of a `CodeAgent` in the guest of a session: Python in WebAssembly, on its files.

    >>> CodeAgent(tools=[...], model=model, executor=CarrelExecutor())

    Variables and imports persist between steps. Tools run on the host: code in the guest passes values to
    them and gets values back, and can call no others. It can import the modules of the guest, regardless of
    `additional_authorized_imports`. The time limit of a step includes its tool calls.
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
        """Work in a session, creating it if it is missing.

        Args:
            session_id: The session; a new one by default.
            workspace_root: The sessions directory; the configured one by default.
            policy: Limits of a step.
            limits: Limits of a new session without an id.
            ttl_seconds: TTL of such a session; the configured one by default.
            max_print_outputs_length: How many characters of output of a step the model sees.

        Raises:
            SessionIdError: The id is invalid.
            RuntimeDisabledError: Guest code is disabled in the configuration.
        """
        policy = policy or ExecutionPolicy()
        # Output is limited here instead: the stream also carries the messages between guest and host.
        unlimited = replace(policy, stdout_max_bytes=MAX_NUMBER, stderr_max_bytes=MAX_NUMBER)
        if session_id is None:
            session_id, sandbox = create_session_sandbox(
                RuntimeType.PYTHON,
                unlimited,
                workspace_root,
                limits=limits,
                ttl_seconds=ttl_seconds,
                stateful=True,
            )
        else:
            sandbox = get_session_sandbox(
                session_id, RuntimeType.PYTHON, unlimited, workspace_root, stateful=True
            )
        self.session_id = session_id
        """Id of the session."""
        self.state: dict[str, Any] = {}
        """Read by the framework when a step fails: `_print_outputs`, the output of the last step."""
        self._sandbox = sandbox
        self._policy = policy
        self._logs_characters = max_print_outputs_length
        self._tools: Mapping[str, Callable[..., Any]] = {}
        self._variables: dict[str, Any] = {}
        self._new_variables: dict[str, Any] = {}
        self._steps = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cleanup()

    def send_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """Make *tools*, and no others, callable from the next step on."""
        self._tools = dict(tools)

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Set variables before the next step.

        Raises:
            TypeError: A value cannot be passed to the guest.
        """
        encoded = {name: encode(value) for name, value in variables.items()}
        self._variables |= encoded
        self._new_variables |= encoded

    def __call__(self, code_action: str) -> CodeOutput:
        """Run one step.

        Raises:
            InterpreterError: The step failed or was stopped; the message is for the model.
            CarrelError: The step could not be run at all.
        """
        self._steps += 1
        mark = f"\x1e{secrets.token_hex(16)} "
        conversation = Conversation(
            mark.encode(), self._tools, self._take_variables, max_bytes=self._policy.stdout_max_bytes
        )
        order = {
            "mark": mark,
            "code": code_action,
            "name": f"<step {self._steps}>",
            "tools": list(self._tools),
            "news": bool(self._new_variables),
        }
        result = self._sandbox.execute(
            _script(order),
            stdin=cast(BinaryIO, conversation.input),  # only `read` is called, which it has
            on_output=conversation.receive,
            keep_output=False,
            cwd=WORKSPACE,
        )
        return self._output(conversation, result)

    def cleanup(self) -> None:
        """Stop running code and drop all variables; the session and its files are kept."""
        self._sandbox.close()
        self._sandbox.reset()

    def _take_variables(self, is_fresh: bool) -> dict[str, Any]:
        """The variables to send: all of them to a fresh guest, else the new ones."""
        new, self._new_variables = self._new_variables, {}
        return self._variables if is_fresh else new

    def _output(self, conversation: Conversation, result: SandboxResult) -> CodeOutput:
        """Convert the outcome of a step for the framework."""
        message = str(result.metadata.get("message") or "")
        logs = truncate_content(
            _notes(result) + conversation.printed + message, max_length=self._logs_characters
        )
        self.state["_print_outputs"] = logs
        if conversation.final is not None:
            return CodeOutput(output=conversation.final[0], logs=logs, is_final_answer=True)
        if conversation.error is not None:
            raise InterpreterError(f"Code execution failed:\n{conversation.error}")
        if not conversation.has_outcome or result.trap_reason is not None:
            raise InterpreterError(f"Code execution failed: {_failure_reason(result, self._policy)}")
        return CodeOutput(output=conversation.value, logs=logs, is_final_answer=False)


def _script(order: dict[str, Any]) -> str:
    """Source that runs a step without defining names of its own."""
    return f"exec({_LOADER!r}, {{'sources': {_sources()!r}, 'order': {json.dumps(order)!r}}})"


@cache
def _sources() -> tuple[str, ...]:
    """The modules that run in the guest: the JSON codec and the driver."""
    here = Path(__file__)
    return tuple(here.with_name(name).read_text("utf-8") for name in ("json_codec.py", "driver.py"))


def _notes(result: SandboxResult) -> str:
    """A notice for the model if the interpreter was restarted."""
    if (reason := result.metadata.get("state_lost")) is None:
        return ""
    return f"(Python was restarted because {reason}: variables of earlier steps are gone.)\n"


def _failure_reason(result: SandboxResult, policy: ExecutionPolicy) -> str:
    reason = result.trap_reason
    if reason is None:
        return f"Python exited with status {result.exit_code}"
    if reason in _TRAP_MESSAGES:
        return _TRAP_MESSAGES[reason].format(policy=policy)
    return str(result.metadata.get("message") or reason.replace("_", " ")).removeprefix("carrel: ").strip()
