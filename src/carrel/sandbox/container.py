"""`ContainerSandbox`: runs commands and the image's Python in a container on the files of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

from carrel.audit.logger import SandboxLogger
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.api import RuntimeType
from carrel.runtimes.call import CancellableCall
from carrel.runtimes.container.command import ContainerCommand
from carrel.runtimes.container.runtime import ContainerRuntime
from carrel.runtimes.result import SandboxResult
from carrel.sandbox.sandbox import CallOptions, RuntimeSandbox, stdin_of
from carrel.sandbox.workspace_source import WorkspaceSource
from carrel.workspace.workspace import Workspace


class ContainerSandbox(RuntimeSandbox[ContainerRuntime]):
    """Runs commands, and the Python of the image, in a container on the files of one workspace.

    The files are at `/workspace`. Calls of one session run one after another in one container, including
    calls from other processes. Processes that a call leaves running are killed when it returns; files that it
    leaves in `/tmp` are kept.
    """

    runtime = RuntimeType.CONTAINER

    def __init__(
        self,
        source: WorkspaceSource,
        *,
        engine: ContainerRuntime,
        policy: ExecutionPolicy | None = None,
        logger: SandboxLogger | None = None,
        stateful: bool = False,
    ) -> None:
        """Run on the files of *source*; most callers want `create_sandbox` or `create_session_sandbox`.

        Without a *policy*, a call may use all memory of its container.

        Raises:
            ValueError: *stateful* is set, which containers do not support.
        """
        if stateful:
            raise ValueError("stateful is not supported in a container")
        super().__init__(source, engine=engine, policy=policy or engine.default_policy(), logger=logger)

    def run(self, argv: Sequence[str], /, **options: Unpack[CallOptions]) -> SandboxResult:
        """Run a program with its arguments, without a shell.

        A program that is not in the image ends with status 127. The options are those of `execute`, except
        `argv` and `name`.

        Raises:
            SessionMissingError: The session was deleted, or has expired.
            RuntimeMissingError: No image is configured.
            EngineError: No usable Docker engine was found.
            ContainerError: The container cannot be used.
            QuotaError: The workspace exceeds its quota.
        """
        return self._run(CancellableCall(), argv, options)

    async def arun(self, argv: Sequence[str], /, **options: Unpack[CallOptions]) -> SandboxResult:
        """Like `run`, awaitable; cancelling the task ends the program first."""
        call = CancellableCall()
        return await self._run_async(call, options, partial(self._run, call, argv))

    def reset(self) -> bool:
        """Stop all running calls and empty the `/tmp` of the container; return whether one existed."""
        self.cancel()
        with self._source.open() as workspace:
            return self._engine.restart(workspace)

    def _run(self, call: CancellableCall, argv: Sequence[str], options: CallOptions) -> SandboxResult:
        if isinstance(argv, str | bytes):
            raise TypeError("argv must be a list of strings, the program and its arguments, not one string")
        for name in ("argv", "name"):
            if options.get(name) is not None:
                raise TypeError(f"a command has no option {name!r}")

        def execute(workspace: Workspace, policy: ExecutionPolicy) -> SandboxResult:
            command = ContainerCommand(
                argv=tuple(argv),
                cwd=options.get("cwd") or policy.guest_mount_path,
                stdin=stdin_of(options),
                keep_output=options.get("keep_output", True),
            )
            return self._engine.run(command, workspace, policy, call=call, on_output=options.get("on_output"))

        return self._in_call(call, options, execute)
