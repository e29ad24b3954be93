"""`BaseSandbox`, the interface; `RuntimeSandbox`, on any runtime; and `PythonSandbox`."""

from __future__ import annotations

import asyncio
import inspect
import logging
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypedDict, TypeVar, Unpack

from carrel.audit.logger import SandboxLogger
from carrel.config.kind import did_you_mean
from carrel.errors import TextError
from carrel.policy.execution import DEFAULT_POLICY, ExecutionPolicy
from carrel.runtimes.api import Runtime, RuntimeType
from carrel.runtimes.call import CancellableCall, OnOutput
from carrel.runtimes.host_tools import TIMEOUT_SECONDS, HostTools, Tools
from carrel.runtimes.result import SandboxResult
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.build.compiled import OnProgress, Progress
from carrel.sandbox.workspace_source import WorkspaceSource
from carrel.workspace.threads import call_threads
from carrel.workspace.workspace import Workspace

_COMPILATION: ContextVar[OnProgress | None] = ContextVar("carrel_compilation", default=None)
"""Watches the compilation of the guest in the current context."""

RuntimeT = TypeVar("RuntimeT", bound=Runtime)


@contextmanager
def watching_compilation(watch: OnProgress) -> Iterator[None]:
    """Pass *watch* the progress of compiling the guest for which calls in the current context wait.

    The context is inherited by tasks and by the threads of awaited calls. A call with `on_progress` of its
    own reports only to that.
    """
    token = _COMPILATION.set(watch)
    try:
        yield
    finally:
        _COMPILATION.reset(token)


class CallOptions(TypedDict, total=False):
    """Options of one call, which override the policy."""

    stdin: bytes | str | BinaryIO | None
    """Standard input; an open file is read on demand, from its descriptor if it has one."""
    argv: tuple[str, ...] | list[str] | None
    """`sys.argv` after the script name; the policy's by default."""
    env: Mapping[str, str] | None
    """Environment variables in addition to those of the policy."""
    timeout_seconds: float | None
    """Timeout instead of the policy's."""
    cwd: str | None
    """Working directory; the policy's mount path by default."""
    name: str | None
    """Name of the code in tracebacks and `sys.argv[0]`; `<string>` and `-c` by default."""
    on_output: OnOutput | None
    """Receives `stdout` or `stderr` and bytes as they are written."""
    keep_output: bool
    """Whether the result also has the output when `on_output` receives it; true by default."""
    show_last_value: bool
    """Whether `execute` also prints the value of a last expression, as a notebook does; false by default."""
    on_progress: OnProgress | None
    """Receives the progress of compiling the guest, if the call waits for it."""
    tools: Tools | None
    """Functions of this process that the code may call by these names, with arguments and results that JSON
    can hold; their type hints are checked. Not in containers."""
    tool_timeout_seconds: float
    """Timeout of one call of such a function; 30 by default. The timeout of the run includes these calls."""
    on_start: Callable[[Callable[[], object]], object] | None
    """Receives a function that stops only this call, from any thread and also before it starts."""


class BaseSandbox(ABC):
    """Runs code on the files of one workspace."""

    runtime: RuntimeType
    session_id: str | None
    policy: ExecutionPolicy

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def execute(self, code: str | bytes, **options: Unpack[CallOptions]) -> SandboxResult:
        """Run *code* and return the result; code that fails is a result, not an exception."""

    @abstractmethod
    def execute_file(self, path: str, **options: Unpack[CallOptions]) -> SandboxResult:
        """Run a script of the workspace."""

    @abstractmethod
    async def aexecute(self, code: str | bytes, **options: Unpack[CallOptions]) -> SandboxResult:
        """Like `execute`, awaitable; cancelling the task stops the code first."""

    @abstractmethod
    def validate_code(self, code: str | bytes) -> bool:
        """Return whether *code* compiles, without running it."""

    @abstractmethod
    def cancel(self) -> int:
        """Stop all running calls of this sandbox, from any thread; return how many were running."""

    @abstractmethod
    def reset(self) -> bool:
        """Discard the variables of a stateful sandbox; return whether there were any."""

    @abstractmethod
    def close(self) -> None:
        """Stop all running calls; files and the variables of a stateful session are kept."""


