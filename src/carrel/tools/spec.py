"""What is known about a tool before it is loaded, and the tool once it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from carrel.tools.parameters import Parameters

if TYPE_CHECKING:
    from carrel.tools.context import Context
    from carrel.tools.result import ToolResult


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


class Effect(StrEnum):
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


class Where(StrEnum):
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
    effect: Effect
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

    def load(self, where: Where = Where.HERE) -> Loaded:
        """The tool itself, imported now, described as it is *where* commands and code run."""
        return _loaded(self, where)


class Loaded(NamedTuple):
    """A tool that can be called."""

    tool: Tool
    parameters: Parameters[Any]
    run: Callable[[Context, Any], ToolResult]
    is_quick: Callable[[Context, Any], bool] | None
    """Says about some arguments whether the call takes no more than a few system calls."""
    is_stepwise: bool
    """Whether a call that only looks asks for its time so often that it can be tried, whatever is there."""
    description: str
    """For the model that decides whether to call it."""


_NETWORK = {Where.CONTAINER: "without network", Where.NETWORKED: "in a network that its operator chose"}


@cache
def _loaded(tool: Tool, where: Where) -> Loaded:
    module = importlib.import_module(f"carrel.tools.{tool.profile}.{tool.name}")
    notes: str = getattr(module, "NOTES", "")
    if where is not Where.HERE:
        notes = getattr(module, "CONTAINER_NOTES", notes).replace("{network}", _NETWORK[where])
    return Loaded(
        tool,
        Parameters(module.Args),
        module.run,
        getattr(module, "is_quick", None),
        getattr(module, "IS_STEPWISE", False),
        f"{tool.summary}. {notes}".strip(),
    )
