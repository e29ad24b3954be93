"""A tool: its table row (`Tool`) and, once imported, its code (`LoadedTool`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from carrel.tools.core.schema import Parameters

if TYPE_CHECKING:
    from carrel.tools.core.context import ToolContext
    from carrel.values import ToolResult


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
        """Import the tool; its description depends on where commands and code run."""
        return _load(self, run_location)


class LoadedTool(NamedTuple):
    """A tool that is imported and can be called."""

    tool: Tool
    parameters: Parameters[Any]
    run: Callable[[ToolContext, Any], ToolResult]
    is_quick: Callable[[ToolContext, Any], bool] | None
    """Whether a call with these arguments takes only a few system calls."""
    is_stepwise: bool
    """Whether a listing checks its deadline often enough to be tried inline, even in a large directory."""
    description: str
    """Description for the model that decides whether to call it."""


_NETWORK = {
    RunLocation.CONTAINER: "without network",
    RunLocation.NETWORKED: "in a network that its operator chose",
}


@cache
def _load(tool: Tool, run_location: RunLocation) -> LoadedTool:
    module = importlib.import_module(f"carrel.tools.profiles.{tool.module or tool.profile}")
    constant = tool.name.upper()
    notes: str = getattr(module, f"{constant}_NOTES", "")
    if run_location is not RunLocation.HERE:
        notes = getattr(module, f"{constant}_CONTAINER_NOTES", notes)
        notes = notes.replace("{network}", _NETWORK[run_location])
    return LoadedTool(
        tool,
        Parameters(getattr(module, f"{tool.name.title().replace('_', '')}Args")),
        getattr(module, f"run_{tool.name}"),
        getattr(module, f"is_quick_{tool.name}", None),
        getattr(module, f"{constant}_IS_STEPWISE", False),
        f"{tool.summary}. {notes}".strip(),
    )
