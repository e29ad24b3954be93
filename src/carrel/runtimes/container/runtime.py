"""`ContainerRuntime`: runs commands and the image's own Python in a container on a workspace's files.

Each workspace has one container, which stays for the next call with all that is in its `/tmp`. Its files are
at `/workspace`: the directory of the session, or the volume in which they live. A program does not ask the
gate; what it did is recorded when it has ended, and everything that it started is ended with it.

Limits. Exact, because the kernel holds them: what one file may hold, memory, processors, processes, `/tmp`,
and a volume in memory as a whole. Memory is what the policy or the settings allow, whichever is less, for all
processes and `/tmp` together. Time and output are as exact as everywhere. Not exact is the quota of the
workspace: it is measured while a program runs, so it may be passed by what is written between two looks;
then everything is ended, and nothing can be written nor run until something is removed. Instructions and file
operations are not counted; a policy that wants the first is refused. How much `/tmp` holds and how many files
are open is the same for all calls, whatever the policy says.

Not covered: other paths that the rules of a workspace allow are not in the container. The kernel tells in
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
from carrel.runtimes.container.binding import ContainerBinding, find_binding, make_spec
from carrel.runtimes.container.command import (
    IS_NO_PYTHON,
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
from carrel.runtimes.serializer import SessionSerializer, cross_process_lock
from carrel.runtimes.wasm.build.compiled import OnProgress
from carrel.values import Limits
from carrel.workspace.unmediated_run import UnmediatedChanges, UnmediatedRun
from carrel.workspace.workspace import Workspace

TEMPORARY = "/tmp"  # noqa: S108  # the container's own
_CHECK = ExecutionPolicy(timeout_seconds=10.0)
_CHECK_KEY = "check"
_FINISH_SECONDS = 1.0
"""So much longer than its time a call may take to see what its program did; then the next one counts."""
_MOST_CONTAINERS = 32
"""So many are kept for the next call; of more, those go that were not used for the longest time."""


class ContainerRuntime:
    """Runs programs in containers, one at a time in each workspace, among all processes of the host."""

    def __init__(self, settings: ContainerSettings, *, state: Callable[[], Path]) -> None:
        """Make containers by *settings*; nothing is asked of the engine yet.

        *state* gives the directory in which those are noted that are of no session.
        """
        self._settings = settings
        self._state = state
        self._lock = Lock()
        self._turns = SessionSerializer()
        self._engine: Engine | None = None
        self._keepers: dict[Path, Containers] = {}
        self._seen: dict[tuple[Path, str], Hashable] = {}
        """Which containers are known to have which directory."""
        self._out_of_memory: dict[str, int] = {}
        self._used: dict[tuple[Path, str], ContainerBinding] = {}
        """Those that were used, the last one at the end."""

    def default_policy(self) -> ExecutionPolicy:
        """What a call may take if nobody says: the memory of its whole container."""
        most = min(max(self._settings.memory_bytes, MEMORY_BYTES), MAX_MEMORY_BYTES)
        return ExecutionPolicy(memory_bytes=most)

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
        """Run *script* with the image's `python3`; paths beneath the policy's mount are in `/workspace`.

        Raises:
            ValueError: It is to be *stateful*, which is not offered.
            RuntimeMissingError: No image is configured, or it has no `python3`.
            EngineError: There is no engine that can be used.
            ContainerError: The container cannot be used.
            QuotaError: The workspace holds more than it may.
            AccessError: The workspace may only be read, or in part.
            MissingError: The directory to begin in is not there.
        """
        if stateful:
            raise ValueError("a container keeps no interpreter: stateful is not offered")
        file = None if script.file is None else _inside(script.file, policy)
        cwd = _require_directory(workspace, _inside(script.cwd, policy))
        result, has_begun = self._run(
            python_command(script, cwd, file), workspace, policy, call or CancellableCall(), on_output
        )
        if not has_begun and result.exit_code == NOT_FOUND:
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
        """Run *command*; one that is not in the image ends with 127, as in a shell.

        Raises:
            RuntimeMissingError: No image is configured.
            EngineError: There is no engine that can be used.
            ContainerError: The container cannot be used.
            QuotaError: The workspace holds more than it may.
            AccessError: The workspace may only be read, or in part.
            MissingError: The directory to begin in is not there.
        """
        cwd = _require_directory(workspace, _inside(command.cwd, policy))
        return self._run(replace(command, cwd=cwd), workspace, policy, call or CancellableCall(), on_output)[
            0
        ]

    def validate(self, source: bytes) -> bool:
        """Whether *source* is Python, as the image's own compiler sees it, in a container without files.

        Raises:
            RuntimeMissingError: No image is configured, or it has no `python3`.
            SandboxExecutionError: It could not be checked.
        """
        unlimited = Limits(disk_bytes=None, entries=None, file_bytes=None)
        spec = make_spec(self._settings, NOBODY, None, unlimited)
        home = ContainerBinding(directory=self._state(), key=_CHECK_KEY, spec=spec)
        call, until = CancellableCall(), time.monotonic() + 2 * _CHECK.timeout_seconds
        with (
            self._turns.hold(home.name, call, until) as had,
            cross_process_lock(home.turn, call, until) as alone,
        ):
            if not had or not alone:
                raise SandboxExecutionError(
                    "the source could not be checked: others are checked all the time"
                )
            run = ContainerRun(
                self._container(home),
                check_command(source),
                _CHECK,
                call=call,
                on_output=None,
                guard=NoWatch(),
            )
            ending = run.run(_CHECK.timeout_seconds)
        if not run.has_begun:
            raise RuntimeMissingError(f"the image {self._settings.image!r} has no {PYTHON}")
        if ending.exit_code not in (0, IS_NO_PYTHON):
            raise SandboxExecutionError(f"the source could not be checked: {ending.reason or 'it failed'}")
        return ending.exit_code == 0

    def reset(self, key: Hashable) -> bool:
        """Nothing is kept by *key*; see `restart`."""
        return False

    def restart(self, workspace: Workspace) -> bool:
        """Empty the `/tmp` of the container of *workspace*, when nothing runs; whether there was one."""
        home = self._home(workspace, UnmediatedRun(workspace))
        forever, keeper = float("inf"), self._keeper(home.directory)
        with (
            self._turns.hold(home.name, CancellableCall(), forever),
            cross_process_lock(home.turn, CancellableCall(), forever),
        ):
            if not keeper.status(home.key).exists:
                return False
            self._container(home).restart()
            return True

    def close(self) -> None:
        """Let go of all containers; those that nobody else uses are removed."""
        with self._lock:
            keepers, self._keepers = self._keepers, {}
            engine, self._engine = self._engine, None
        for keeper in keepers.values():
            # What an engine that is gone does not remove now is swept later.
            with suppress(CarrelError):
                keeper.close()
        if engine is not None:
            engine.close()

    def abandon(self) -> None:
        """Begin anew in a child that was forked; what runs is the parent's."""
        for keeper in self._keepers.values():
            keeper.abandon()
        self._lock, self._turns = Lock(), SessionSerializer()
        self._engine, self._keepers, self._used = None, {}, {}

    # One call

    def _run(
        self,
        command: ContainerCommand,
        workspace: Workspace,
        policy: ExecutionPolicy,
        call: CancellableCall,
        on_output: OnOutput | None,
    ) -> tuple[SandboxResult, bool]:
        """The result, and whether there was such a program."""
        _require_offered(policy)
        memory_bytes = min(policy.memory_bytes, self._settings.memory_bytes)
        started = time.monotonic()
        until = started + policy.timeout_seconds
        use = UnmediatedRun(workspace)
        home = self._home(workspace, use)
        turn = _Turn(command, policy, memory_bytes, call, on_output, until)
        ended: _Ended | None = None
        with (
            self._turns.hold(home.name, call, until) as had,
            cross_process_lock(home.turn, call, until if had else 0) as alone,
        ):
            if had and alone and not turn.is_over():
                ended = self._use(turn, home, use, workspace)
        ended = ended or _Ended(RunOutcome(reason=turn.reason))
        state: dict[str, object] = {
            "runtime": "container",
            "image": self._settings.image,
            "changes_complete": ended.changes.is_whole,
            "files_kept_back": ended.left,
        }
        self._let_go_of_the_oldest(home)
        duration_ms = (time.monotonic() - started) * 1000
        result = build_result(
            ended.ending, policy, workspace, ended.changes, state, duration_ms, memory_bytes=memory_bytes
        )
        return result, ended.has_begun

    def _use(self, turn: _Turn, home: ContainerBinding, use: UnmediatedRun, workspace: Workspace) -> _Ended:
        """Run a program while nobody else runs one."""
        try:
            with cancelled_when(turn.is_over):
                container, left = self._prepared(turn, home, use, workspace)
        except WalkCancelledError:
            return _Ended(RunOutcome(reason=turn.reason))
        try:
            with QuotaWatch(use, container) as guard:
                run = ContainerRun(
                    container,
                    turn.command,
                    turn.policy,
                    call=turn.call,
                    on_output=turn.on_output,
                    guard=guard,
                )
                try:
                    ending = run.run(turn.until - time.monotonic())
                except ContainerError as error:
                    if error.problem == "stopped":
                        # The engine takes it for one that runs; the next call finds one that does.
                        container.restart()
                    raise
        except BaseException:
            with suppress(CarrelError, WalkCancelledError), turn.finishing():
                use.end()
                # It may still run, if the engine is gone.
                use.mark_dirty()
            raise
        with turn.finishing():
            changes = use.end()
        if ending.exit_code == KILLED and self._ran_out_of_memory(container):
            ending.exit_code, ending.reason = None, TrapReason.MEMORY
        if ending.reason is None and changes.problem is not None:
            ending.reason, ending.detail = TrapReason.QUOTA, changes.problem
        return _Ended(ending, changes, left, run.has_begun)

    def _prepared(
        self, turn: _Turn, home: ContainerBinding, use: UnmediatedRun, workspace: Workspace
    ) -> tuple[Container, list[str]]:
        """The container in which the program can begin, and the files that it is not given.

        Raises:
            WalkCancelledError: Its time was up before, or it was cancelled.
        """
        use.require_room()
        container = self._container(home)
        if kill_leftovers(container):
            # Somebody was killed while a program ran.
            use.recount()
            use.require_room()
        left = [] if use.bypass is None else use.bypass.chown(*home.owner)
        container = self._with_the_directory(container, home, use, workspace)
        limit_memory(container, turn.memory_bytes)
        use.begin()
        return container, left

    # The container

    def _home(self, workspace: Workspace, use: UnmediatedRun) -> ContainerBinding:
        return find_binding(workspace, use.files, self._settings, self._state)

    def _keeper(self, directory: Path) -> Containers:
        with self._lock:
            if self._engine is None:
                self._engine = Engine.connect(
                    self._settings.address, timeout_seconds=self._settings.timeout_seconds
                )
            found = self._keepers.get(directory)
            if found is None:
                found = self._keepers[directory] = Containers(self._engine, directory)
            return found

    def _container(self, home: ContainerBinding) -> Container:
        keeper = self._keeper(home.directory)
        keeper.register(home.key, home.spec)
        try:
            return keeper.ensure(home.key)
        except ContainerError as error:
            if error.problem != "program":
                raise
            detail = error.detail
        raise ContainerError(
            "program",
            f"the image {home.spec.image!r} has no sh, which every container runs on",
            detail=detail,
        )

    def _let_go_of_the_oldest(self, used: ContainerBinding) -> None:
        """Keep *used*, and not too many others."""
        with self._lock:
            self._used.pop(used.name, None)
            self._used[used.name] = used
            count = len(self._used) - _MOST_CONTAINERS
            oldest = list(self._used.values())[: max(0, count)]
        for home in oldest:
            with (
                self._turns.hold(home.name, CancellableCall(), 0) as had,
                cross_process_lock(home.turn, CancellableCall(), 0) as alone,
            ):
                if had and alone:
                    self._keeper(home.directory).release(home.key)
                    with self._lock:
                        self._used.pop(home.name, None)
                        self._seen.pop(home.name, None)

    def _with_the_directory(
        self, container: Container, home: ContainerBinding, use: UnmediatedRun, workspace: Workspace
    ) -> Container:
        """The container, made anew if it has the directory of an earlier session of the same name.

        Raises:
            ContainerError: The engine has another directory there; it is on another host.
        """
        bypass = use.bypass
        if bypass is None:
            return container
        identity = (*bypass.identity(), workspace.created_ns)
        if self._seen.get(home.name) == (container.id, identity):
            return container
        for is_last in (False, True):
            if has_directory(container, bypass):
                self._seen[home.name] = container.id, identity
                return container
            if not is_last:
                self._keeper(home.directory).remove(home.key)
                container = self._container(home)
        raise ContainerError(
            "elsewhere", "the Docker engine does not see the files of this host: is it on another one?"
        )

    def _ran_out_of_memory(self, container: Container) -> bool:
        """Whether the kernel ended a process for want of memory since this was asked last."""
        count = killed_for_memory(container)
        before = self._out_of_memory.get(container.id, 0)
        self._out_of_memory[container.id] = count
        # Less than before: it was started again meanwhile.
        return count > before or 0 < count < before


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is to be run when it is its turn."""

    command: ContainerCommand
    policy: ExecutionPolicy
    memory_bytes: int
    call: CancellableCall
    on_output: OnOutput | None
    until: float
    """When its time is up, by the monotonic clock; what is looked at before it begins belongs to it."""

    def is_over(self) -> bool:
        """Whether it must not begin any more."""
        return self.call.is_cancelled or time.monotonic() >= self.until

    @property
    def reason(self) -> TrapReason:
        """Why it is over."""
        return TrapReason.CANCELLED if self.call.is_cancelled else TrapReason.TIMEOUT

    def finishing(self) -> AbstractContextManager[None]:
        """Limit the walks of the block to what is left of its time, and a little more."""
        until = max(time.monotonic(), self.until) + _FINISH_SECONDS
        return cancelled_when(lambda: time.monotonic() >= until)


@dataclass(slots=True)
class _Ended:
    """A call that has ended."""

    ending: RunOutcome
    changes: UnmediatedChanges = field(default_factory=UnmediatedChanges)
    left: list[str] = field(default_factory=list)
    """Files that the program was not given."""
    has_begun: bool = True
    """Whether there was such a program."""


def _require_offered(policy: ExecutionPolicy) -> None:
    """Refuse a policy that wants what there is not in a container."""
    for name in ("fuel_budget", "mount_data_dir"):
        if getattr(policy, name) is not None:
            raise PolicyValidationError(f"{name} is not offered in a container", field=name)


def _inside(path: str, policy: ExecutionPolicy) -> str:
    """What the container calls a path that may begin with the mount of the policy."""
    mount = policy.guest_mount_path
    if path == mount or path.startswith(f"{mount}/"):
        return WORKSPACE + path[len(mount) :]
    return path if path.startswith("/") else f"{WORKSPACE}/{path}"


def _require_directory(workspace: Workspace, path: str) -> str:
    """The directory to begin in, if the gate has it: in the workspace, also through links.

    Raises:
        MissingError: It is not there.
        NotDirectoryError: It is something else.
        OutsideError: It is elsewhere.
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
