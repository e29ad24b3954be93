"""Protocols that the shell is handed from above: what runs guest Python, and what reopens a workspace."""

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
    """What `sys.argv[0]` and tracebacks call it, if it is not given by `-c`."""
    file: str | None
    """Its absolute path, if it is a file of the workspace."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stdin: Iterable[bytes]
    """An empty piece says that nothing is there yet."""
    timeout_seconds: float | None
    on_output: Callable[[str, bytes], None]
    """Is given `stdout` or `stderr`, and bytes."""
    on_start: Callable[[Callable[[], object]], None]
    """Is given a function that stops the run."""


class PythonRunner(Protocol):
    """Runs guest code on the files of a workspace."""

    def run(self, workspace: Workspace, call: PythonCall) -> int:
        """Run it to its end, and return its exit status."""
        ...


class Operator(Protocol):
    """Opens a workspace again, under other rules."""

    def reopen(self, policy: SandboxPolicy) -> Workspace:
        """The same files under *policy*; whoever asks closes the old workspace."""
        ...
