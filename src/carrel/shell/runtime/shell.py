"""`BareShell`, a shell without guest Python: runs command lines on the files of one workspace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypedDict

from carrel.errors import CarrelError
from carrel.shell.budget import Budget, Meter, Stopped
from carrel.shell.command.context import ShellResources
from carrel.shell.command.table import COMMANDS
from carrel.shell.result import LineOutcome, ShellResult
from carrel.shell.runtime.analysis import Analysis, Analyzer
from carrel.shell.runtime.execution import CommandStreams, LineExecution
from carrel.shell.runtime.runner import InProcessRunner, Runner, parse_line
from carrel.shell.state import ShellState
from carrel.shell.streams import InputStream, OutputCollector, OutputStream
from carrel.shell.text.quoting import encode
from carrel.workspace.threads import call_threads

if TYPE_CHECKING:
    from carrel.shell.api import Operator, PythonRunner
    from carrel.workspace.workspace import Workspace

OnOutput = Callable[[str, bytes], None]
"""Is given `stdout` or `stderr`, and bytes."""
OnStart = Callable[[Callable[[], object]], object]
"""Is given a function that stops the line, from any thread."""

_SLICE_SECONDS = 0.05
"""So often a line that waits for another looks whether it still may run."""


class ShellOptions(TypedDict, total=False):
    """How a shell may be set up; what is left out has a default."""

    pipelines: bool
    """Whether `|`, `&&`, `||`, `;`, `<`, `>` and `>>` are read; otherwise they are refused."""
    budget: Budget | None
    """What each command line may use; the defaults of `Budget` if none is given."""
    commands: Container[str] | None
    """The commands that may be run; all by default."""
    env: Mapping[str, str] | None
    """Variables besides `HOME`, `LANG`, `PATH` and `PWD`."""
    python: PythonRunner | None
    """What runs guest code."""
    operator: Operator | None
    """Given to those who may change the rules by `workspace`; what it opens, the shell closes."""
    runner: Runner | None
    """What runs the command lines; this process by default."""


class BareShell:
    """Runs command lines in one workspace; no process is started, and nothing but its files is reached."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        pipelines: bool = False,
        budget: Budget | None = None,
        commands: Container[str] | None = None,
        env: Mapping[str, str] | None = None,
        python: PythonRunner | None = None,
        operator: Operator | None = None,
        runner: Runner | None = None,
    ) -> None:
        """Open a shell in *workspace*, which stays the caller's to close; the options are `ShellOptions`."""
        self.pipelines = pipelines
        self.budget = budget or Budget()
        self._resources = ShellResources(
            workspace, python, operator, COMMANDS if commands is None else commands
        )
        variables = {"HOME": workspace.mount, "LANG": "C.UTF-8", "PATH": "", "PWD": workspace.mount}
        variables |= env or {}
        self._state = ShellState(workspace.mount, variables, set(variables))
        self._runner = runner or InProcessRunner()
        self._lock = Lock()
        self._meters: set[Meter] = set()

    @property
    def workspace(self) -> Workspace:
        """The files it works on."""
        return self._resources.workspace

    @property
    def cwd(self) -> str:
        """Where it is, as those inside call it."""
        return self._state.cwd

    @property
    def env(self) -> dict[str, str]:
        """The variables that commands are given."""
        variables = self._state.variables
        return {name: variables[name] for name in sorted(self._state.exported & variables.keys())}

    def may_run(self, name: str) -> bool:
        """Whether there is a command of that name, and it is allowed here."""
        return name in COMMANDS and name in self._resources.allowed

    def path(self, operand: str) -> str:
        """A path as it is typed here, as the workspace understands it."""
        return self._state.path(operand, self.workspace.mount)

    def run(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
        on_start: OnStart | None = None,
    ) -> ShellResult:
        """Run one command line and tell what it printed; one that fails or is refused is a result.

        With *on_output*, output is handed over as it comes instead of being kept. What *on_start* is given
        stops this line alone. Lines that several threads run in one shell run one after another.

        Raises:
            ClosedError: The workspace was closed.
            SessionMissingError: Its session was deleted.
        """
        meter = Meter(budget or self.budget)
        if on_start is not None:
            on_start(meter.cancel)
        return self._run_alone(command, stdin, on_output, meter)

    async def arun(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
    ) -> ShellResult:
        """The same as `run`, awaitable; a task that is cancelled stops the command first."""
        meter = Meter(budget or self.budget)
        loop = asyncio.get_running_loop()
        run = partial(copy_context().run, self._run_alone, command, stdin, on_output, meter)
        running = loop.run_in_executor(call_threads(), run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            meter.cancel()
            await asyncio.wait([running])
            raise

    def analyze(self, command: str) -> Analysis:
        """What *command* would read and write, and by which rule; nothing is run or changed.

        Raises:
            ShellSyntaxError: It cannot be read.
            ClosedError: The workspace was closed.
        """
        line = parse_line(command, pipelines=self.pipelines)
        state = self._state.copy()
        execution = LineExecution(self._resources, state, Meter(self.budget))
        return Analyzer(self._resources, execution.silent_context).look(line, state)

    def cancel(self) -> int:
        """Stop what runs in this shell, from any thread; how many command lines that were."""
        meters = list(self._meters)
        for meter in meters:
            meter.cancel()
        return len(meters)

    def _run_alone(
        self, command: str, stdin: bytes | Iterable[bytes], on_output: OnOutput | None, meter: Meter
    ) -> ShellResult:
        """Run a line when no other runs; meanwhile it can be cancelled."""
        self._meters.add(meter)
        try:
            if (stopped := self._wait(meter)) is not None:
                return ShellResult(
                    stdout=b"",
                    stderr=encode(stopped.message) + b"\n",
                    exit_code=stopped.status,
                    error_code=stopped.code,
                    message=stopped.message,
                    cwd=self._state.cwd,
                )
            try:
                return self._run(command, stdin, on_output, meter)
            finally:
                self._lock.release()
        finally:
            self._meters.discard(meter)

    def _wait(self, meter: Meter) -> Stopped | None:
        """Wait until no other line runs, and keep others waiting; what stopped the line before that."""
        while not self._lock.acquire(timeout=_SLICE_SECONDS):
            try:
                meter.check()
            except Stopped as stopped:
                return stopped
        return None

    def _run(
        self, command: str, stdin: bytes | Iterable[bytes], on_output: OnOutput | None, meter: Meter
    ) -> ShellResult:
        begin = time.perf_counter()
        telling = Lock()
        stdout = OutputCollector(meter, _teller(on_output, "stdout", telling))
        stderr = OutputCollector(meter, _teller(on_output, "stderr", telling))
        chunks = [stdin] if isinstance(stdin, bytes) and stdin else stdin
        streams = CommandStreams(
            InputStream(chunks or ()), OutputStream(stdout, meter), OutputStream(stderr, meter)
        )
        ending = self._execute(command, streams, meter)
        if ending.message is not None:
            stderr.add(encode(ending.message) + b"\n")
        self._state.status = ending.status
        return ShellResult(
            stdout=stdout.content(),
            stderr=stderr.content(),
            exit_code=ending.status,
            error_code=ending.error_code,
            message=ending.message,
            cwd=self._state.cwd,
            duration_ms=(time.perf_counter() - begin) * 1000,
            truncated=stdout.is_truncated or stderr.is_truncated or ending.is_truncated,
            ended=ending.exits,
        )

    def _execute(self, command: str, streams: CommandStreams, meter: Meter) -> LineOutcome:
        """Run a line to its end, however it ends."""
        resources = self._resources
        ending = self._runner.run(command, resources, self._state, meter, streams, pipelines=self.pipelines)
        if ending.error_code is not None:
            resources.workspace.gate.refused("shell", _Refusal(ending, command))
        return ending


class _Refusal(CarrelError):
    """A line that was refused or stopped, for the journal."""

    def __init__(self, ending: LineOutcome, command: str) -> None:
        super().__init__(ending.message or "", path=command)
        self.code = ending.error_code or self.code  # type: ignore[misc]  # one class, a code per reason


def _teller(on_output: OnOutput | None, stream: str, telling: Lock) -> Callable[[bytes], None] | None:
    """Hands bytes over, never from two threads at once."""
    if on_output is None:
        return None

    def tell(data: bytes) -> None:
        with telling:
            on_output(stream, data)

    return tell
