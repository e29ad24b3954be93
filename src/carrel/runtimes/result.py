"""`SandboxResult`: the result of one run of guest code.

Code that fails also produces a result; an exception means that the code could not be run at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType


class TrapReason(StrEnum):
    """Why a run was ended before its code finished."""

    TIMEOUT = "timeout"
    """It exceeded its timeout."""
    CANCELLED = "cancelled"
    """The caller cancelled it."""
    MEMORY = "memory_limit"
    """It exceeded its memory limit."""
    FUEL = "out_of_fuel"
    """It used up its instruction budget."""
    FILE_OPERATIONS = "file_operations"
    """It used up its budget of file operations."""
    STACK = "stack_overflow"
    """Its call stack exceeded that of the engine."""
    QUOTA = "quota_exceeded"
    """It exceeded the quota of its workspace, which was detected only while or after it ran."""
    LOST_WRITE = "lost_write"
    """A write was rejected when the code could no longer notice."""
    ENGINE = "engine_crash"
    """The engine itself failed."""
    ABORTED = "aborted"
    """The guest aborted."""


LIMIT = 4
"""Exit status of a run that exceeded a limit other than its timeout."""
_STATUS: dict[TrapReason | None, int] = {
    TrapReason.TIMEOUT: 124,
    TrapReason.CANCELLED: 130,
    TrapReason.ENGINE: 5,
    TrapReason.ABORTED: 134,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """The result of one run of guest code.

    Raises:
        ValueError: The `trap_reason` in `metadata` is not a `TrapReason`.
    """

    success: bool
    """Whether the code finished with exit status 0."""
    stdout: str
    stderr: str
    exit_code: int | None
    """Exit status of the code; `None` if the run was ended early."""
    fuel_consumed: int | None
    """Instructions executed, as the engine counts them; `None` if they were not counted."""
    memory_used_bytes: int | None
    """Peak memory of the guest; `None` if unknown."""
    duration_ms: float
    files_created: list[str]
    """Paths relative to the workspace, with forward slashes; so are the other two lists."""
    files_modified: list[str]
    files_deleted: list[str]
    workspace_path: str
    """The workspace on the host, for the embedding program; never shown to a guest or through a front."""
    metadata: Mapping[str, object]
    """Further details, as JSON values."""

    def __post_init__(self) -> None:
        for name in ("files_created", "files_modified", "files_deleted"):
            object.__setattr__(self, name, list(getattr(self, name)))
        object.__setattr__(self, "metadata", dict(self.metadata))
        _ = self.trap_reason

    @property
    def trap_reason(self) -> TrapReason | None:
        """Why the run was ended early; `None` if its code finished."""
        reason = self.metadata.get("trap_reason")
        return None if reason is None else TrapReason(str(reason))

    @property
    def exit_status(self) -> int:
        """The exit status for a command line: that of the code, or 124 after a timeout."""
        reason = self.trap_reason
        if reason is None and self.exit_code is not None:
            return self.exit_code
        return _STATUS.get(reason, LIMIT)

    @property
    def timed_out(self) -> bool:
        """Whether the run exceeded its timeout."""
        return self.trap_reason is TrapReason.TIMEOUT

    def to_json(self) -> str:
        """Render all fields as one JSON object, on one line of ASCII."""
        return json.dumps({name: getattr(self, name) for name in _KINDS}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SandboxResult:
        """Parse a result from the output of `to_json`.

        Raises:
            ValueError: *text* is not JSON, or a field is missing, unknown or of the wrong type.
        """
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("a result must be a JSON object")
        for name in {**_KINDS, **document}:
            _require_field(document, name)
        return cls(**document)


_KINDS: dict[str, tuple[type, ...]] = {
    "success": (bool,),
    "stdout": (str,),
    "stderr": (str,),
    "exit_code": (int, NoneType),
    "fuel_consumed": (int, NoneType),
    "memory_used_bytes": (int, NoneType),
    "duration_ms": (float, int),
    "files_created": (list,),
    "files_modified": (list,),
    "files_deleted": (list,),
    "workspace_path": (str,),
    "metadata": (dict,),
}
"""The types of each field in JSON."""


def _require_field(document: dict[str, object], name: str) -> None:
    if name not in _KINDS:
        raise ValueError(f"{name!r} is not a field of a result")
    if name not in document:
        raise ValueError(f"{name!r} is missing in a result")
    value = document[name]
    # Not isinstance: a bool is not a number in JSON.
    if type(value) not in _KINDS[name] or (
        isinstance(value, list) and not all(isinstance(each, str) for each in value)
    ):
        raise ValueError(f"{name!r} of a result cannot be of that type")