class RuntimeSandbox(BaseSandbox, Generic[RuntimeT]):
    """Runs code in a runtime on the files of one workspace.

    Calls of one session run one after another, those of different sessions concurrently.
    """

    def __init__(
        self,
        source: WorkspaceSource,
        *,
        engine: RuntimeT,
        policy: ExecutionPolicy | None = None,
        logger: SandboxLogger | None = None,
        stateful: bool = False,
    ) -> None:
        """Run on the files of *source*; most callers want `create_sandbox` or `create_session_sandbox`."""
        self.session_id = source.session_id
        self.policy = policy or DEFAULT_POLICY
        self.stateful = stateful
        self._source = source
        self._engine: RuntimeT = engine
        self._logger = SandboxLogger.of(logger)
        self._lock = Lock()
        self._calls: set[CancellableCall] = set()

    def execute(self, code: str | bytes, **options: Unpack[CallOptions]) -> SandboxResult:
        """Run *code* and return the result; code that fails is a result, not an exception.

        Raises:
            SessionMissingError: The session was deleted, or has expired.
            RuntimeMissingError: The WebAssembly engine is not installed.
            SandboxExecutionError: The engine cannot run.
            PolicyValidationError: An option is invalid.
        """
        return self._execute(CancellableCall(), _code_bytes(code), None, options)

    def execute_file(self, path: str, **options: Unpack[CallOptions]) -> SandboxResult:
        """Run a script of the workspace, as `python FILE` does.

        Raises:
            MissingError: The file does not exist.
        """
        inside = path.removeprefix(f"{self.policy.guest_mount_path}/")
        with self._source.open() as workspace:
            source = workspace.read(inside)
        return self._execute(CancellableCall(), source, _guest_path(path, self.policy), options)

    async def aexecute(self, code: str | bytes, **options: Unpack[CallOptions]) -> SandboxResult:
        """Like `execute`, awaitable; `on_output` and `on_progress` are called in the event loop."""
        call = CancellableCall()
        return await self._run_async(call, options, partial(self._execute, call, _code_bytes(code), None))

    async def _run_async(
        self, call: CancellableCall, options: CallOptions, run: Callable[[CallOptions], SandboxResult]
    ) -> SandboxResult:
        """Run a call in a thread, with its callbacks in the event loop."""
        loop = asyncio.get_running_loop()
        work = partial(run, _in_loop(loop, options))
        running = loop.run_in_executor(call_threads(), copy_context().run, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            call.cancel()
            await asyncio.wait([running])
            raise

    def validate_code(self, code: str | bytes) -> bool:
        """Return whether *code* compiles, without running it or touching a file."""
        return self._engine.validate(_code_bytes(code))

    def cancel(self) -> int:
        """Stop all running calls of this sandbox, from any thread; return how many were running."""
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call.cancel()
        return len(calls)

    def reset(self) -> bool:
        """Discard the variables of a stateful sandbox; return whether there were any."""
        with self._source.open() as workspace:
            return self._engine.reset(self._source.key(workspace))

    def close(self) -> None:
        """Stop all running calls; files and the variables of a stateful session are kept."""
        self.cancel()

    def _execute(
        self, call: CancellableCall, source: bytes, file: str | None, options: CallOptions
    ) -> SandboxResult:
        tools = self._host_tools(options)

        def execute(workspace: Workspace, policy: ExecutionPolicy) -> SandboxResult:
            script = Script(
                source=source,
                file=file,
                label=options.get("name"),
                argv=policy.argv,
                cwd=options.get("cwd") or policy.guest_mount_path,
                stdin=stdin_of(options),
                keep_output=options.get("keep_output", True),
                show_last_value=file is None and options.get("show_last_value", False),
                tools=tools,
            )
            return self._engine.execute(
                script,
                workspace,
                policy,
                key=self._source.key(workspace),
                stateful=self.stateful,
                call=call,
                on_output=options.get("on_output"),
                on_progress=options.get("on_progress") or self._report_compiling(),
            )

        return self._in_call(call, options, execute)

    def _host_tools(self, options: CallOptions) -> HostTools | None:
        """Return the functions that the code may call; each call of one is logged."""
        tools = options.get("tools")
        if not tools:
            return None
        for name, function in tools.items():
            if inspect.iscoroutinefunction(function):
                raise TypeError(f"the tool {name!r} is a coroutine function, which only `aexecute` can call")
        timeout_seconds = options.get("tool_timeout_seconds", TIMEOUT_SECONDS)
        return HostTools(tools, timeout_seconds=timeout_seconds, on_call=self._log_tool_call)

    def _log_tool_call(self, name: str, error: str | None, duration_ms: float) -> None:
        self._logger.log_event(
            "execution.tool",
            logging.INFO if error is None else logging.WARNING,
            runtime=self.runtime,
            session_id=self.session_id,
            tool=name,
            error=error,
            duration_ms=duration_ms,
        )

    def _in_call(
        self,
        call: CancellableCall,
        options: CallOptions,
        execute: Callable[[Workspace, ExecutionPolicy], SandboxResult],
    ) -> SandboxResult:
        """Open the workspace for *execute*, which *call* can cancel, and log the run."""
        _require_known(options)
        policy = _policy_of_call(self.policy, options)
        stdin_of(options)
        if (on_start := options.get("on_start")) is not None:
            on_start(call.cancel)
        with self._registered(call), self._source.open() as workspace:
            self._logger.log_execution_start(self.runtime, policy, self.session_id)
            result = execute(workspace, policy)
            result = _with_logs(result) if policy.preserve_logs else result
            self._logger.log_execution_complete(result, self.runtime, self.session_id)
            return result

    @contextmanager
    def _registered(self, call: CancellableCall) -> Iterator[None]:
        with self._lock:
            self._calls.add(call)
        try:
            yield
        finally:
            with self._lock:
                self._calls.discard(call)

    def _report_compiling(self) -> OnProgress:
        """Return a callback that logs once that a call waits for the guest, and passes the progress on."""
        is_logged = False
        watch = _COMPILATION.get()

        def report(progress: Progress) -> None:
            nonlocal is_logged
            if watch is not None:
                watch(progress)
            if not is_logged:
                is_logged = True
                self._logger.log_event(
                    "runtime.compiling",
                    logging.WARNING,
                    runtime=self.runtime,
                    session_id=self.session_id,
                    remedy="run carrel setup to compile in advance",
                )

        return report


class PythonSandbox(RuntimeSandbox[Runtime]):
    """Runs Python in WebAssembly on the files of one workspace.

    Calls of one session run one after another, those of different sessions concurrently.
    """

    runtime = RuntimeType.PYTHON


def _in_loop(loop: asyncio.AbstractEventLoop, options: CallOptions) -> CallOptions:
    """Return the options with callbacks that run in the event loop."""
    in_loop = options.copy()
    if tools := options.get("tools"):
        seconds = options.get("tool_timeout_seconds", TIMEOUT_SECONDS)
        in_loop["tools"] = {name: _awaited_in(loop, each, seconds) for name, each in tools.items()}
    if (on_output := options.get("on_output")) is not None:

        def output(name: str, data: bytes) -> None:
            loop.call_soon_threadsafe(on_output, name, data)

        in_loop["on_output"] = output
    if (on_progress := options.get("on_progress")) is not None:

        def progress(done: Progress) -> None:
            loop.call_soon_threadsafe(on_progress, done)

        in_loop["on_progress"] = progress
    return in_loop


def _awaited_in(
    loop: asyncio.AbstractEventLoop,
    function: Callable[..., Any],  # Any: arguments and results of any function
    timeout_seconds: float,
) -> Callable[..., Any]:
    """Return a function for threads that runs a coroutine function in the event loop; others unchanged."""
    if not inspect.iscoroutinefunction(function):
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        running = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), loop)
        try:
            return running.result(timeout_seconds)
        finally:
            running.cancel()

    return call


