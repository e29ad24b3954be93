"""`CallerSession`: one session, open for one caller in one role."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from threading import Lock

from carrel.config.settings import Settings
from carrel.errors import RoleDeniedError
from carrel.policy.roles import DEFAULT_ROLE, Role
from carrel.policy.rules import AccessMode
from carrel.runtimes.result import SandboxResult
from carrel.sandbox.engines import FindEngine
from carrel.sandbox.factory import workspace_sandbox
from carrel.sandbox.sandbox import BaseSandbox, CallOptions
from carrel.sandbox.shell import GuestPython, Shell
from carrel.service.execution_request import CodeRequest, CommandRequest, ExecutionRequest
from carrel.shell.budget import Budget
from carrel.shell.command.table import COMMANDS, CommandEffect
from carrel.shell.result import ShellResult
from carrel.shell.runtime.runner import Runner
from carrel.storage.session_record import SessionRecord
from carrel.tools.core.deadline import Deadlines
from carrel.tools.core.spec import Profile
from carrel.tools.toolbox import Toolbox
from carrel.workspace.aio import AsyncWorkspace
from carrel.workspace.workspace import Workspace

SHELLS = 16
"""So many named shells of one desk are remembered; the one not used for longest is forgotten first."""

OnOutput = Callable[[str, bytes], None]
OnStart = Callable[[Callable[[], object]], None]


class CallerSession:
    """What one caller may do in one session; everything on it goes through the gate of the session."""

    def __init__(
        self,
        workspace: Workspace,
        record: SessionRecord,
        role: Role | None,
        settings: Settings,
        *,
        engine: FindEngine | None = None,
        runner: Runner | None = None,
    ) -> None:
        """Work on *workspace*; without a *role* the caller is the operator, whom none limits.

        Command lines are run by *runner*, or in this process.
        """
        self.record = record
        self.role = role
        self.deadlines = Deadlines()
        self._whole = workspace
        self._settings = settings
        self._engine = engine
        self._runner = runner
        self._lock = Lock()
        self._toolboxes: dict[Profile, Toolbox] = {}
        self._shells: OrderedDict[str, Shell] = OrderedDict()
        self._sandboxes: dict[bool, BaseSandbox] = {}
        may_write = role is None or role.may_write
        self.workspace = workspace.narrowed(
            mode=AccessMode.READ_WRITE if may_write else AccessMode.READ_ONLY,
            within=() if role is None else settings.files.allowed_paths,
            check=self.deadlines.check,
        )
        self.files = AsyncWorkspace(self.workspace)

    def require(self, tool: str) -> None:
        """Do nothing if the role has *tool*.

        Raises:
            RoleDeniedError: It has not.
        """
        if self.role is None:
            return
        try:
            self.role.require(tool)
        except RoleDeniedError as error:
            self.workspace.gate.refused(tool, error)
            raise

    def close(self) -> None:
        """Stop what runs; the session itself stays open."""
        for toolbox in self._toolboxes.values():
            toolbox.close()
        for shell in self._shells.values():
            shell.cancel()
        self.deadlines.stop()
        self.workspace.close()

    # Tools

    def toolbox(self, profile: Profile | str) -> Toolbox:
        """The tools of the role, or without one of the session's own, under the names of *profile*.

        Raises:
            ValueError: There is no such profile.
        """
        profile = Profile(profile)
        with self._lock:
            found = self._toolboxes.get(profile)
            if found is None:
                role = self.role or self.record.role or DEFAULT_ROLE
                found = Toolbox(
                    self._whole, role, profile=profile, here=True, engine=self._engine, runner=self._runner
                )
                self._toolboxes[profile] = found
            return found

    # Commands and code

    def run(
        self, work: ExecutionRequest, on_output: OnOutput, on_start: OnStart
    ) -> ShellResult | SandboxResult:
        """Run *work* to its end, from a thread that may wait; the caller needs its tool.

        Raises:
            RuntimeDisabledError: The configuration switches guest code off.
            MissingError: There is no such file.
        """
        if isinstance(work, CommandRequest):
            return self._run_command(work, on_output, on_start)
        return self._run_code(work, on_output, on_start)

    def _run_command(self, work: CommandRequest, on_output: OnOutput, on_start: OnStart) -> ShellResult:
        seconds = _shorter(work.timeout_seconds, self._settings.shell.timeout_seconds)
        budget = Budget(seconds=seconds, output_bytes=self._settings.shell.output_bytes)
        shell = self._fresh_shell() if work.shell is None else self._shell(work.shell)
        return shell.run(
            work.command, stdin=work.stdin, on_output=on_output, budget=budget, on_start=on_start
        )

    def _run_code(self, work: CodeRequest, on_output: OnOutput, on_start: OnStart) -> SandboxResult:
        options: CallOptions = {
            "stdin": work.stdin,
            "argv": work.argv,
            "env": work.env,
            "on_output": on_output,
            "on_start": on_start,
        }
        if work.timeout_seconds is not None:
            options["timeout_seconds"] = _shorter(work.timeout_seconds, self._settings.serve.timeout_seconds)
        sandbox = self._sandbox(stateful=work.stateful)
        if work.file is not None:
            return sandbox.execute_file(work.file, **options)
        return sandbox.execute(work.code or "", **options)

    def _sandbox(self, *, stateful: bool) -> BaseSandbox:
        with self._lock:
            found = self._sandboxes.get(stateful)
            if found is None:
                found = workspace_sandbox(self.workspace, None, engine=self._engine, stateful=stateful)
                self._sandboxes[stateful] = found
            return found

    def _shell(self, name: str) -> Shell:
        with self._lock:
            found = self._shells.get(name)
            if found is None:
                found = self._shells[name] = self._fresh_shell()
                while len(self._shells) > SHELLS:
                    self._shells.popitem(last=False)
            self._shells.move_to_end(name)
            return found

    def _fresh_shell(self) -> Shell:
        return Shell(
            self.workspace,
            python=GuestPython(engine=self._engine),
            pipelines=self._settings.shell.pipelines,
            commands=self._commands,
            runner=self._runner,
        )

    @cached_property
    def _commands(self) -> set[str]:
        """Those of the role; what writes is refused by the workspace."""
        may_run_code = self.role is None or self.role.may_run_code
        return {name for name, row in COMMANDS.items() if row.effect is not CommandEffect.RUN or may_run_code}


def _shorter(asked: float | None, most: float | None) -> float | None:
    return min((each for each in (asked, most) if each is not None), default=None)
