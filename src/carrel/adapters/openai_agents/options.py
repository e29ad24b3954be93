"""`CarrelSandboxClientOptions`, what may be chosen for a new sandbox."""

from __future__ import annotations

from typing import Literal

from agents.sandbox.session import BaseSandboxClientOptions
from pydantic import Field


class CarrelSandboxClientOptions(BaseSandboxClientOptions):
    """What a new session may hold and how long it lasts; what is left out is as the manager has it."""

    type: Literal["carrel"] = "carrel"
    ttl_seconds: float | None = Field(default=None, gt=0)
    """How long the session may be idle before it is removed."""
    disk_bytes: int | None = Field(default=None, ge=0)
    """Most bytes that its files may have together."""
    entries: int | None = Field(default=None, ge=0)
    """Most files and directories."""
