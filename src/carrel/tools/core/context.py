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
from carrel.tools.core.pagination import OutputStore
from carrel.tools.core.spec import RunLocation
from carrel.workspace.workspace import Workspace

if TYPE_CHECKING:
    from carrel.policy.execution import ExecutionPolicy
    from carrel.sandbox.container import ContainerSandbox
    from carrel.sandbox.sandbox import BaseSandbox
    from carrel.sandbox.shell import Shell


class ToolContext:
    """What the tools of one toolbox share."""

    def __init__(
        self,
        workspace: Workspace,
        role: Role,
        options: ResolvedOptions,
        deadlines: Deadlines,
    ) -> None:
        """Work on *workspace*, which allows no more than *role* may do."""
        self.workspace = workspace
        self.where = RunLocation.HERE
        """Where commands and code run."""
        self.role = role
        self.options = options
        self.outputs = OutputStore()
        self._deadlines = deadlines
        self._lock = Lock()
        self._shell: Shell | None = None

    def check(self) -> None:
        """Do nothing while there is time; to be called between the steps of anything long.

        Raises:
            LimitError: The time is over.
        """
        self._deadlines.check()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call *listener* if the caller does not want the answer any more."""
        if (deadline := self._deadlines.current) is not None:
            deadline.on_stop(listener)

    def shown(self, path: StrPath) -> str:
        """A path of a `FileInfo` or an event, as those inside call it: absolute."""
        text = str(path)
        if text.startswith("/"):
            return text
        return self.workspace.mount if text in ("", ".") else f"{self.workspace.mount}/{text}"

    def plain(self, path: str) -> str:
        """The same for a path as a caller wrote it, in its plainest spelling; nothing need be there."""
        where = parse_any(path)
        return f"/{where.text}" if where.absolute else self.shown(where.text)

    @property
    def shell(self) -> Shell:
        """The shell of this toolbox, which remembers where it is."""
        with self._lock:
            if self._shell is None:
                self._shell = self._fresh_shell()
            return self._shell

    def restart_shell(self) -> None:
        """Stop what runs in the shell, and begin anew; a container loses what is in its `/tmp`."""
        if self.where is not RunLocation.HERE:
            self.container_shell.reset()
            return
        with self._lock:
            before, self._shell = self._shell, None
        if before is not None:
            before.cancel()

    def _fresh_shell(self) -> Shell:
        """A shell with the commands of the role; those that write are refused by the workspace."""
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
        """Do nothing unless the toolbox was closed, or the workspace.

        Raises:
            ClosedError: It was.
        """
        if self.workspace.gate.is_closed:
            raise ClosedError("the tools are closed")

    def close(self) -> None:
        """Use the files no more."""
        self.workspace.close()

    @cached_property
    def container_shell(self) -> ContainerSandbox:
        """What runs command lines in the container of the session, with the ceilings of the shell."""
        most = self.options.shell_output_bytes
        policy = self._container(self.options.policy).policy
        if most is not None:
            policy = replace(policy, stdout_max_bytes=max(1, most), stderr_max_bytes=max(1, most))
        return self._container(policy)

    def _container(self, policy: ExecutionPolicy | None) -> ContainerSandbox:
        from carrel.runtimes.api import RuntimeType
        from carrel.sandbox.container import ContainerSandbox
        from carrel.sandbox.factory import create_sandbox

        made = create_sandbox(RuntimeType.CONTAINER, policy, self.workspace)
        assert isinstance(made, ContainerSandbox)  # noqa: S101  # for the type checker
        return made

    @cached_property
    def python(self) -> BaseSandbox:
        """What runs code on the same files.

        Raises:
            RuntimeDisabledError: The configuration switches guest code off.
        """
        if self.where is not RunLocation.HERE:
            return self._container(self.options.policy)
        from carrel.sandbox.factory import workspace_sandbox

        return workspace_sandbox(
            self.workspace,
            self.options.policy,
            engine=self.options.engine,
            stateful=self.options.stateful,
        )
