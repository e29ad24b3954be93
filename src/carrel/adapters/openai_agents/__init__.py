"""carrel for the OpenAI Agents SDK: sessions as the sandboxes of its agents.

    run = RunConfig(sandbox=SandboxRunConfig(client=CarrelSandboxClient(manager)))
    await Runner.run(agent, "Tidy up", run_config=run)

The extra `openai-agents` has what it needs.
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
