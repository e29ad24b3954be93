"""`Shell`: the built-in shell on the files of a workspace, with `python` as guest code."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO, Unpack, cast

from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import PythonSettings
from carrel.errors import ConfigError, RuntimeDisabledError
from carrel.policy.execution import MAX_NUMBER, TIMEOUT_SECONDS, ExecutionPolicy
from carrel.sandbox.engines import FindEngine, engines, one_shot_engine
from carrel.sandbox.sandbox import CallOptions, PythonSandbox
from carrel.sandbox.workspace_source import OpenWorkspaceSource
from carrel.shell.api import PythonCall
from carrel.shell.runtime.shell import BareShell, ShellOptions
from carrel.workspace.workspace import Workspace


class Shell(BareShell):
    """Runs command lines on the files of one workspace, without a host shell or any host process.

    >>> Shell(workspace).run("grep -n TODO *.py")

    `python` runs as guest code of the session, on the same files.
    """

    def __init__(
        self, workspace: Workspace, *, policy: ExecutionPolicy | None = None, **options: Unpack[ShellOptions]
    ) -> None:
        """Open a shell on *workspace*, which the caller closes.

        Args:
            workspace: The files.
            policy: The limits of guest code.
            options: Pipelines, budget, commands and so on; see `ShellOptions`. Without `python`, the runtime
                of this process executes guest code.
        """
        options.setdefault("python", GuestPython(policy))
        super().__init__(workspace, **options)


class GuestPython:
    """Runs `python` as guest code."""

    def __init__(
        self,
        policy: ExecutionPolicy | None = None,
        *,
        engine: FindEngine | None = None,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Run on the runtime of *engine*, by default that of this process.

        The timeout of a call is that of *policy*; without one, that of the command line.
        """
        self._policy = replace(
            policy or ExecutionPolicy(), stdout_max_bytes=MAX_NUMBER, stderr_max_bytes=MAX_NUMBER
        )
        self._has_own_timeout = policy is not None
        self._engine = engine or engines().get
        self._logger = logger

    def run(self, workspace: Workspace, call: PythonCall) -> int:
        """Run one call and return its exit status.

        Raises:
            RuntimeDisabledError: The configuration disables guest code, or is invalid.
            RuntimeMissingError: The engine is not installed.
        """
        engine = self._engine(_settings())
        sandbox = PythonSandbox(
            OpenWorkspaceSource(workspace), engine=engine, policy=self._policy_of(call), logger=self._logger
        )
        options: CallOptions = {
            "on_start": call.on_start,
            "argv": call.argv,
            "env": call.env,
            "cwd": call.cwd,
            "stdin": cast(BinaryIO, _ChunkReader(call.stdin)),  # only `read` is called
            "on_output": call.on_output,
            "keep_output": False,
        }
        if call.file is not None:
            result = sandbox.execute_file(call.file, **options)
        else:
            options["name"] = call.name
            result = sandbox.execute(call.source, **options)
        if message := result.metadata.get("message"):
            call.on_output("stderr", str(message).encode("utf-8", "replace"))
        return result.exit_status

    def _policy_of(self, call: PythonCall) -> ExecutionPolicy:
        """Return the policy with the remaining time as timeout."""
        seconds = call.timeout_seconds
        if seconds is None or (self._has_own_timeout and seconds >= self._policy.timeout_seconds):
            return self._policy
        return replace(self._policy, timeout_seconds=min(max(seconds, 0.001), TIMEOUT_SECONDS))


def _settings() -> PythonSettings:
    """Load the settings of guest Python; errors do not reveal where the configuration file is."""
    try:
        settings = load(os.environ)
    except ConfigError:
        raise RuntimeDisabledError("guest code is switched off: the configuration cannot be used") from None
    if not settings.sandbox:
        raise RuntimeDisabledError("guest code is switched off: sandbox.enabled")
    return settings.python


@contextmanager
def one_shot_python(logger: SandboxLogger | None = None) -> Iterator[GuestPython]:
    """Provide `python` for a short-lived process, which keeps no interpreter ready."""
    with one_shot_engine() as engine:
        yield GuestPython(engine=engine, logger=logger)


class _ChunkReader(io.RawIOBase):
    """Reads an iterable of chunks as a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]  # any writable buffer
        """Fill *buffer* from the next chunk; return 0 at the end, `None` if no data is available yet."""
        if not self._rest:
            chunk = next(self._chunks, None)
            if not chunk:
                return 0 if chunk is None else None
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
