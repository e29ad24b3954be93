"""Adapter for LangChain's deepagents: the files and the shell of a session as a sandbox backend.

    agent = create_deep_agent(model, backend=CarrelBackend(workspace))

Install it with the extra `deepagents`.
"""

from __future__ import annotations

from carrel.adapters.extra import requires_extra

with requires_extra("deepagents"):
    from carrel.adapters.deepagents.backend import CarrelBackend

__all__ = ["CarrelBackend"]
