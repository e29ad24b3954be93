"""carrel for smolagents: the code of a `CodeAgent` runs in the guest of a session.

    agent = CodeAgent(tools=[...], model=model, executor=CarrelExecutor())

The extra `smolagents` has what it needs, and `python` what runs the guest.
"""

from __future__ import annotations

from carrel.adapters.extra import requires_extra

with requires_extra("smolagents"):
    from carrel.adapters.smolagents.executor import CarrelExecutor

__all__ = ["CarrelExecutor"]
