"""`Shell`: the built-in shell on the files of a workspace, with `python` in the guest."""

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
    """Runs command lines on the files of one workspace, without a shell and without a process of the host.

    >>> Shell(workspace).run("grep -n TODO *.py")

    `python` runs in the guest of the session, on the same files.
    """

    def __init__(
        self, workspace: Workspace, *, policy: ExecutionPolicy | None = None, **options: Unpack[ShellOptions]
    ) -> None:
        """Open a shell in *workspace*, which stays the caller's to close.

        Args:
            workspace: The files.
            policy: What guest code may take.
            options: Pipelines, budget, commands and so on; see `ShellOptions`. Without `python`, the engine
                of this process runs guest code.
        """
        options.setdefault("python", GuestPython(policy))
        super().__init__(workspace, **options)


class GuestPython:
    """Runs `python` in the guest."""

    def __init__(
        self,
        policy: ExecutionPolicy | None = None,
        *,
        engine: FindEngine | None = None,
        logger: SandboxLogger | None = None,
    ) -> None:
        """Run with what *engine* gives, by default that of this process.

        Under *policy* a call takes no longer than that says; without one, as long as the command line may.
        """
        self._policy = replace(
            policy or ExecutionPolicy(), stdout_max_bytes=MAX_NUMBER, stderr_max_bytes=MAX_NUMBER
        )
        self._has_own_timeout = policy is not None
        self._engine = engine or engines().get
        self._logger = logger

    def run(self, workspace: Workspace, call: PythonCall) -> int:
        """Run one call to its end, and return its exit status.

        Raises:
            RuntimeDisabledError: The configuration switches guest code off, or cannot be used.
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
            "stdin": cast(BinaryIO, _Pieces(call.stdin)),  # only `read` is called, and it has that
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
        """The policy, with the time that is left."""
        seconds = call.timeout_seconds
        if seconds is None or (self._has_own_timeout and seconds >= self._policy.timeout_seconds):
            return self._policy
        return replace(self._policy, timeout_seconds=min(max(seconds, 0.001), TIMEOUT_SECONDS))


def _settings() -> PythonSettings:
    """What the guest may take of the host; whoever types is not told where the configuration is."""
    try:
        settings = load(os.environ)
    except ConfigError:
        raise RuntimeDisabledError("guest code is switched off: the configuration cannot be used") from None
    if not settings.sandbox:
        raise RuntimeDisabledError("guest code is switched off: sandbox.enabled")
    return settings.python


@contextmanager
def one_shot_python(logger: SandboxLogger | None = None) -> Iterator[GuestPython]:
    """What runs `python` in a process that ends soon: its engine makes nothing ready for a second call."""
    with one_shot_engine() as engine:
        yield GuestPython(engine=engine, logger=logger)


class _Pieces(io.RawIOBase):
    """What comes in pieces, as an open file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]  # any writable buffer
        """Fill *buffer* from the next piece; 0 at the end, `None` if nothing is there yet."""
        if not self._rest:
            piece = next(self._pieces, None)
            if not piece:
                return 0 if piece is None else None
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
