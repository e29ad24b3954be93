"""Options of a new sandbox, and the state with which another process resumes it."""

from __future__ import annotations

from typing import Literal

from agents.sandbox.session import BaseSandboxClientOptions, SandboxSessionState
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


class CarrelSandboxSessionState(SandboxSessionState):
    """The state of a sandbox; `session_id` is also the id of the session of carrel.

    Whoever hands it to a client gets that session, so it is to be kept like a key.
    """

    type: Literal["carrel"] = "carrel"
    options: CarrelSandboxClientOptions = CarrelSandboxClientOptions()
    """What the session was made with, should it have to be made again."""

    @property
    def name(self) -> str:
        """The id of the session of carrel."""
        return str(self.session_id)
