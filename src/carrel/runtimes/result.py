"""`SandboxResult`: what one run of guest code did.

Code that fails is a result as well; an error is only for what could not be run at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType


class TrapReason(StrEnum):
    """Why a run was ended before its code ended it."""

    TIMEOUT = "timeout"
    """It took longer than it may."""
    CANCELLED = "cancelled"
    """The caller did not want it any more."""
    MEMORY = "memory_limit"
    """It asked for more memory than it may have."""
    FUEL = "out_of_fuel"
    """It used up its budget of instructions."""
    FILE_OPERATIONS = "file_operations"
    """It used up its budget of operations on files."""
    STACK = "stack_overflow"
    """It called deeper than the engine can."""
    QUOTA = "quota_exceeded"
    """It wrote more than its workspace may hold, where that is only seen afterwards."""
    LOST_WRITE = "lost_write"
    """Something that it wrote was refused, and it ended without noticing."""
    ENGINE = "engine_crash"
    """The engine itself failed."""
    ABORTED = "aborted"
    """The guest gave itself up."""


LIMIT = 4
"""The exit status of a run that met a limit other than time."""
_STATUS: dict[TrapReason | None, int] = {
    TrapReason.TIMEOUT: 124,
    TrapReason.CANCELLED: 130,
    TrapReason.ENGINE: 5,
    TrapReason.ABORTED: 134,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """What one run of guest code did.

    Raises:
        ValueError: The reason in `metadata` is no `TrapReason`.
    """

    success: bool
    """Whether the code ran to its end and exited with 0."""
    stdout: str
    stderr: str
    exit_code: int | None
    """`None` if the run was ended before."""
    fuel_consumed: int | None
    """Instructions as the engine counts them; `None` if they were not counted."""
    memory_used_bytes: int | None
    """The most that the guest had at any time; `None` if that is not known."""
    duration_ms: float
    files_created: list[str]
    """Relative to the workspace, with forward slashes, like those of the other two."""
    files_modified: list[str]
    files_deleted: list[str]
    workspace_path: str
    """The workspace on the host, for the program that embeds us; no guest and no front gets to see it."""
    metadata: Mapping[str, object]
    """Whatever else is known, as JSON has it."""

    def __post_init__(self) -> None:
        for name in ("files_created", "files_modified", "files_deleted"):
            object.__setattr__(self, name, list(getattr(self, name)))
        object.__setattr__(self, "metadata", dict(self.metadata))
        _ = self.trap_reason

    @property
    def trap_reason(self) -> TrapReason | None:
        """Why the run was ended, or `None` if its code ended it."""
        reason = self.metadata.get("trap_reason")
        return None if reason is None else TrapReason(str(reason))

    @property
    def exit_status(self) -> int:
        """What a program exits with that ended like this: the code's own status, 124 if it took too long."""
        reason = self.trap_reason
        if reason is None and self.exit_code is not None:
            return self.exit_code
        return _STATUS.get(reason, LIMIT)

    @property
    def timed_out(self) -> bool:
        """Whether it took longer than it may."""
        return self.trap_reason is TrapReason.TIMEOUT

    def to_json(self) -> str:
        """All fields as one JSON object, on one line of ASCII."""
        return json.dumps({name: getattr(self, name) for name in _KINDS}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SandboxResult:
        """The result that `to_json` made *text* of.

        Raises:
            ValueError: It is not JSON, or a field is missing, unknown or of another type.
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
"""What each field is in JSON."""


def _require_field(document: dict[str, object], name: str) -> None:
    if name not in _KINDS:
        raise ValueError(f"{name!r} is not a field of a result")
    if name not in document:
        raise ValueError(f"{name!r} is missing in a result")
    value = document[name]
    # Not isinstance: true and false are no numbers.
    if type(value) not in _KINDS[name] or (
        isinstance(value, list) and not all(isinstance(each, str) for each in value)
    ):
        raise ValueError(f"{name!r} of a result cannot be of that type")
