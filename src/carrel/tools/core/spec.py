"""What is known about a tool before it is loaded (`Tool`), and its code once it is (`LoadedTool`)."""

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
    from carrel.tools.core.result import ToolResult


class Profile(StrEnum):
    """A set of tools under names that some models and clients know."""

    AGENT = "agent"
    """Our own: `file_read`, `file_write`, `bash` and so on."""
    FILES = "files"
    """Filesystem operations for workflows: `read_file`, `file_info` and so on, with `data` in the answer."""
    EDITOR = "editor"
    """The text editor and the shell that Claude models are trained on."""
    CODING = "coding"
    """`read`, `write`, `edit`, `glob`, `grep` and `bash`, as coding models know them."""
    MCP = "mcp"
    """The names of the reference filesystem server of MCP."""


class ToolEffect(StrEnum):
    """The most that a tool does."""

    READ = "read"
    WRITE = "write"
    RUN = "run"
    """It runs commands or code, which may do anything that the role may."""


class Purpose(StrEnum):
    """What a tool is good for, so that advice can name the one that helps."""

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
    """In the shell of this process and in the guest."""
    CONTAINER = "container"
    """In the container of the session, which has no network."""
    NETWORKED = "networked container"
    """In one that the operator put into a network."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of one profile: all that roles, help and lists need."""

    profile: Profile
    name: str
    summary: str
    effect: ToolEffect
    purpose: Purpose
    along_with: str
    """A role that has this tool of the default table has also the one described here."""
    destructive: bool = False
    """Whether it may take away what was there."""
    idempotent: bool = False
    """Whether a second call with the same arguments changes nothing more."""
    quick: bool = False
    """Whether it takes no more than a few system calls, so that async callers need no thread for it."""
    also: tuple[Purpose, ...] = ()
    """What else it is good for."""
    module: str = ""
    """Module beneath `carrel.tools.profiles` that defines it; by default that of its profile."""

    def load(self, where: RunLocation = RunLocation.HERE) -> LoadedTool:
        """The tool itself, imported now, described as it is *where* commands and code run."""
        return _loaded(self, where)


class LoadedTool(NamedTuple):
    """A tool that can be called."""

    tool: Tool
    parameters: Parameters[Any]
    run: Callable[[ToolContext, Any], ToolResult]
    is_quick: Callable[[ToolContext, Any], bool] | None
    """Says about some arguments whether the call takes no more than a few system calls."""
    is_stepwise: bool
    """Whether a call that only looks asks for its time so often that it can be tried, whatever is there."""
    description: str
    """For the model that decides whether to call it."""


_NETWORK = {
    RunLocation.CONTAINER: "without network",
    RunLocation.NETWORKED: "in a network that its operator chose",
}


@cache
def _loaded(tool: Tool, where: RunLocation) -> LoadedTool:
    module = importlib.import_module(f"carrel.tools.profiles.{tool.module or tool.profile}")
    constant = tool.name.upper()
    notes: str = getattr(module, f"{constant}_NOTES", "")
    if where is not RunLocation.HERE:
        notes = getattr(module, f"{constant}_CONTAINER_NOTES", notes).replace("{network}", _NETWORK[where])
    return LoadedTool(
        tool,
        Parameters(getattr(module, f"{tool.name.title().replace('_', '')}Args")),
        getattr(module, f"run_{tool.name}"),
        getattr(module, f"is_quick_{tool.name}", None),
        getattr(module, f"{constant}_IS_STEPWISE", False),
        f"{tool.summary}. {notes}".strip(),
    )
