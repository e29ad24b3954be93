"""Roles: the tools that a caller may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from carrel.errors import RoleDeniedError

WRITING = "file_write"
"""The tool without which a role may change nothing, whatever other tools it has."""
CODE = "python_executor"
"""The tool without which a role may run no guest code, including through the shell."""
DEFAULT_ROLE = "generalist"
"""Role of callers without a role in a session without one."""

METRICS_ROLE = "metrics"
"""Role of a key that may read the metrics of all tenants. It has no tools unless some are configured."""


@dataclass(frozen=True, slots=True)
class Role:
    """A name and its tools; a role without tools may do nothing."""

    name: str
    tools: tuple[str, ...] = ()

    @classmethod
    def find(cls, name: str, roles: Mapping[str, Sequence[str]]) -> Role:
        """Return the role *name* of *roles*; an unknown role has no tools."""
        return cls(name, tuple(roles.get(name, ())))

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))

    def allows(self, tool: str, along_with: str | None = None) -> bool:
        """Whether the role has *tool*, or the tool *along_with* that includes it."""
        return tool in self.tools or along_with in self.tools

    def require(self, tool: str) -> None:
        """Require that the role has *tool*.

        Raises:
            RoleDeniedError: It does not.
        """
        if tool not in self.tools:
            raise RoleDeniedError(f"the role {self.name!r} may not do this: it has no {tool!r}")

    @property
    def may_write(self) -> bool:
        """Whether the role may change anything."""
        return WRITING in self.tools

    @property
    def may_run_code(self) -> bool:
        """Whether the role may run guest code."""
        return CODE in self.tools
