"""`PythonRuntime`: runs scripts in WebAssembly interpreters on the files of a workspace."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path

from carrel.errors import SandboxExecutionError
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode, SandboxPolicy
from carrel.runtimes.call import CancellableCall, NotStartedError, OnOutput, RunOutcome
from carrel.runtimes.frames import FrameSocketBroken
from carrel.runtimes.outcome import build_result
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.serializer import SessionSerializer
from carrel.runtimes.wasm.build.compiled import CompiledGuest, OnProgress
from carrel.runtimes.wasm.file_server import TEMPORARY, FileServer
from carrel.runtimes.wasm.interpreter import InterpreterHandle, NotCompiledError
from carrel.runtimes.wasm.pool import SHARED, Owner, Pool
from carrel.runtimes.wasm.stateful import StatefulInterpreters
from carrel.workspace.workspace import Workspace

_OPEN_SECONDS = 60.0
"""Longest time until an interpreter is there; it takes a hundredth of that."""
_TRIES = 3
_CHECK = ExecutionPolicy(timeout_seconds=10.0, file_operations=1)
_UNREADABLE = (TrapReason.STACK, TrapReason.MEMORY)
"""How source ends the check that no parser could take."""


class NoFiles:
    """Answers a guest that has no files."""

    roots: tuple[str, ...] = ()

    def answer(self, head: dict[str, object], body: bytes | bytearray) -> tuple[dict[str, object], bytes]:
        """Nothing is there."""
        return {"error": "ENOENT"}, b""


class PythonRuntime:
    """Runs scripts in interpreters of a pool, one at a time in each session."""

    def __init__(self, guest: CompiledGuest, pool: Pool, kept: StatefulInterpreters | None = None) -> None:
        """Run what *guest* is, in the interpreters of *pool* and of *kept*."""
        self._guest = guest
        self._pool = pool
        self._kept = kept or StatefulInterpreters()
        self._turns = SessionSerializer()
        self._compiled: set[bool] = set()
        self._owner = SHARED

    def owned_by(self, owner: Owner) -> PythonRuntime:
        """The same, for scripts that run in no process in which those of another owner run."""
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
            script: What to run.
            workspace: Its files.
            policy: What it may take.
            key: Names the session; its scripts run one after another.
            stateful: Whether the interpreter is kept for the next script of the session.
            call: Lets another thread stop it.
            on_output: Is given the output as it comes.
            on_progress: Is told how far the guest is compiled, while the call waits for that.

        Raises:
            RuntimeMissingError: The engine is not installed.
            SandboxExecutionError: There is no interpreter to be had.
            MissingError: The data directory of the policy is not there, or the directory to begin in.
        """
        call = call or CancellableCall()
        self._require_compiled(policy.fuel_budget is not None, on_progress)
        started = time.monotonic()
        with (
            _data(policy) as data,
            self._turns.hold(key, call, started + policy.timeout_seconds) as had,
        ):
            mount = FileServer(
                workspace, mount_path=policy.guest_mount_path, data=data, data_path=policy.guest_data_path
            )
            if script.cwd not in (policy.guest_mount_path, TEMPORARY):
                mount.require_directory(script.cwd)
            state: dict[str, object] = {}
            left = started + policy.timeout_seconds - time.monotonic()
            if had and left > 0:
                ending, state = self._run(
                    script, policy, mount, key if stateful else None, call, on_output, timeout_seconds=left
                )
            else:
                ending = RunOutcome(reason=TrapReason.CANCELLED if call.is_cancelled else TrapReason.TIMEOUT)
        duration_ms = (time.monotonic() - started) * 1000
        return build_result(ending, policy, workspace, mount.changes, state, duration_ms)

    def validate(self, source: bytes) -> bool:
        """Whether *source* is Python, as the guest's own compiler sees it; nothing is run."""
        script = Script(source=source, cwd="/")
        self._require_compiled(False, None)
        interpreter = self._open(metered=False)
        try:
            with self._pool.running(interpreter):
                ending = CancellableCall().run(interpreter, script, _CHECK, NoFiles(), is_check=True)
        finally:
            interpreter.close()
        if ending.reason is not None and ending.reason not in _UNREADABLE:
            raise SandboxExecutionError(f"the source could not be checked: {ending.reason}")
        return ending.exit_code == 0

    def reset(self, key: Hashable) -> bool:
        """End the interpreter that is kept for a session; whether there was one."""
        with self._turns.hold(key, CancellableCall(), float("inf")):
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
        """Begin anew in a child that was forked; what runs is the parent's."""
        self._turns = SessionSerializer()
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
        mount: FileServer,
        key: Hashable | None,
        call: CancellableCall,
        on_output: OnOutput | None,
        *,
        timeout_seconds: float,
    ) -> tuple[RunOutcome, dict[str, object]]:
        for _ in range(_TRIES):
            interpreter, state = self._interpreter(key, metered=policy.fuel_budget is not None)
            mount.versions = interpreter.versions
            try:
                with self._pool.running(interpreter):
                    ending = call.run(
                        interpreter,
                        script,
                        policy,
                        mount,
                        timeout_seconds=timeout_seconds,
                        is_last=key is None,
                        on_output=on_output,
                    )
            except NotStartedError:
                self._drop(key, interpreter, "its process ended")
                continue
            except BaseException:
                self._drop(key, interpreter, "its caller gave up")
                raise
            if key is not None and ending.is_usable:
                self._kept.put(key, interpreter, tenant=self._owner.tenant)
            else:
                self._drop(key, interpreter, "it exited" if ending.reason is None else str(ending.reason))
            return ending, state
        raise SandboxExecutionError("every interpreter ended before it could begin")

    def _drop(self, key: Hashable | None, interpreter: InterpreterHandle, reason: str) -> None:
        interpreter.close()
        if key is not None:
            self._kept.forget(key, reason)

    def _interpreter(
        self, key: Hashable | None, *, metered: bool
    ) -> tuple[InterpreterHandle, dict[str, object]]:
        """The interpreter of a session or a new one, and what to tell about it."""
        if key is None:
            return self._open(metered=metered), {"state": "none"}
        found = self._kept.take(key)
        if found is not None and found.metered == metered:
            return found, {"state": "kept"}
        if found is not None:
            found.close()
            self._kept.forget(key, "it counted no fuel" if metered else "it counted fuel")
        reason = self._kept.why_gone(key)
        if reason is None:
            return self._open(metered=metered), {"state": "new"}
        return self._open(metered=metered), {"state": "restarted", "state_lost": reason}

    def _open(self, *, metered: bool) -> InterpreterHandle:
        """A new interpreter that can begin; what breaks before any script has run is tried again."""
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


@contextmanager
def _data(policy: ExecutionPolicy) -> Iterator[Workspace | None]:
    """The data directory of the policy, for reading."""
    if policy.mount_data_dir is None:
        yield None
        return
    directory = Path(policy.mount_data_dir)
    rules = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    with Workspace.open(directory, policy=rules) as workspace:
        yield workspace
