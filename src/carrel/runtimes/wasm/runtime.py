"""`PythonRuntime`: runs scripts in WebAssembly interpreters on the files of a workspace."""

from __future__ import annotations

import time
from collections.abc import Hashable
from contextlib import AbstractContextManager, closing, nullcontext
from copy import copy
from pathlib import Path

from carrel.errors import SandboxExecutionError
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode, SandboxPolicy
from carrel.runtimes.call import CancellableCall, OnOutput, RunOutcome
from carrel.runtimes.frames import FrameSocketBroken
from carrel.runtimes.outcome import build_result
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.serializer import SessionSerializer
from carrel.runtimes.wasm.build.compiled import CompiledGuest, OnProgress
from carrel.runtimes.wasm.exchange import NotStartedError, run_script
from carrel.runtimes.wasm.file_server import TEMPORARY, FileServer
from carrel.runtimes.wasm.interpreter import InterpreterHandle, NotCompiledError
from carrel.runtimes.wasm.pool import SHARED, Owner, Pool
from carrel.runtimes.wasm.stateful import StatefulInterpreters
from carrel.workspace.workspace import Workspace

_OPEN_SECONDS = 60.0
"""Timeout for opening an interpreter, which normally takes a hundredth of that."""
_TRIES = 3
_CHECK = ExecutionPolicy(timeout_seconds=10.0, file_operations=1)
_UNPARSABLE = (TrapReason.STACK, TrapReason.MEMORY)
"""Reasons with which the check of source that no parser can handle ends."""


class NoFiles:
    """Answers the file operations of a guest without files."""

    roots: tuple[str, ...] = ()

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> tuple[dict[str, object], bytes]:
        """Return `ENOENT` for every path."""
        return {"error": "ENOENT"}, b""


