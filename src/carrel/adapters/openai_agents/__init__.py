"""Adapter for the OpenAI Agents SDK: sessions as sandboxes of its agents.

    run = RunConfig(sandbox=SandboxRunConfig(client=CarrelSandboxClient(manager)))
    await Runner.run(agent, "Tidy up", run_config=run)

Install it with the extra `openai-agents`.
"""

from __future__ import annotations

from carrel.adapters.extra import requires_extra

with requires_extra("openai-agents"):
    from carrel.adapters.openai_agents.client import CarrelSandboxClient
    from carrel.adapters.openai_agents.session import CarrelSandboxSession
    from carrel.adapters.openai_agents.state import CarrelSandboxClientOptions, CarrelSandboxSessionState

__all__ = [
    "CarrelSandboxClient",
    "CarrelSandboxClientOptions",
    "CarrelSandboxSession",
    "CarrelSandboxSessionState",
]
