"""Adapter for Pydantic AI: a session as the workspace of a run, and its tools as a toolset.

    agent = Agent(model, toolsets=[CarrelToolset(workspace)])
    agent.run_sync("Tidy up", workspace=workspace)

Install it with the extra `pydantic-ai`.
"""

from __future__ import annotations

from carrel.adapters.extra import requires_extra

with requires_extra("pydantic-ai"):
    from carrel.adapters.pydantic_ai.toolset import CarrelToolset
    from carrel.adapters.pydantic_ai.workspace import CarrelSessions, CarrelWorkspace

__all__ = ["CarrelSessions", "CarrelToolset", "CarrelWorkspace"]