class PythonRuntime:
    """Runs scripts in interpreters of a pool, one at a time per session."""

    def __init__(self, guest: CompiledGuest, pool: Pool, kept: StatefulInterpreters | None = None) -> None:
        """Run the compiled *guest* in the interpreters of *pool* and *kept*."""
        self._guest = guest
        self._pool = pool
        self._kept = kept or StatefulInterpreters()
        self._serializer = SessionSerializer()
        self._compiled: set[bool] = set()
        self._owner = SHARED

    def owned_by(self, owner: Owner) -> PythonRuntime:
        """Return a runtime on the same pool whose scripts share no process with those of another owner."""
        view = copy(self)
        view._owner = owner
        return view

    def execute(
        self,
        script: Script,
        workspace: Workspace,
        policy: ExecutionPolicy,
        *,
        key: Hashable,
        stateful: bool = False,
        call: CancellableCall | None = None,
        on_output: OnOutput | None = None,
        on_progress: OnProgress | None = None,
    ) -> SandboxResult:
        """Run *script* on the files of *workspace*.

        Args:
            script: The script to run.
            workspace: The files that it sees.
            policy: Its limits.
            key: Identifies the session, whose scripts run one after another.
            stateful: Whether to keep the interpreter for the next script of the session.
            call: Lets another thread stop the script.
            on_output: Receives the output as it is written.
            on_progress: Receives the progress of compiling the guest, if the call waits for it.

        Raises:
            RuntimeMissingError: The engine is not installed.
            SandboxExecutionError: No interpreter is available.
            MissingError: The data directory of the policy or the working directory does not exist.
        """
        call = call or CancellableCall()
        self._require_compiled(policy.fuel_budget is not None, on_progress)
        started = time.monotonic()
        with (
            _open_data(policy) as data,
            self._serializer.hold(key, call, started + policy.timeout_seconds) as is_acquired,
            closing(
                FileServer(
                    workspace, mount_path=policy.guest_mount_path, data=data, data_path=policy.guest_data_path
                )
            ) as files,
        ):
            if script.cwd not in (policy.guest_mount_path, TEMPORARY):
                files.require_directory(script.cwd)
            state: dict[str, object] = {}
            remaining = started + policy.timeout_seconds - time.monotonic()
            if is_acquired and remaining > 0:
                outcome, state = self._run(
                    script,
                    policy,
                    files,
                    key if stateful else None,
                    call,
                    on_output,
                    timeout_seconds=remaining,
                )
            else:
                outcome = RunOutcome(reason=TrapReason.CANCELLED if call.is_cancelled else TrapReason.TIMEOUT)
        duration_ms = (time.monotonic() - started) * 1000
        return build_result(outcome, policy, workspace, files.changes, state, duration_ms)

    def validate(self, source: bytes) -> bool:
        """Return whether the guest's Python compiles *source*, without running it."""
        script = Script(source=source, cwd="/")
        self._require_compiled(False, None)
        interpreter = self._open(metered=False)
        try:
            with self._pool.running(interpreter):
                outcome = run_script(CancellableCall(), interpreter, script, _CHECK, NoFiles(), is_check=True)
        finally:
            interpreter.close()
        if outcome.reason is not None and outcome.reason not in _UNPARSABLE:
            raise SandboxExecutionError(f"the source could not be checked: {outcome.reason}")
        return outcome.exit_code == 0

    def reset(self, key: Hashable) -> bool:
        """End the kept interpreter of a session; return whether there was one."""
        with self._serializer.hold(key, CancellableCall(), float("inf")):
            found = self._kept.take(key)
            if found is not None:
                found.close()
                self._kept.forget(key, "it was reset")
            return found is not None

    def close(self) -> None:
        """End all interpreters and their processes."""
        self._kept.close()
        self._pool.close()

    def abandon(self) -> None:
        """Start empty in a forked child; what runs belongs to the parent."""
        self._serializer = SessionSerializer()
        self._kept.abandon()
        self._pool.abandon()

    def _require_compiled(self, metered: bool, on_progress: OnProgress | None) -> None:
        if metered not in self._compiled:
            self._guest.make(metered=metered, on_progress=on_progress)
            self._compiled.add(metered)

    def _run(
        self,
        script: Script,
        policy: ExecutionPolicy,
        files: FileServer,
        key: Hashable | None,
        call: CancellableCall,
        on_output: OnOutput | None,
        *,
        timeout_seconds: float,
    ) -> tuple[RunOutcome, dict[str, object]]:
        for _ in range(_TRIES):
            interpreter, state = self._interpreter(key, metered=policy.fuel_budget is not None)
            files.versions = interpreter.versions
            try:
                with self._pool.running(interpreter):
                    outcome = run_script(
                        call,
                        interpreter,
                        script,
                        policy,
                        files,
                        timeout_seconds=timeout_seconds,
                        is_last=key is None,
                        on_output=on_output,
                    )
            except NotStartedError:
                self._drop(key, interpreter, "its process ended")
                continue
            except BaseException:
                self._drop(key, interpreter, "the call was stopped")
                raise
            if key is not None and outcome.is_usable:
                self._kept.put(key, interpreter, tenant=self._owner.tenant)
            else:
                self._drop(key, interpreter, "it exited" if outcome.reason is None else str(outcome.reason))
            return outcome, state
        raise SandboxExecutionError("every interpreter ended before the script started")

    def _drop(self, key: Hashable | None, interpreter: InterpreterHandle, reason: str) -> None:
        interpreter.close()
        if key is not None:
            self._kept.forget(key, reason)

    def _interpreter(
        self, key: Hashable | None, *, metered: bool
    ) -> tuple[InterpreterHandle, dict[str, object]]:
        """Return the kept interpreter of a session or a new one, and its state for the result."""
        if key is None:
            return self._open(metered=metered), {"state": "none"}
        found = self._kept.take(key)
        if found is not None and found.metered == metered:
            return found, {"state": "kept"}
        if found is not None:
            found.close()
            self._kept.forget(key, "it counted no fuel" if metered else "it counted fuel")
        reason = self._kept.why_lost(key)
        if reason is None:
            return self._open(metered=metered), {"state": "new"}
        return self._open(metered=metered), {"state": "restarted", "state_lost": reason}

    def _open(self, *, metered: bool) -> InterpreterHandle:
        """Open an interpreter that is ready; failures before any script has run are retried."""
        problem = ""
        for _ in range(_TRIES):
            interpreter = self._pool.take(metered=metered, owner=self._owner)
            try:
                interpreter.require_ready(time.monotonic() + _OPEN_SECONDS)
            except FrameSocketBroken:
                interpreter.close()
                problem = interpreter.worker.cause()
            except NotCompiledError as error:
                interpreter.close()
                problem = str(error)
                self._compiled.discard(metered)
                self._require_compiled(metered, None)
            except BaseException:
                interpreter.close()
                raise
            else:
                return interpreter
        raise SandboxExecutionError(f"no interpreter could be opened: {problem}")


def _open_data(policy: ExecutionPolicy) -> AbstractContextManager[Workspace | None]:
    """Open the data directory of the policy read-only, if it has one."""
    if policy.mount_data_dir is None:
        return nullcontext()
    directory = Path(policy.mount_data_dir)
    rules = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    return Workspace.open(directory, policy=rules)
