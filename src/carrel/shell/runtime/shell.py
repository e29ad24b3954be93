"""`BareShell`, a shell without guest Python: runs command lines on the files of one workspace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypedDict

from carrel.errors import CarrelError, ShellSyntaxError
from carrel.shell.budget import Budget, Meter, Stopped
from carrel.shell.command.context import ShellResources
from carrel.shell.command.table import COMMANDS
from carrel.shell.result import LineOutcome, ShellResult
from carrel.shell.runtime.analysis import Analysis, Analyzer
from carrel.shell.runtime.execution import LineExecution
from carrel.shell.runtime.runner import InProcessRunner, Runner, parse_line
from carrel.shell.state import ShellState
from carrel.shell.streams import CommandStreams, InputStream, OutputCollector, OutputStream
from carrel.shell.text.quoting import encode
from carrel.workspace.threads import call_threads

if TYPE_CHECKING:
    from carrel.shell.api import Operator, PythonRunner
    from carrel.workspace.workspace import Workspace

OnOutput = Callable[[str, bytes], None]
"""Called with `stdout` or `stderr`, and the bytes."""
OnStart = Callable[[Callable[[], object]], object]
"""Called with a function that stops the line, from any thread."""

_SLICE_SECONDS = 0.05
"""How often a line that waits for another one checks whether it must stop."""


class ShellOptions(TypedDict, total=False):
    """Options of a shell; each has a default."""

    pipelines: bool
    """Whether `|`, `&&`, `||`, `;`, `<`, `>` and `>>` are allowed; by default they are refused."""
    budget: Budget | None
    """Limits of each command line; by default those of `Budget()`."""
    commands: Container[str] | None
    """Names of the commands that may run; all by default."""
    env: Mapping[str, str] | None
    """Variables besides `HOME`, `LANG`, `PATH` and `PWD`."""
    python: PythonRunner | None
    """Runs guest code."""
    operator: Operator | None
    """Lets the command `workspace` change the rules; the shell closes the workspaces that it opens."""
    runner: Runner | None
    """Runs the command lines; this process by default."""


class BareShell:
    """Runs command lines in one workspace; starts no process and reaches nothing but the files."""

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
        """Open a shell in *workspace*, which the caller closes; the options are `ShellOptions`."""
        self.pipelines = pipelines
        self.budget = budget or Budget()
        allowed = COMMANDS if commands is None else commands
        self._resources = ShellResources(workspace, python, operator, allowed)
        variables = {"HOME": workspace.mount, "LANG": "C.UTF-8", "PATH": "", "PWD": workspace.mount}
        variables |= env or {}
        self._state = ShellState(workspace.mount, variables, set(variables))
        self._runner = runner or InProcessRunner()
        self._lock = Lock()
        self._meters: set[Meter] = set()

    @property
    def workspace(self) -> Workspace:
        """The workspace that the commands work on."""
        return self._resources.workspace

    @property
    def cwd(self) -> str:
        """Working directory, as the guest sees it."""
        return self._state.cwd

    @property
    def env(self) -> dict[str, str]:
        """The exported variables, which commands and guest code get."""
        return self._state.environment()

    def may_run(self, name: str) -> bool:
        """Whether the command *name* exists and is allowed here."""
        return name in COMMANDS and name in self._resources.allowed

    def path(self, operand: str) -> str:
        """Return *operand*, a path as typed at this shell, as a path that the workspace accepts."""
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
        """Run one command line and return its output and status; one that fails or is refused is a result.

        With *on_output*, output is delivered as it is produced instead of being kept. The function that
        *on_start* receives stops this line alone. Lines that several threads run in one shell run one after
        another.

        Raises:
            ClosedError: The workspace was closed.
            SessionMissingError: Its session was deleted.
        """
        meter = Meter(budget or self.budget)
        if on_start is not None:
            on_start(meter.cancel)
        return self._run_exclusively(command, stdin, on_output, meter)

    async def arun(
        self,
        command: str,
        *,
        stdin: bytes | Iterable[bytes] = b"",
        on_output: OnOutput | None = None,
        budget: Budget | None = None,
    ) -> ShellResult:
        """Run one command line, awaitable; if the task is cancelled, the command is stopped first."""
        meter = Meter(budget or self.budget)
        loop = asyncio.get_running_loop()
        run = partial(copy_context().run, self._run_exclusively, command, stdin, on_output, meter)
        running = loop.run_in_executor(call_threads(), run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            meter.cancel()
            await asyncio.wait([running])
            raise

    def analyze(self, command: str) -> Analysis:
        """Report what *command* would read and write, and the rules that decide; nothing runs or changes.

        Raises:
            ShellSyntaxError: The command cannot be parsed.
            ClosedError: The workspace was closed.
        """
        line = parse_line(command, pipelines=self.pipelines)
        state = self._state.copy()
        execution = LineExecution(self._resources, state, Meter(self.budget))
        return Analyzer(self._resources, execution.silent_context).analyze(line, state)

    def cancel(self) -> int:
        """Stop all running command lines of this shell, from any thread, and return how many there were."""
        meters = list(self._meters)
        for meter in meters:
            meter.cancel()
        return len(meters)

    def _run_exclusively(
        self, command: str, stdin: bytes | Iterable[bytes], on_output: OnOutput | None, meter: Meter
    ) -> ShellResult:
        """Run a line once no other line runs; it can be cancelled while it waits."""
        self._meters.add(meter)
        try:
            if (stopped := self._acquire_lock(meter)) is not None:
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

    def _acquire_lock(self, meter: Meter) -> Stopped | None:
        """Acquire the lock of the shell, or return what stopped the line while it waited."""
        while not self._lock.acquire(timeout=_SLICE_SECONDS):
            try:
                meter.check()
            except Stopped as stopped:
                return stopped
        return None

    def _run(
        self, command: str, stdin: bytes | Iterable[bytes], on_output: OnOutput | None, meter: Meter
    ) -> ShellResult:
        """Run a line, collect its output, and record in the journal if it was refused or stopped."""
        begin = time.perf_counter()
        lock = Lock()
        stdout = OutputCollector(meter, _locked_callback(on_output, "stdout", lock))
        stderr = OutputCollector(meter, _locked_callback(on_output, "stderr", lock))
        chunks = [stdin] if isinstance(stdin, bytes) and stdin else stdin
        streams = CommandStreams(
            InputStream(chunks or ()), OutputStream(stdout, meter), OutputStream(stderr, meter)
        )
        outcome = self._runner.run(
            command, self._resources, self._state, meter, streams, pipelines=self.pipelines
        )
        if outcome.error_code is not None:
            gate, error = self.workspace.gate, _LineError(outcome, command)
            is_mistake = outcome.error_code == ShellSyntaxError.code
            (gate.record_mistake if is_mistake else gate.record_refusal)("shell", error)
        if outcome.message is not None:
            stderr.add(encode(outcome.message) + b"\n")
        self._state.status = outcome.status
        return ShellResult(
            stdout=stdout.content(),
            stderr=stderr.content(),
            exit_code=outcome.status,
            error_code=outcome.error_code,
            message=outcome.message,
            cwd=self._state.cwd,
            duration_ms=(time.perf_counter() - begin) * 1000,
            truncated=stdout.is_truncated or stderr.is_truncated or outcome.is_truncated,
            ended=outcome.exits,
        )


class _LineError(CarrelError):
    """A line that was refused or stopped, for the journal."""

    def __init__(self, outcome: LineOutcome, command: str) -> None:
        super().__init__(outcome.message or "", path=command)
        self.code = outcome.error_code or self.code  # type: ignore[misc]  # one class, a code per reason


def _locked_callback(on_output: OnOutput | None, stream: str, lock: Lock) -> Callable[[bytes], None] | None:
    """Return a callback for *stream* that is never called from two threads at once."""
    if on_output is None:
        return None

    def deliver(data: bytes) -> None:
        with lock:
            on_output(stream, data)

    return deliver
