"""Options of a toolbox: what a caller may set, and the values in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from carrel.policy.execution import DEFAULT_POLICY
from carrel.tools.core.encoding import ENCODINGS
from carrel.tools.core.spec import MAX_CODE_SECONDS, RunLocation, ToolFacts

if TYPE_CHECKING:
    from carrel.config.settings import ContainerSettings, Settings
    from carrel.policy.execution import ExecutionPolicy
    from carrel.sandbox.engines import FindEngine
    from carrel.shell.runtime.runner import Runner

ANSWER_BYTES = 2**15
"""Default length of what a model reads of a result, in bytes; it pays for them at every turn."""
DATA_BYTES = 2**18
"""Default length of the output for programs, in bytes."""


class ToolOptions(TypedDict, total=False):
    """Overrides of the configuration."""

    roles: Mapping[str, Sequence[str]]
    """The tools of each role."""
    default_encoding: str
    """Encoding of text for calls that choose none."""
    max_file_size: int
    """Largest file of one filesystem operation, in bytes."""
    allowed_paths: Sequence[str]
    """Paths within the workspace that may be accessed; empty means all."""
    timeout_ms: int
    """Time limit of one operation on files, in milliseconds."""
    answer_bytes: int
    """Longest text of a result for a model, in bytes; a longer one is cut and says how to continue."""
    data_bytes: int
    """Longest output for programs, where a model reads another text; `answer_bytes` if only that is set."""
    pipelines: bool
    """Whether `bash` accepts `|`, `&&`, `||`, `;`, `<`, `>` and `>>`."""
    shell_timeout_seconds: float | None
    """Longest timeout of one command line, in seconds; `None` leaves only the limit of the tool."""
    shell_output_bytes: int | None
    """Most output of one command line, in bytes."""
    policy: ExecutionPolicy | None
    """Limits of guest code."""
    stateful: bool
    """Whether `python_executor` keeps its variables between calls; off by default."""
    engine: FindEngine | None
    """Finds the engine for guest code; by default that of this process, which keeps interpreters warm."""
    runner: Runner | None
    """Runs the command lines of `bash`; by default this process does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions:
    """The options in force: the overrides, and the configuration for all others."""

    roles: Mapping[str, Sequence[str]]
    default_encoding: str
    max_file_size: int
    allowed_paths: tuple[str, ...]
    timeout_ms: int
    answer_bytes: int
    data_bytes: int
    pipelines: bool
    shell_timeout_seconds: float | None
    shell_output_bytes: int | None
    policy: ExecutionPolicy | None
    stateful: bool
    engine: FindEngine | None
    runner: Runner | None
    containers: ContainerSettings | None
    """Containers for commands and code; `None` if not allowed. Only the configuration can set this."""

    @classmethod
    def of(cls, settings: Settings, options: ToolOptions) -> ResolvedOptions:
        """Combine *options* with the configuration.

        Raises:
            TypeError: An option does not exist, or is a string where a list is needed.
            ValueError: A number is out of range, or the encoding is not supported.
        """
        files, shell = settings.files, settings.shell
        configured: ToolOptions = {
            "roles": settings.roles,
            "default_encoding": files.default_encoding,
            "max_file_size": files.max_file_bytes,
            "allowed_paths": files.allowed_paths,
            "timeout_ms": files.timeout_ms,
            "answer_bytes": ANSWER_BYTES,
            "data_bytes": options.get("answer_bytes", DATA_BYTES),
            "pipelines": shell.pipelines,
            "shell_timeout_seconds": shell.timeout_seconds,
            "shell_output_bytes": shell.output_bytes,
            "policy": None,
            "stateful": False,
            "engine": None,
            "runner": None,
        }
        if unknown := options.keys() - configured.keys():
            raise TypeError(f"there is no option {min(unknown)!r}")
        values: dict[str, Any] = {**configured, **options}  # Any: the types are those of `ToolOptions`
        if isinstance(values["allowed_paths"], str):
            raise TypeError("allowed_paths must be a list of paths, not one text")
        if any(isinstance(tools, str) for tools in values["roles"].values()):
            raise TypeError("roles must give each role a list of tools, not one text")
        values["allowed_paths"] = tuple(values["allowed_paths"])
        values["containers"] = _tool_containers(settings)
        return cls(**values)

    def facts(self, run_location: RunLocation) -> ToolFacts:
        """Return what the descriptions of tools state."""
        policy = self.policy or DEFAULT_POLICY
        return ToolFacts(
            run_location,
            pipelines=self.pipelines,
            is_stateful=self.stateful,
            memory_bytes=policy.memory_bytes,
            code_seconds=min(policy.timeout_seconds, MAX_CODE_SECONDS),
            command_seconds=self.shell_timeout_seconds,
        )

    def __post_init__(self) -> None:
        for name in ("max_file_size", "timeout_ms", "answer_bytes", "data_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.default_encoding not in ENCODINGS:
            known = ", ".join(ENCODINGS)
            raise ValueError(f"default_encoding must be one of {known}, not {self.default_encoding!r}")
        if self.shell_timeout_seconds is not None and not self.shell_timeout_seconds > 0:
            raise ValueError(f"shell_timeout_seconds must be more than 0, not {self.shell_timeout_seconds!r}")
        if self.shell_output_bytes is not None and self.shell_output_bytes < 0:
            raise ValueError(f"shell_output_bytes must be at least 0, not {self.shell_output_bytes!r}")


def _tool_containers(settings: Settings) -> ContainerSettings | None:
    """Return the settings of containers if the operator lets tools use them and guest code run at all."""
    containers = settings.containers
    usable = containers.tools and containers.image is not None and settings.sandbox
    return containers if usable else None
