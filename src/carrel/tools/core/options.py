"""Options of a toolbox: what a caller may set, and the values in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from carrel.tools.core.encoding import ENCODINGS

if TYPE_CHECKING:
    from carrel.config.settings import ContainerSettings, Settings
    from carrel.policy.execution import ExecutionPolicy
    from carrel.sandbox.engines import FindEngine
    from carrel.shell.runtime.runner import Runner

ANSWER_BYTES = 2**18
"""So long an answer may be before it is cut, by default."""


class ToolOptions(TypedDict, total=False):
    """What may be different from the configuration."""

    roles: Mapping[str, Sequence[str]]
    """The tools of each role."""
    default_encoding: str
    """How text is read and written where nothing else is asked for."""
    max_file_size: int
    """Largest file of one filesystem operation, in bytes."""
    allowed_paths: Sequence[str]
    """The paths within the workspace that may be used; all, if there are none."""
    timeout_ms: int
    """Longest time of one operation on files."""
    answer_bytes: int
    """Longer answers are cut, and say how to go on."""
    pipelines: bool
    """Whether `bash` reads `|`, `&&`, `||`, `;`, `<`, `>` and `>>`."""
    shell_timeout_seconds: float | None
    """Most that a caller may ask for one command line; `None` means no ceiling but that of the tool."""
    shell_output_bytes: int | None
    """Most that one command line prints."""
    policy: ExecutionPolicy | None
    """What guest code may take."""
    stateful: bool
    """Whether variables of `python_executor` last from call to call; they do not by default."""
    engine: FindEngine | None
    """Gives what runs guest code; by default the engine of this process, which keeps interpreters ready."""
    runner: Runner | None
    """What runs the command lines of `bash`; by default this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedOptions:
    """The options in force."""

    roles: Mapping[str, Sequence[str]]
    default_encoding: str
    max_file_size: int
    allowed_paths: tuple[str, ...]
    timeout_ms: int
    answer_bytes: int
    pipelines: bool
    shell_timeout_seconds: float | None
    shell_output_bytes: int | None
    policy: ExecutionPolicy | None
    stateful: bool
    engine: FindEngine | None
    runner: Runner | None
    containers: ContainerSettings | None
    """What commands and code run in; `None`: not in containers. Only the configuration says so."""

    @classmethod
    def of(cls, settings: Settings, options: ToolOptions) -> ResolvedOptions:
        """The *options* that were given, and the configured ones where none was.

        Raises:
            TypeError: There is no such option, or one text where a list is needed.
            ValueError: A number makes no sense, or the encoding is not offered.
        """
        files, shell = settings.files, settings.shell
        configured: ToolOptions = {
            "roles": settings.roles,
            "default_encoding": files.default_encoding,
            "max_file_size": files.max_file_bytes,
            "allowed_paths": files.allowed_paths,
            "timeout_ms": files.timeout_ms,
            "answer_bytes": ANSWER_BYTES,
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
        values["containers"] = _containers(settings)
        return cls(**values)

    def __post_init__(self) -> None:
        for name in ("max_file_size", "timeout_ms", "answer_bytes"):
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


def _containers(settings: Settings) -> ContainerSettings | None:
    """Those that tools work in, if the operator wants that and lets guest code run at all."""
    found = settings.containers
    return found if found.tools and found.image is not None and settings.sandbox else None
