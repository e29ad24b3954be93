"""Everything a tool may reach: workspace, role, options, shell and Python runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING

from carrel.errors import ClosedError
from carrel.paths.parsed_path import StrPath, parse_any
from carrel.policy.roles import Role
from carrel.shell.command.table import COMMANDS, CommandEffect
from carrel.tools.core.deadline import Deadlines
from carrel.tools.core.options import ResolvedOptions
from carrel.tools.core.pagination import KeptOutput, OutputStore, ShownPage
from carrel.tools.core.spec import RunLocation
from carrel.workspace.workspace import Workspace

if TYPE_CHECKING:
    from carrel.policy.execution import ExecutionPolicy
    from carrel.sandbox.container import ContainerSandbox
    from carrel.sandbox.sandbox import BaseSandbox
    from carrel.sandbox.shell import Shell


class ToolContext:
    """What the tools of one toolbox share: workspace, role, options, shell and kept outputs."""

    def __init__(
        self,
        workspace: Workspace,
        role: Role,
        options: ResolvedOptions,
        deadlines: Deadlines,
    ) -> None:
        """Use *workspace*, a view that allows no more than *role* may do."""
        self.workspace = workspace
        self.run_location = RunLocation.HERE
        """Where commands and code run."""
        self.role = role
        self.options = options
        self._outputs = OutputStore()
        self._deadlines = deadlines
        self._lock = Lock()
        self._shell: Shell | None = None

    def check(self) -> None:
        """Check the deadline of the current call; long work calls this between its steps.

        Raises:
            LimitError: The deadline has passed.
        """
        self._deadlines.check()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call *listener* when the current call is cancelled."""
        if (deadline := self._deadlines.current) is not None:
            deadline.on_stop(listener)

    @property
    def on_output(self) -> Callable[[str, bytes], None] | None:
        """Takes the output of commands and code of the current call as it arrives, if the caller wants it."""
        return None if (deadline := self._deadlines.current) is None else deadline.on_output

    def display_path(self, path: StrPath) -> str:
        """Return the absolute path, as the guest sees it, for the path of a `FileInfo` or an event."""
        text = str(path)
        if text.startswith("/"):
            return text
        return self.workspace.mount if text in ("", ".") else f"{self.workspace.mount}/{text}"

    def normalized_path(self, path: str) -> str:
        """Return the absolute, normalized path for a path as the caller wrote it; it need not exist."""
        parsed = parse_any(path)
        return f"/{parsed.text}" if parsed.absolute else self.display_path(parsed.text)

    def first_page(self, output: KeptOutput) -> ShownPage:
        """Return the first page of *output*, and keep a longer output for its next pages."""
        return self._outputs.first_page(output, self.options.data_bytes, self.options.answer_bytes)

    def next_page(self, cursor: str, source: str) -> ShownPage:
        """Return the page at *cursor* of the output of *source*, a command line or code.

        Raises:
            ToolError: The cursor is not valid, or belongs to the output of another source.
            AdvisedError: The output is no longer kept.
        """
        return self._outputs.next_page(cursor, source, self.options.data_bytes, self.options.answer_bytes)

    @property
    def shell(self) -> Shell:
        """The shell of this toolbox, which keeps its directory and variables between calls."""
        with self._lock:
            if self._shell is None:
                self._shell = self._create_shell()
            return self._shell

    def restart_shell(self) -> None:
        """Stop what runs in the shell and start a new one; a container loses its `/tmp`."""
        if self.run_location is not RunLocation.HERE:
            self.container_shell.reset()
            return
        with self._lock:
            shell, self._shell = self._shell, None
        if shell is not None:
            shell.cancel()

    def _create_shell(self) -> Shell:
        """Create a shell with the role's commands; the workspace view itself refuses writes."""
        from carrel.sandbox.shell import GuestPython, Shell

        commands = {
            name
            for name, command in COMMANDS.items()
            if command.effect is not CommandEffect.RUN or self.role.may_run_code
        }
        return Shell(
            self.workspace,
            python=GuestPython(self.options.policy, engine=self.options.engine),
            pipelines=self.options.pipelines,
            commands=commands,
            runner=self.options.runner,
        )

    def require_open(self) -> None:
        """Check that the toolbox is open.

        Raises:
            ClosedError: The toolbox or the workspace is closed.
        """
        if self.workspace.gate.is_closed:
            raise ClosedError("the tools are closed")

    def close(self) -> None:
        """Close this view of the workspace."""
        self.workspace.close()

    @cached_property
    def container_shell(self) -> ContainerSandbox:
        """The sandbox for command lines in the session's container, with the output limit of the shell."""
        max_bytes = self.options.shell_output_bytes
        policy = self._container_sandbox(self.options.policy).policy
        if max_bytes is not None:
            policy = replace(policy, stdout_max_bytes=max(1, max_bytes), stderr_max_bytes=max(1, max_bytes))
        return self._container_sandbox(policy)

    def _container_sandbox(self, policy: ExecutionPolicy | None) -> ContainerSandbox:
        from carrel.runtimes.api import RuntimeType
        from carrel.sandbox.container import ContainerSandbox
        from carrel.sandbox.factory import create_sandbox

        sandbox = create_sandbox(RuntimeType.CONTAINER, policy, self.workspace)
        assert isinstance(sandbox, ContainerSandbox)  # noqa: S101  # for the type checker
        return sandbox

    @cached_property
    def python(self) -> BaseSandbox:
        """The sandbox that runs Python code on the files of the workspace.

        Raises:
            RuntimeDisabledError: The configuration disables guest code.
        """
        if self.run_location is not RunLocation.HERE:
            return self._container_sandbox(self.options.policy)
        from carrel.sandbox.factory import workspace_sandbox

        return workspace_sandbox(
            self.workspace,
            self.options.policy,
            engine=self.options.engine,
            stateful=self.options.stateful,
        )
