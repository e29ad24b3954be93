"""Requests to run something in a session: a command line, or Python code in the guest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from carrel.errors import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A command line for the shell."""

    command: str
    stdin: bytes = b""
    timeout_seconds: float | None = None
    """Defaults to the configured timeout, which is also the maximum."""
    shell: str | None = None
    """Name of a shell that keeps its working directory; without one, start in `/workspace`."""

    tool = "bash"
    """The tool that the caller's role must include."""

    def __post_init__(self) -> None:
        _require_timeout(self.timeout_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRequest:
    """Python code for the guest: a text, or a file of the workspace."""

    code: str | None = None
    file: str | None = None
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    timeout_seconds: float | None = None
    cwd: str | None = None
    """Working directory; by default the workspace."""
    name: str | None = None
    """Name of the code in tracebacks and `sys.argv[0]`."""
    stateful: bool = False
    """Whether variables are kept between calls, while the service has the session open."""

    tool = "python_executor"
    """The tool that the caller's role must include."""

    def __post_init__(self) -> None:
        if (self.code is None) == (self.file is None):
            raise RequestError("exactly one of 'code' and 'file' must be given")
        _require_timeout(self.timeout_seconds)


ExecutionRequest = CommandRequest | CodeRequest


def _require_timeout(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise RequestError(f"timeout_seconds must be a finite number above 0, not {seconds!r}")
