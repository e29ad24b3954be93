"""A tool: its table row (`Tool`) and, once imported, its code (`LoadedTool`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from carrel.policy.execution import DEFAULT_POLICY
from carrel.tools.core.schema import Parameters, Schema

if TYPE_CHECKING:
    from carrel.tools.core.context import ToolContext
    from carrel.values import ToolResult


MAX_CODE_SECONDS = 60
"""Longest run of code, in seconds, whatever the policy allows."""


class Profile(StrEnum):
    """A set of tools, named as certain models and clients expect them."""

    AGENT = "agent"
    """carrel's own: `file_read`, `file_write`, `bash` and so on."""
    FILES = "files"
    """Filesystem operations for workflows: `read_file`, `file_info` and so on, with `data` in the result."""
    EDITOR = "editor"
    """The text editor and the shell that Claude models are trained on."""
    CODING = "coding"
    """`read`, `write`, `edit`, `glob`, `grep` and `bash`, as coding models know them."""
    MCP = "mcp"
    """The tools of the MCP reference filesystem server."""


class ToolEffect(StrEnum):
    """The strongest effect that a tool can have."""

    READ = "read"
    WRITE = "write"
    RUN = "run"
    """Runs commands or code, which can do anything that the role may do."""


class Purpose(StrEnum):
    """What a tool is for, so that advice can name a suitable one."""

    READ = "read"
    LIST = "list"
    SEARCH = "search"
    WRITE = "write"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    MAKE = "make"
    LOOK = "look"
    RUN = "run"


class RunLocation(StrEnum):
    """Where commands and code run."""

    HERE = "here"
    """In the built-in shell and the Python guest."""
    CONTAINER = "container"
    """In the session's container, without network."""
    NETWORKED = "networked container"
    """In the session's container, in a network that the operator chose."""


_NETWORK = {
    RunLocation.CONTAINER: "without network",
    RunLocation.NETWORKED: "in a network that its operator chose",
}
_SINGLE_COMMANDS = (
    "Each call runs one command: no |, &&, ;, redirections, loops or $(...). Example: grep -rn TODO src"
)
_PIPELINES = (
    "Commands can be joined by |, &&, || and ; and redirected by <, > and >>; there are no loops and no"
    " $(...). Example: grep -rn TODO src | head -n 20"
)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool of one profile: what roles, help and listings need."""

    profile: Profile
    name: str
    summary: str
    effect: ToolEffect
    purpose: Purpose
    along_with: str
    """Agent tool that implies this one: a role that has it also has this tool."""
    destructive: bool = False
    """Whether it can overwrite or delete existing content."""
    idempotent: bool = False
    """Whether repeating a call with the same arguments changes nothing more."""
    quick: bool = False
    """Whether it takes only a few system calls, so that async callers need no thread for it."""
    also: tuple[Purpose, ...] = ()
    """Further purposes."""
    module: str = ""
    """Module under `carrel.tools.profiles` that defines it; by default that of its profile."""

    def load(self, run_location: RunLocation = RunLocation.HERE) -> LoadedTool:
        """Import the tool; what it says depends on where commands and code run."""
        return _load(self, run_location)


class ToolFacts(NamedTuple):
    """The settings in force that descriptions and schemas of tools state."""

    run_location: RunLocation = RunLocation.HERE
    pipelines: bool = False
    """Whether command lines may have operators."""
    is_stateful: bool = False
    """Whether code keeps its variables between calls."""
    memory_bytes: int = DEFAULT_POLICY.memory_bytes
    """Memory of code."""
    code_seconds: float = MAX_CODE_SECONDS
    """Longest timeout of code."""
    command_seconds: float | None = None
    """Longest timeout of a command line; `None` leaves only the limit of the tool."""

    @property
    def caps(self) -> dict[str, int]:
        """What `Param.capped_by` can name."""
        caps = {"code_seconds": int(self.code_seconds)}
        if self.command_seconds is not None:
            caps["command_seconds"] = int(self.command_seconds)
            caps["command_ms"] = int(1000 * self.command_seconds)
        return caps

    @property
    def words(self) -> dict[str, str]:
        """What the placeholders in notes stand for."""
        return {
            "{network}": _NETWORK.get(self.run_location, ""),
            "{language}": _PIPELINES if self.pipelines else _SINGLE_COMMANDS,
            "{state}": f"Variables {'persist' if self.is_stateful else 'do not persist'} between calls.",
            "{memory}": f"{self.memory_bytes // 10**6} MB",
        }


USUAL_FACTS = ToolFacts()
"""The facts without any configuration."""


class LoadedTool(NamedTuple):
    """A tool that is imported and can be called."""

    tool: Tool
    parameters: Parameters[Any]
    run: Callable[[ToolContext, Any], ToolResult]
    is_quick: Callable[[ToolContext, Any], bool] | None
    """Whether a call with these arguments takes only a few system calls."""
    is_stepwise: bool
    """Whether a listing checks its deadline often enough to be tried inline, even in a large directory."""
    notes: str
    """What its description says after the summary, with the placeholders of `ToolFacts.words`."""

    def description(self, facts: ToolFacts = USUAL_FACTS) -> str:
        """Return the description for the model that decides whether to call it."""
        notes = self.notes
        for placeholder, words in facts.words.items():
            notes = notes.replace(placeholder, words)
        return f"{self.tool.summary}. {notes}".strip()

    def schema(self, facts: ToolFacts = USUAL_FACTS) -> Schema:
        """Return the JSON Schema of the arguments, with the maxima in force."""
        return self.parameters.schema(facts.caps)


@cache
def _load(tool: Tool, run_location: RunLocation) -> LoadedTool:
    module = importlib.import_module(f"carrel.tools.profiles.{tool.module or tool.profile}")
    constant = tool.name.upper()
    notes: str = getattr(module, f"{constant}_NOTES", "")
    if run_location is not RunLocation.HERE:
        notes = getattr(module, f"{constant}_CONTAINER_NOTES", notes)
    return LoadedTool(
        tool,
        Parameters(getattr(module, f"{tool.name.title().replace('_', '')}Args")),
        getattr(module, f"run_{tool.name}"),
        getattr(module, f"is_quick_{tool.name}", None),
        getattr(module, f"{constant}_IS_STEPWISE", False),
        notes,
    )
