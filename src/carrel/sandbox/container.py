"""`ContainerSandbox`: commands and the image's own Python in a container on one workspace's files."""

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
    """Runs commands, and Python as the image has it, in a container on the files of one workspace.

    The files are at `/workspace`. Calls of one session run one after another, in one container, also those of
    other processes; what a call leaves running is ended with it, and what it leaves in `/tmp` stays.
    """

    runtime = RuntimeType.CONTAINER

    def __init__(
        self,
        place: WorkspaceSource,
        *,
        engine: ContainerRuntime,
        policy: ExecutionPolicy | None = None,
        logger: SandboxLogger | None = None,
        stateful: bool = False,
    ) -> None:
        """Work at *place*; most callers want `create_sandbox` or `create_session_sandbox`.

        Without a *policy*, a call may take the memory of its whole container.

        Raises:
            ValueError: It is to be *stateful*, which is not offered.
        """
        if stateful:
            raise ValueError("a container keeps no interpreter: stateful is not offered")
        super().__init__(place, engine=engine, policy=policy or engine.default_policy(), logger=logger)

    def run(self, argv: Sequence[str], /, **options: Unpack[CallOptions]) -> SandboxResult:
        """Run a program with its arguments, each as it is: no shell reads them.

        A program that is not in the image ends with 127. The options are those of `execute`, but for `argv`
        and `name`.

        Raises:
            SessionMissingError: The session was deleted, or has expired.
            RuntimeMissingError: No image is configured.
            EngineError: There is no engine that can be used.
            ContainerError: The container cannot be used.
            QuotaError: The workspace holds more than it may.
        """
        return self._run(CancellableCall(), argv, options)

    async def arun(self, argv: Sequence[str], /, **options: Unpack[CallOptions]) -> SandboxResult:
        """The same as `run`, awaitable; a task that is cancelled ends the program first."""
        call = CancellableCall()
        return await self._awaited(call, options, partial(self._run, call, argv))

    def reset(self) -> bool:
        """Stop what runs in this sandbox, and empty the `/tmp` of its container; whether there was one."""
        self.cancel()
        with self._place.open() as workspace:
            return self._engine.restart(workspace)

    def _run(self, call: CancellableCall, argv: Sequence[str], options: CallOptions) -> SandboxResult:
        if isinstance(argv, str | bytes):
            raise TypeError("argv must be a list of texts, the program and its arguments, not a text")
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
