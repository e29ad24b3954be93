"""Roles: which tools somebody may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from carrel.errors import RoleDeniedError

WRITING = "file_write"
"""The tool without which a role may change nothing, whatever else it has."""
CODE = "python_executor"
"""The tool without which a role may run no guest code, not by the shell either."""
DEFAULT_ROLE = "generalist"
"""Whose tools are offered to somebody who has no role, in a session that has none."""

METRICS_ROLE = "metrics"
"""The role of a key that may read the metrics of all tenants. It has no tools unless some are configured."""


@dataclass(frozen=True, slots=True)
class Role:
    """A name and its tools; one that has none may do nothing."""

    name: str
    tools: tuple[str, ...] = ()

    @classmethod
    def find(cls, name: str, roles: Mapping[str, Sequence[str]]) -> Role:
        """The role of that name among *roles*; one that is not there has no tools."""
        return cls(name, tuple(roles.get(name, ())))

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", tuple(self.tools))

    def allows(self, tool: str, along_with: str | None = None) -> bool:
        """Whether the role has *tool*, by its name or because it comes along with one that it has."""
        return tool in self.tools or along_with in self.tools

    def require(self, tool: str) -> None:
        """Do nothing if the role has *tool*.

        Raises:
            RoleDeniedError: It has not.
        """
        if tool not in self.tools:
            raise RoleDeniedError(f"the role {self.name!r} may not do this: it has no {tool!r}")

    @property
    def may_write(self) -> bool:
        """Whether anything may be changed."""
        return WRITING in self.tools

    @property
    def may_run_code(self) -> bool:
        """Whether guest code may be run."""
        return CODE in self.tools
