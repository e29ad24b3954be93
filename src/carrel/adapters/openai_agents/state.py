"""Options of a new sandbox, and the state with which another process resumes it."""

from __future__ import annotations

from typing import Literal

from agents.sandbox.session import BaseSandboxClientOptions, SandboxSessionState
from pydantic import Field


class CarrelSandboxClientOptions(BaseSandboxClientOptions):
    """Limits and TTL of a new session; defaults are those of the manager."""

    type: Literal["carrel"] = "carrel"
    ttl_seconds: float | None = Field(default=None, gt=0)
    """Idle time after which the session expires."""
    disk_bytes: int | None = Field(default=None, ge=0)
    """Maximum total size of the files."""
    entries: int | None = Field(default=None, ge=0)
    """Maximum number of files and directories."""


class CarrelSandboxSessionState(SandboxSessionState):
    """The state of a sandbox; `session_id` is also the id of the carrel session.

    A client can open the session with this state, so treat it as a secret.
    """

    type: Literal["carrel"] = "carrel"
    options: CarrelSandboxClientOptions = CarrelSandboxClientOptions()
    """Options of the session, in case it must be created again."""

    @property
    def name(self) -> str:
        """The id of the carrel session."""
        return str(self.session_id)