def _require_known(options: CallOptions) -> None:
    known = {name: repr(name) for name in CallOptions.__annotations__}
    for name in options:
        if name not in known:
            raise TypeError(f"there is no option {name!r}{did_you_mean(name, known)}")


def _code_bytes(code: str | bytes) -> bytes:
    if not isinstance(code, str | bytes):
        raise TypeError(f"the code must be str or bytes, not {type(code).__name__}")
    return code if isinstance(code, bytes) else _encoded(code, "the code")


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise TextError(f"{what} has characters that UTF-8 cannot encode") from None


def stdin_of(options: CallOptions) -> bytes | BinaryIO:
    """Return the standard input of a call as bytes or as a file."""
    stdin = options.get("stdin")
    if stdin is None:
        return b""
    if not isinstance(stdin, str | bytes) and not hasattr(stdin, "read"):
        raise TypeError(f"stdin must be bytes, str or an open file, not {type(stdin).__name__}")
    return _encoded(stdin, "standard input") if isinstance(stdin, str) else stdin


def _policy_of_call(policy: ExecutionPolicy, options: CallOptions) -> ExecutionPolicy:
    changes: dict[str, object] = {}
    if (argv := options.get("argv")) is not None:
        changes["argv"] = tuple(argv)
    if (env := options.get("env")) is not None:
        changes["env"] = {**policy.env, **env}
    if (timeout := options.get("timeout_seconds")) is not None:
        changes["timeout_seconds"] = timeout
    return replace(policy, **changes) if changes else policy  # type: ignore[arg-type]  # validates itself


def _guest_path(path: str, policy: ExecutionPolicy) -> str:
    """Return the path of a workspace file as the guest sees it."""
    return path if path.startswith("/") else f"{policy.guest_mount_path}/{path}"


def _with_logs(result: SandboxResult) -> SandboxResult:
    """Write the output to a new directory on the host."""
    directory = Path(tempfile.mkdtemp(prefix="carrel-logs-"))
    (directory / "stdout.log").write_text(result.stdout, "utf-8")
    (directory / "stderr.log").write_text(result.stderr, "utf-8")
    return replace(result, metadata={**result.metadata, "logs_dir": str(directory)})
