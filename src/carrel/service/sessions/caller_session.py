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

MAX_SHELLS = 16
"""Maximum number of named shells that are kept; the least recently used is dropped first."""

OnOutput = Callable[[str, bytes], None]
OnStart = Callable[[Callable[[], object]], None]


class CallerSession:
    """The operations of one caller in one session, limited to one role."""

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
        """Operate on *workspace*; `None` as *role* stands for the operator, who is not limited.

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
        """Require that the role includes *tool*; a refusal is recorded in the journal.

        Raises:
            RoleDeniedError: The role does not include it.
        """
        if self.role is None:
            return
        try:
            self.role.require(tool)
        except RoleDeniedError as error:
            self.workspace.gate.record_refusal(tool, error)
            raise

    def close(self) -> None:
        """Stop everything that runs for the caller; the session itself stays open."""
        for toolbox in self._toolboxes.values():
            toolbox.close()
        for shell in self._shells.values():
            shell.cancel()
        self.deadlines.stop()
        self.workspace.close()

    # Tools

    def toolbox(self, profile: Profile | str) -> Toolbox:
        """Return the tools of the caller's role, or else of the session's, as *profile* names them.

        Raises:
            ValueError: The profile does not exist.
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
        self, request: ExecutionRequest, on_output: OnOutput, on_start: OnStart
    ) -> ShellResult | SandboxResult:
        """Run *request* to its end in a thread that may block; the caller checks the required tool.

        Raises:
            RuntimeDisabledError: The configuration disables guest code.
            MissingError: The file does not exist.
        """
        if isinstance(request, CommandRequest):
            return self._run_command(request, on_output, on_start)
        return self._run_code(request, on_output, on_start)

    def _run_command(self, request: CommandRequest, on_output: OnOutput, on_start: OnStart) -> ShellResult:
        seconds = _smaller(request.timeout_seconds, self._settings.shell.timeout_seconds)
        budget = Budget(seconds=seconds, output_bytes=self._settings.shell.output_bytes)
        shell = self._new_shell() if request.shell is None else self._named_shell(request.shell)
        return shell.run(
            request.command, stdin=request.stdin, on_output=on_output, budget=budget, on_start=on_start
        )

    def _run_code(self, request: CodeRequest, on_output: OnOutput, on_start: OnStart) -> SandboxResult:
        options: CallOptions = {
            "stdin": request.stdin,
            "argv": request.argv,
            "env": request.env,
            "cwd": request.cwd,
            "name": request.name,
            "on_output": on_output,
            "on_start": on_start,
        }
        if request.timeout_seconds is not None:
            options["timeout_seconds"] = _smaller(
                request.timeout_seconds, self._settings.serve.timeout_seconds
            )
        sandbox = self._sandbox(stateful=request.stateful)
        if request.file is not None:
            return sandbox.execute_file(request.file, **options)
        return sandbox.execute(request.code or "", **options)

    def _sandbox(self, *, stateful: bool) -> BaseSandbox:
        with self._lock:
            found = self._sandboxes.get(stateful)
            if found is None:
                found = workspace_sandbox(self.workspace, None, engine=self._engine, stateful=stateful)
                self._sandboxes[stateful] = found
            return found

    def _named_shell(self, name: str) -> Shell:
        with self._lock:
            found = self._shells.get(name)
            if found is None:
                found = self._shells[name] = self._new_shell()
                while len(self._shells) > MAX_SHELLS:
                    self._shells.popitem(last=False)
            self._shells.move_to_end(name)
            return found

    def _new_shell(self) -> Shell:
        return Shell(
            self.workspace,
            python=GuestPython(engine=self._engine),
            pipelines=self._settings.shell.pipelines,
            commands=self._commands,
            runner=self._runner,
        )

    @cached_property
    def _commands(self) -> set[str]:
        """The shell commands of the role; its workspace view rejects writes that the role may not do."""
        may_run_code = self.role is None or self.role.may_run_code
        return {name for name, row in COMMANDS.items() if row.effect is not CommandEffect.RUN or may_run_code}


def _smaller(requested: float | None, limit: float | None) -> float | None:
    return min((each for each in (requested, limit) if each is not None), default=None)
