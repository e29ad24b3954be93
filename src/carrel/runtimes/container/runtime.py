"""`ContainerRuntime`: runs commands and the image's Python in a container on the files of a workspace.

Each workspace has one container, which is kept for the next call together with its `/tmp`. The files are at
`/workspace`: the directory of the session, or the volume that holds them. A program does not write through
the gate; its changes are recorded after it has ended, and everything that it started is killed with it.

Limits. Exact, because the kernel enforces them: size of a file, memory, processors, processes, `/tmp`, and
the total of a volume in memory. The memory limit is the lower of policy and settings, for all processes and
`/tmp` together. Timeout and output limits are as exact as in other runtimes. The quota of the workspace is
not exact: usage is measured while a program runs, so the quota may be exceeded by what is written between two
measurements; then everything is killed, and nothing can be written or run until something is removed.
Instructions and file operations are not counted; a policy with `fuel_budget` is rejected. The limits of
`/tmp` and of open files are the same for all calls, whatever the policy says.

Not covered: other paths that the rules of a workspace allow are not in the container. The kernel reveals in
`/proc/self/mountinfo` where a directory lies on the file system of its host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from carrel.config.settings import ContainerSettings
from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.containers.kill import kill_leftovers
from carrel.containers.manager import Containers
from carrel.containers.spec import NOBODY, WORKSPACE
from carrel.errors import (
    CarrelError,
    ContainerError,
    NotDirectoryError,
    OutsideError,
    PolicyValidationError,
    RuntimeMissingError,
    SandboxExecutionError,
)
from carrel.fs.cancellable import WalkCancelledError, cancelled_when
from carrel.policy.execution import MAX_MEMORY_BYTES, MEMORY_BYTES, ExecutionPolicy
from carrel.runtimes.call import CancellableCall, OnOutput, RunOutcome
from carrel.runtimes.container.binding import (
    ContainerBinding,
    cross_process_lock,
    find_binding,
    make_spec,
)
from carrel.runtimes.container.command import (
    NOT_PYTHON,
    PYTHON,
    ContainerCommand,
    check_command,
    python_command,
)
from carrel.runtimes.container.probes import has_directory, killed_for_memory, limit_memory
from carrel.runtimes.container.quota_watch import QuotaWatch
from carrel.runtimes.container.run import KILLED, NOT_FOUND, ContainerRun, NoWatch
from carrel.runtimes.outcome import build_result
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.runtimes.script import Script
from carrel.runtimes.serializer import SessionSerializer
from carrel.runtimes.wasm.build.compiled import OnProgress
from carrel.values import Limits
from carrel.workspace.unmediated_run import UnmediatedChanges, UnmediatedRun
from carrel.workspace.workspace import Workspace

TEMPORARY = "/tmp"  # noqa: S108  # the container's own
_CHECK = ExecutionPolicy(timeout_seconds=10.0)
_CHECK_KEY = "check"
_FINISH_SECONDS = 1.0
"""Time beyond its timeout that a call may take to record changes; after that, the next call recounts."""
_MAX_CONTAINERS = 32
"""Containers kept for the next call; above that, the least recently used are removed."""


class ContainerRuntime:
    """Runs programs in containers, one at a time per workspace, across all processes of the host."""

    def __init__(self, settings: ContainerSettings, *, state: Callable[[], Path]) -> None:
        """Create containers with *settings*, without connecting to the engine yet.

        *state* returns the lock directory of containers that belong to no session.
        """
        self._settings = settings
        self._state = state
        self._lock = Lock()
        self._serializer = SessionSerializer()
        self._engine: Engine | None = None
        self._managers: dict[Path, Containers] = {}
        self._seen: dict[tuple[Path, str], Hashable] = {}
        """Containers that are known to see the right directory."""
        self._oom_kills: dict[str, int] = {}
        self._used: dict[tuple[Path, str], ContainerBinding] = {}
        """The bindings in use, the most recently used at the end."""

    def default_policy(self) -> ExecutionPolicy:
        """Return the default policy, with all memory of the container."""
        memory_bytes = min(max(self._settings.memory_bytes, MEMORY_BYTES), MAX_MEMORY_BYTES)
        return ExecutionPolicy(memory_bytes=memory_bytes)

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
        """Run *script* with the image's `python3`; paths beneath the policy's mount map to `/workspace`.

        Raises:
            ValueError: *stateful* is set, or the script has tools, which containers do not support.
            RuntimeMissingError: No image is configured, or it has no `python3`.
            EngineError: No usable Docker engine was found.
            ContainerError: The container cannot be used.
            QuotaError: The workspace exceeds its quota.
            AccessError: The workspace is read-only or a view.
            MissingError: The working directory does not exist.
        """
        if stateful:
            raise ValueError("stateful is not supported in a container")
        if script.tools is not None:
            raise ValueError("tools are not supported in a container")
        file = None if script.file is None else _inside(script.file, policy)
        cwd = _require_directory(workspace, _inside(script.cwd, policy))
        result, has_started = self._run(
            python_command(script, cwd, file), workspace, policy, call or CancellableCall(), on_output
        )
        if not has_started and result.exit_code == NOT_FOUND:
            raise RuntimeMissingError(f"the image {self._settings.image!r} has no {PYTHON}")
        return result

    def run(
        self,
        command: ContainerCommand,
        workspace: Workspace,
        policy: ExecutionPolicy,
        *,
        call: CancellableCall | None = None,
        on_output: OnOutput | None = None,
    ) -> SandboxResult:
        """Run *command*; a program that is not in the image ends with status 127, as in a shell.

        Raises:
            RuntimeMissingError: No image is configured.
            EngineError: No usable Docker engine was found.
            ContainerError: The container cannot be used.
            QuotaError: The workspace exceeds its quota.
            AccessError: The workspace is read-only or a view.
            MissingError: The working directory does not exist.
        """
        cwd = _require_directory(workspace, _inside(command.cwd, policy))
        result, _ = self._run(
            replace(command, cwd=cwd), workspace, policy, call or CancellableCall(), on_output
        )
        return result

    def validate(self, source: bytes) -> bool:
        """Return whether the image's Python compiles *source*, in a container without files.

        Raises:
            RuntimeMissingError: No image is configured, or it has no `python3`.
            SandboxExecutionError: The source could not be checked.
        """
        unlimited = Limits(disk_bytes=None, entries=None, file_bytes=None)
        spec = make_spec(self._settings, NOBODY, None, unlimited)
        binding = ContainerBinding(directory=self._state(), key=_CHECK_KEY, spec=spec)
        call, until = CancellableCall(), time.monotonic() + 2 * _CHECK.timeout_seconds
        with (
            self._serializer.hold(binding.name, call, until) as is_acquired,
            cross_process_lock(binding.run_lock, call, until) as has_lock,
        ):
            if not is_acquired or not has_lock:
                raise SandboxExecutionError(
                    "the source could not be checked: too many other checks are waiting"
                )
            run = ContainerRun(
                self._container(binding),
                check_command(source),
                _CHECK,
                call=call,
                on_output=None,
                watch=NoWatch(),
            )
            outcome = run.run(_CHECK.timeout_seconds)
        if not run.has_started:
            raise RuntimeMissingError(f"the image {self._settings.image!r} has no {PYTHON}")
        if outcome.exit_code not in (0, NOT_PYTHON):
            raise SandboxExecutionError(f"the source could not be checked: {outcome.reason or 'it failed'}")
        return outcome.exit_code == 0

    def reset(self, key: Hashable) -> bool:
        """Return false: no interpreter is kept; see `restart`."""
        return False

    def restart(self, workspace: Workspace) -> bool:
        """Empty the `/tmp` of the container of *workspace* once nothing runs; return whether it existed."""
        binding = self._binding(workspace, UnmediatedRun(workspace))
        never, manager = float("inf"), self._manager(binding.directory)
        with (
            self._serializer.hold(binding.name, CancellableCall(), never),
            cross_process_lock(binding.run_lock, CancellableCall(), never),
        ):
            if not manager.status(binding.key).exists:
                return False
            self._container(binding).restart()
            return True

    def close(self) -> None:
        """Release all containers; those that no other process uses are removed."""
        with self._lock:
            managers, self._managers = self._managers, {}
            engine, self._engine = self._engine, None
        for manager in managers.values():
            # What an unreachable engine does not remove now is swept later.
            with suppress(CarrelError):
                manager.close()
        if engine is not None:
            engine.close()

    def abandon(self) -> None:
        """Start empty in a forked child; what runs belongs to the parent."""
        for manager in self._managers.values():
            manager.abandon()
        self._lock, self._serializer = Lock(), SessionSerializer()
        self._engine, self._managers, self._used = None, {}, {}

    # One call

    def _run(
        self,
        command: ContainerCommand,
        workspace: Workspace,
        policy: ExecutionPolicy,
        call: CancellableCall,
        on_output: OnOutput | None,
    ) -> tuple[SandboxResult, bool]:
        """Return the result, and whether the program exists."""
        _require_supported(policy)
        memory_bytes = min(policy.memory_bytes, self._settings.memory_bytes)
        started = time.monotonic()
        until = started + policy.timeout_seconds
        unmediated = UnmediatedRun(workspace)
        binding = self._binding(workspace, unmediated)
        run = _PendingRun(command, policy, memory_bytes, call, on_output, until)
        finished: _FinishedRun | None = None
        with (
            self._serializer.hold(binding.name, call, until) as is_acquired,
            cross_process_lock(binding.run_lock, call, until if is_acquired else 0) as has_lock,
        ):
            if is_acquired and has_lock and not run.is_over():
                finished = self._run_alone(run, binding, unmediated, workspace)
        finished = finished or _FinishedRun(RunOutcome(reason=run.reason))
        state: dict[str, object] = {
            "runtime": "container",
            "image": self._settings.image,
            "changes_complete": finished.changes.is_whole,
            "files_kept_back": finished.withheld,
        }
        self._remove_oldest(binding)
        duration_ms = (time.monotonic() - started) * 1000
        result = build_result(
            finished.outcome,
            policy,
            workspace,
            finished.changes,
            state,
            duration_ms,
            memory_bytes=memory_bytes,
        )
        return result, finished.has_started

    def _run_alone(
        self, run: _PendingRun, binding: ContainerBinding, unmediated: UnmediatedRun, workspace: Workspace
    ) -> _FinishedRun:
        """Run a program while no other runs in the container."""
        try:
            with cancelled_when(run.is_over):
                container, withheld = self._prepare(run, binding, unmediated, workspace)
        except WalkCancelledError:
            return _FinishedRun(RunOutcome(reason=run.reason))
        try:
            with QuotaWatch(unmediated, container) as watch:
                program = ContainerRun(
                    container,
                    run.command,
                    run.policy,
                    call=run.call,
                    on_output=run.on_output,
                    watch=watch,
                )
                try:
                    outcome = program.run(run.until - time.monotonic())
                except ContainerError as error:
                    if error.problem == "stopped":
                        # The engine believes that it runs; after the restart, the next call finds it running.
                        container.restart()
                    raise
        except BaseException:
            with suppress(CarrelError, WalkCancelledError), run.finishing():
                unmediated.end()
                # The program may still run, if the engine is gone.
                unmediated.mark_dirty()
            raise
        with run.finishing():
            changes = unmediated.end()
        if outcome.exit_code == KILLED and self._was_oom_killed(container):
            outcome.exit_code, outcome.reason = None, TrapReason.MEMORY
        if outcome.reason is None and changes.problem is not None:
            outcome.reason, outcome.detail = TrapReason.QUOTA, changes.problem
        return _FinishedRun(outcome, changes, withheld, program.has_started)

    def _prepare(
        self, run: _PendingRun, binding: ContainerBinding, unmediated: UnmediatedRun, workspace: Workspace
    ) -> tuple[Container, list[str]]:
        """Prepare the container for the program; return it with the files not chowned to its user.

        Raises:
            WalkCancelledError: The run timed out or was cancelled before.
        """
        unmediated.require_room()
        container = self._container(binding)
        if kill_leftovers(container):
            # Another process was killed while its program ran.
            unmediated.recount()
            unmediated.require_room()
        withheld = [] if unmediated.access is None else unmediated.access.chown(*binding.owner)
        container = self._with_directory(container, binding, unmediated, workspace)
        limit_memory(container, run.memory_bytes)
        unmediated.begin()
        return container, withheld

    # The container

    def _binding(self, workspace: Workspace, unmediated: UnmediatedRun) -> ContainerBinding:
        return find_binding(workspace, unmediated.files, self._settings, self._state)

    def _manager(self, directory: Path) -> Containers:
        with self._lock:
            if self._engine is None:
                self._engine = Engine.connect(
                    self._settings.address, timeout_seconds=self._settings.timeout_seconds
                )
            found = self._managers.get(directory)
            if found is None:
                found = self._managers[directory] = Containers(self._engine, directory)
            return found

    def _container(self, binding: ContainerBinding) -> Container:
        manager = self._manager(binding.directory)
        manager.register(binding.key, binding.spec)
        try:
            return manager.ensure(binding.key)
        except ContainerError as error:
            if error.problem != "program":
                raise
            detail = error.detail
        raise ContainerError(
            "program",
            f"the image {binding.spec.image!r} has no sh, which every container needs",
            detail=detail,
        )

    def _remove_oldest(self, used: ContainerBinding) -> None:
        """Release the least recently used containers above the maximum; *used* is the most recent."""
        with self._lock:
            self._used.pop(used.name, None)
            self._used[used.name] = used
            count = len(self._used) - _MAX_CONTAINERS
            oldest = list(self._used.values())[: max(0, count)]
        for binding in oldest:
            with (
                self._serializer.hold(binding.name, CancellableCall(), 0) as is_acquired,
                cross_process_lock(binding.run_lock, CancellableCall(), 0) as has_lock,
            ):
                if is_acquired and has_lock:
                    self._manager(binding.directory).release(binding.key)
                    with self._lock:
                        self._used.pop(binding.name, None)
                        self._seen.pop(binding.name, None)

    def _with_directory(
        self, container: Container, binding: ContainerBinding, unmediated: UnmediatedRun, workspace: Workspace
    ) -> Container:
        """Return the container, recreated if it has the directory of an earlier session of the same name.

        Raises:
            ContainerError: The engine sees another directory; it is on another host.
        """
        access = unmediated.access
        if access is None:
            return container
        identity = (*access.identity(), workspace.created_ns)
        if self._seen.get(binding.name) == (container.id, identity):
            return container
        for is_last in (False, True):
            if has_directory(container, access):
                self._seen[binding.name] = container.id, identity
                return container
            if not is_last:
                self._manager(binding.directory).remove(binding.key)
                container = self._container(binding)
        raise ContainerError(
            "elsewhere", "the Docker engine does not see the files of this host: is it on another one?"
        )

    def _was_oom_killed(self, container: Container) -> bool:
        """Whether the OOM killer has ended a process since the last check."""
        count = killed_for_memory(container)
        before = self._oom_kills.get(container.id, 0)
        self._oom_kills[container.id] = count
        # Less than before: the container was restarted in between.
        return count > before or 0 < count < before


@dataclass(frozen=True, slots=True)
class _PendingRun:
    """A command that waits for the container, and its limits."""

    command: ContainerCommand
    policy: ExecutionPolicy
    memory_bytes: int
    call: CancellableCall
    on_output: OnOutput | None
    until: float
    """Deadline by the monotonic clock; preparing the container counts."""

    def is_over(self) -> bool:
        """Whether the run timed out or was cancelled before it started."""
        return self.call.is_cancelled or time.monotonic() >= self.until

    @property
    def reason(self) -> TrapReason:
        """Why the run is over."""
        return TrapReason.CANCELLED if self.call.is_cancelled else TrapReason.TIMEOUT

    def finishing(self) -> AbstractContextManager[None]:
        """Limit the walks of the block to the remaining time and a short extension."""
        until = max(time.monotonic(), self.until) + _FINISH_SECONDS
        return cancelled_when(lambda: time.monotonic() >= until)


@dataclass(slots=True)
class _FinishedRun:
    """The outcome of a run, and what it changed."""

    outcome: RunOutcome
    changes: UnmediatedChanges = field(default_factory=UnmediatedChanges)
    withheld: list[str] = field(default_factory=list)
    """Files that were not chowned to the user of the program."""
    has_started: bool = True
    """Whether the program exists and was started."""


def _require_supported(policy: ExecutionPolicy) -> None:
    """Reject a policy with limits that containers do not support."""
    for name in ("fuel_budget", "mount_data_dir"):
        if getattr(policy, name) is not None:
            raise PolicyValidationError(f"{name} is not supported in a container", field=name)


def _inside(path: str, policy: ExecutionPolicy) -> str:
    """Return the path in the container of one that may start with the policy's mount path."""
    mount = policy.guest_mount_path
    if path == mount or path.startswith(f"{mount}/"):
        return WORKSPACE + path[len(mount) :]
    return path if path.startswith("/") else f"{WORKSPACE}/{path}"


def _require_directory(workspace: Workspace, path: str) -> str:
    """Return the working directory, which must be in the workspace, possibly through links.

    Raises:
        MissingError: The directory does not exist.
        NotDirectoryError: The path is not a directory.
        OutsideError: The directory is outside the workspace.
    """
    if path in (WORKSPACE, TEMPORARY):
        return path
    inside = path.removeprefix(f"{WORKSPACE}/")
    info = workspace.stat(inside)
    if not info.is_directory:
        raise NotDirectoryError(f"not a directory: {inside!r}", path=inside)
    if info.path.startswith("/"):
        raise OutsideError(f"{path!r} is not in the container", path=path)
    return WORKSPACE if info.path == "." else f"{WORKSPACE}/{info.path}"
