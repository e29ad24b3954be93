"""`RemoteSandbox` and `AsyncRemoteSandbox`: guest code in a session at a service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, BinaryIO, Self, TypedDict, Unpack

from carrel.errors import SandboxExecutionError, TextError
from carrel.remote.executions import OnOutput, RemoteExecution, RemoteExecutions, in_thread
from carrel.remote.json_codec import parse
from carrel.remote.run_sync import run_sync
from carrel.remote.transport.api import Transport
from carrel.runtimes.result import SandboxResult, TrapReason

_CHECK = "import sys; compile(sys.stdin.buffer.read(), '<string>', 'exec', dont_inherit=True)"
"""Code that compiles its standard input, and fails if that is not possible."""
_UNPARSABLE = (TrapReason.STACK, TrapReason.MEMORY)
"""Reasons with which the check of source that no parser can handle ends."""


class RunOptions(TypedDict, total=False):
    """Options of one call; `CallOptions` of the library has more."""

    stdin: bytes | str | BinaryIO | None
    """Standard input; an open file is read before the call."""
    argv: tuple[str, ...] | list[str] | None
    """`sys.argv` after the name of the script."""
    env: Mapping[str, str] | None
    """Environment variables."""
    timeout_seconds: float | None
    """Time limit; at most that of the service."""
    cwd: str | None
    """Working directory; by default the workspace."""
    name: str | None
    """Name of the code in tracebacks and `sys.argv[0]`; `<string>` and `-c` by default."""
    on_output: OnOutput | None
    """Called with `stdout` or `stderr` and bytes as they arrive."""
    keep_output: bool
    """Whether the result also holds output passed to `on_output`; true by default."""
    on_start: Callable[[Callable[[], object]], object] | None
    """Called with a function that stops this call only, from any thread; blocking clients only."""


class AsyncRemoteSandbox:
    """Runs Python on the files of a session at a service; calls are awaited."""

    def __init__(self, transport: Transport, session_id: str, *, stateful: bool) -> None:
        """Run code in the session; most callers use `AsyncRemoteWorkspace.sandbox`."""
        self.session_id = session_id
        self.stateful = stateful
        self.runs = RemoteExecutions(transport, session_id)

    async def execute(self, code: str | bytes, **options: Unpack[RunOptions]) -> SandboxResult:
        """Run *code*; code that fails is a result, not an exception.

        Raises:
            RuntimeDisabledError: Guest code is disabled at the service.
            RuntimeMissingError: The service has no engine.
        """
        return await self.execute_in(self.runs.begin(), {"code": _text(code)}, options)

    aexecute = execute

    async def execute_file(self, path: str, **options: Unpack[RunOptions]) -> SandboxResult:
        """Run a script of the workspace, as `python FILE` would.

        Raises:
            MissingError: There is no such file.
        """
        return await self.execute_in(self.runs.begin(), {"file": path}, options)

    async def execute_in(
        self, run: RemoteExecution, source: Mapping[str, Any], options: RunOptions
    ) -> SandboxResult:
        """Run code as *run*, which can be cancelled."""
        for name in options:
            if name not in RunOptions.__annotations__:
                raise TypeError(f"unknown option {name!r} for code run by a service")
        on_output, keep = options.get("on_output"), options.get("keep_output", True)
        outcome = await self.runs.outcome(run, self._work(source, options), on_output, keep=False)
        result = parse(outcome.result, SandboxResult)
        return result if keep or on_output is None else replace(result, stdout="", stderr="")

    async def validate_code(self, code: str | bytes) -> bool:
        """Return whether the Python of the service compiles *code*, without running it or touching a file.

        Raises:
            SandboxExecutionError: It cannot be checked.
        """
        source = {"code": _CHECK, "stateful": False}
        stdin = code if isinstance(code, bytes) else _text(code)
        result = await self.execute_in(self.runs.begin(), source, {"stdin": stdin})
        if result.trap_reason is not None and result.trap_reason not in _UNPARSABLE:
            raise SandboxExecutionError(f"the source could not be checked: {result.trap_reason}")
        return result.success

    def _work(self, source: Mapping[str, Any], options: RunOptions) -> dict[str, Any]:
        work: dict[str, Any] = {"stateful": self.stateful, **source}
        if stdin := _input(options.get("stdin")):
            work["stdin"] = stdin
        if (argv := options.get("argv")) is not None:
            work["argv"] = list(argv)
        if (env := options.get("env")) is not None:
            work["env"] = dict(env)
        for name in ("timeout_seconds", "cwd", "name"):
            if (value := options.get(name)) is not None:
                work[name] = value
        return work

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def cancel(self) -> int:
        """Stop all running calls of this sandbox; return their number."""
        return await self.runs.cancel()

    async def close(self) -> None:
        """Stop running calls; files, and the variables of a stateful session, are kept."""
        await self.cancel()


class RemoteSandbox:
    """Runs Python on the files of a session at a service, as `PythonSandbox` does in a workspace."""

    def __init__(self, async_sandbox: AsyncRemoteSandbox) -> None:
        """Wrap *async_sandbox*, whose connection blocks; most callers use `RemoteWorkspace.sandbox`."""
        self._async_sandbox = async_sandbox
        self.session_id = async_sandbox.session_id
        self.stateful = async_sandbox.stateful

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def execute(self, code: str | bytes, **options: Unpack[RunOptions]) -> SandboxResult:
        """Run *code*; code that fails is a result, not an exception."""
        return self._execute({"code": _text(code)}, options)

    def execute_file(self, path: str, **options: Unpack[RunOptions]) -> SandboxResult:
        """Run a script of the workspace, as `python FILE` would.

        Raises:
            MissingError: There is no such file.
        """
        return self._execute({"file": path}, options)

    def _execute(self, source: Mapping[str, str], options: RunOptions) -> SandboxResult:
        run = self._async_sandbox.runs.begin()
        if (on_start := options.get("on_start")) is not None:
            on_start(lambda: run_sync(run.cancel()))
        return run_sync(self._async_sandbox.execute_in(run, source, options))

    async def aexecute(self, code: str | bytes, **options: Unpack[RunOptions]) -> SandboxResult:
        """Run *code* as `execute` does; cancelling the task stops the code first.

        `on_output` is called in the event loop.
        """
        loop = asyncio.get_running_loop()
        if (on_output := options.get("on_output")) is not None:

            def output(name: str, data: bytes) -> None:
                loop.call_soon_threadsafe(on_output, name, data)

            options["on_output"] = output
        run, source = self._async_sandbox.runs.begin(), {"code": _text(code)}
        return await in_thread(run, lambda: run_sync(self._async_sandbox.execute_in(run, source, options)))

    def validate_code(self, code: str | bytes) -> bool:
        """Return whether the Python of the service compiles *code*, without running it or touching a file.

        Raises:
            SandboxExecutionError: It cannot be checked.
        """
        return run_sync(self._async_sandbox.validate_code(code))

    def cancel(self) -> int:
        """Stop all running calls of this sandbox, from any thread; return their number."""
        return run_sync(self._async_sandbox.cancel())

    def close(self) -> None:
        """Stop running calls; files, and the variables of a stateful session, are kept."""
        self.cancel()


def _text(code: str | bytes) -> str:
    if isinstance(code, str):
        return code
    if not isinstance(code, bytes):
        raise TypeError(f"the code must be str or bytes, not {type(code).__name__}")
    try:
        return code.decode("utf-8")
    except UnicodeDecodeError:
        raise TextError("the code is not UTF-8") from None


def _input(stdin: bytes | str | BinaryIO | None) -> bytes:
    if stdin is None:
        return b""
    if isinstance(stdin, bytes):
        return stdin
    if not isinstance(stdin, str):
        return bytes(stdin.read())
    try:
        return stdin.encode()
    except UnicodeEncodeError:
        raise TextError("standard input has characters that UTF-8 cannot encode") from None
