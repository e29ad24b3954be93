"""`CarrelSandboxSessionState`, all that another process needs to go on with a sandbox."""

from __future__ import annotations

from typing import Literal

from agents.sandbox.session import SandboxSessionState

from carrel.adapters.openai_agents.options import CarrelSandboxClientOptions


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
