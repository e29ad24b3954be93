"""Adapter for smolagents: the code of a `CodeAgent` runs in the guest of a session.

    agent = CodeAgent(tools=[...], model=model, executor=CarrelExecutor())

Install it with the extra `smolagents`, and the guest with `python`.
"""

from __future__ import annotations

from carrel.adapters.extra import requires_extra

with requires_extra("smolagents"):
    from carrel.adapters.smolagents.executor import CarrelExecutor

__all__ = ["CarrelExecutor"]
