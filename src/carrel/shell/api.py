"""Protocols implemented by the layers above the shell: running guest Python and reopening a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from carrel.policy.rules import SandboxPolicy
    from carrel.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonCall:
    """One run of guest code."""

    source: bytes
    name: str | None
    """Name of the script in `sys.argv[0]` and tracebacks; `None` with `-c`."""
    file: str | None
    """Absolute path of the script, if it is a file in the workspace."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: Iterable[bytes]
    """An empty chunk means that no input is available yet."""
    timeout_seconds: float | None
    on_output: Callable[[str, bytes], None]
    """Called with `stdout` or `stderr`, and the bytes."""
    on_start: Callable[[Callable[[], object]], None]
    """Called with a function that stops the run."""


class PythonRunner(Protocol):
    """Runs guest code on the files of a workspace."""

    def run(self, workspace: Workspace, call: PythonCall) -> int:
        """Run *call* to completion and return its exit status."""
        ...


class Operator(Protocol):
    """Reopens a workspace under other rules."""

    def reopen(self, policy: SandboxPolicy) -> Workspace:
        """Open the same files under *policy*; the caller closes the old workspace."""
        ...
