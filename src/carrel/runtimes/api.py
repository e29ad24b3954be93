"""`Runtime`, the protocol of a runtime, and the kinds of runtimes."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from carrel.policy.execution import ExecutionPolicy
    from carrel.runtimes.call import CancellableCall, OnOutput
    from carrel.runtimes.result import SandboxResult
    from carrel.runtimes.script import Script
    from carrel.runtimes.wasm.build.compiled import OnProgress
    from carrel.workspace.workspace import Workspace


class RuntimeType(StrEnum):
    """The kinds of runtimes."""

    PYTHON = "python"
    """Python in WebAssembly, in separate processes."""
    CONTAINER = "container"
    """Programs in a Docker container."""

    @classmethod
    def _missing_(cls, value: object) -> RuntimeType:
        known = ", ".join(f"'{kind}'" for kind in cls)
        raise ValueError(f"Invalid runtime type: {value!r}; there are {known}")


class Runtime(Protocol):
    """Runs scripts on the files of a workspace, one at a time per session."""

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
        """Run *script*; *key* identifies its session, and *call* lets another thread stop it."""
        ...

    def validate(self, source: bytes) -> bool:
        """Return whether *source* compiles, without running it."""
        ...

    def reset(self, key: Hashable) -> bool:
        """Discard the kept interpreter of a session; return whether there was one."""
        ...

    def close(self) -> None:
        """End all running scripts and processes."""
        ...
