"""The table of tools, one row each: name, summary, effect and purpose; and the tools of a role."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from carrel.policy.roles import Role
from carrel.tools.core.spec import Profile, Purpose, Tool, ToolEffect

_READ, _WRITE, _RUN = ToolEffect.READ, ToolEffect.WRITE, ToolEffect.RUN

_reads = partial(Tool, effect=_READ, purpose=Purpose.READ, along_with="file_read", idempotent=True)
_lists = partial(Tool, effect=_READ, purpose=Purpose.LIST, along_with="file_list", idempotent=True)
_looks = partial(
    Tool, effect=_READ, purpose=Purpose.LOOK, along_with="file_list", idempotent=True, quick=True
)
_finds = partial(Tool, effect=_READ, purpose=Purpose.SEARCH, along_with="file_read", idempotent=True)
_writes = partial(
    Tool, effect=_WRITE, purpose=Purpose.WRITE, along_with="file_write", destructive=True, idempotent=True
)
_edits = partial(Tool, effect=_WRITE, purpose=Purpose.EDIT, along_with="file_write", destructive=True)
_makes = partial(
    Tool, effect=_WRITE, purpose=Purpose.MAKE, along_with="file_write", idempotent=True, quick=True
)
_deletes = partial(Tool, effect=_WRITE, purpose=Purpose.DELETE, along_with="file_write", destructive=True)
_moves = partial(Tool, effect=_WRITE, purpose=Purpose.MOVE, along_with="file_write", destructive=True)
_runs = partial(Tool, effect=_RUN, purpose=Purpose.RUN, along_with="bash", destructive=True)

_ROWS = (
    # carrel's own
    _reads(Profile.AGENT, "file_read", "Read a file of the workspace", module="agent.file_read"),
    _edits(
        Profile.AGENT,
        "file_write",
        "Write a file of the workspace",
        purpose=Purpose.WRITE,
        module="agent.file_write",
    ),
    _lists(Profile.AGENT, "file_list", "List a directory of the workspace", module="agent.file_list"),
    _edits(Profile.AGENT, "file_edit", "Replace text in a file of the workspace", module="agent.file_edit"),
    _finds(
        Profile.AGENT, "file_search", "Find lines in the files of the workspace", module="agent.file_search"
    ),
    _deletes(
        Profile.AGENT,
        "file_delete",
        "Delete files or directories of the workspace",
        module="agent.file_delete",
    ),
    _moves(
        Profile.AGENT,
        "file_move",
        "Move or rename a file or directory of the workspace",
        module="agent.file_move",
    ),
    _runs(Profile.AGENT, "bash", "Run a command line in the workspace", module="agent.bash"),
    _runs(
        Profile.AGENT,
        "python_executor",
        "Run Python code on the files of the workspace",
        along_with="python_executor",
        module="agent.python_executor",
    ),
    # Filesystem operations
    _reads(Profile.FILES, "read_file", "Read a file"),
    _writes(Profile.FILES, "write_file", "Write a file"),
    _lists(Profile.FILES, "list_directory", "List a directory"),
    _makes(Profile.FILES, "create_directory", "Create a directory"),
    _deletes(Profile.FILES, "delete", "Delete a file or directory"),
    _looks(Profile.FILES, "exists", "Check whether a file or directory exists"),
    _looks(Profile.FILES, "file_info", "Show the metadata of a file or directory"),
    # The text editor
    _edits(
        Profile.EDITOR,
        "str_replace_based_edit_tool",
        "View, create and edit files of the workspace",
        along_with="file_read",
        also=(Purpose.READ, Purpose.LIST),
    ),
    _runs(Profile.EDITOR, "bash", "Run a command line in the workspace"),
    # Tools that coding models know
    _reads(Profile.CODING, "read", "Read a file of the workspace"),
    _writes(Profile.CODING, "write", "Write a file of the workspace"),
    _edits(Profile.CODING, "edit", "Replace text in a file of the workspace"),
    _lists(Profile.CODING, "glob", "Find files of the workspace by a pattern"),
    _finds(Profile.CODING, "grep", "Find lines in the files of the workspace by a regular expression"),
    _runs(Profile.CODING, "bash", "Run a command line in the workspace"),
    # The reference filesystem server of MCP
    _reads(Profile.MCP, "read_text_file", "Read a file as text", module="mcp.reading"),
    _reads(Profile.MCP, "read_file", "Read a file as text, under an older name", module="mcp.reading"),
    _reads(Profile.MCP, "read_media_file", "Read an image or audio file", module="mcp.reading"),
    _reads(Profile.MCP, "read_multiple_files", "Read several files as text", module="mcp.reading"),
    _writes(Profile.MCP, "write_file", "Write a file", module="mcp.writing"),
    _edits(Profile.MCP, "edit_file", "Replace texts in a file", module="mcp.writing"),
    _makes(Profile.MCP, "create_directory", "Create a directory", module="mcp.writing"),
    _lists(Profile.MCP, "list_directory", "List a directory", module="mcp.listing"),
    _lists(
        Profile.MCP,
        "list_directory_with_sizes",
        "List a directory with the sizes of its files",
        module="mcp.listing",
    ),
    _lists(
        Profile.MCP,
        "directory_tree",
        "Show a directory and everything below it as a tree",
        module="mcp.directory_tree",
    ),
    _moves(Profile.MCP, "move_file", "Move or rename a file or directory", module="mcp.writing"),
    _lists(
        Profile.MCP,
        "search_files",
        "Find files and directories by a pattern",
        purpose=Purpose.SEARCH,
        module="mcp.listing",
    ),
    _looks(Profile.MCP, "get_file_info", "Show the metadata of a file or directory", module="mcp.listing"),
    _looks(
        Profile.MCP,
        "list_allowed_directories",
        "List the directories that may be accessed",
        module="mcp.listing",
    ),
)

TOOLS: Mapping[Profile, Mapping[str, Tool]] = {
    profile: {tool.name: tool for tool in _ROWS if tool.profile is profile} for profile in Profile
}
"""Tools by profile and name, in listing order."""


def tools_of(role: Role, profile: Profile) -> Mapping[str, Tool]:
    """Return the tools of *profile* that *role* has; no other tool is listed or can be called."""
    return {name: tool for name, tool in TOOLS[profile].items() if role.allows(name, tool.along_with)}


def unknown_tools(role: Role) -> tuple[str, ...]:
    """Return the tool names of *role* that exist in no profile: mistakes, or tools of another program."""
    return tuple(name for name in role.tools if not any(name in tools for tools in TOOLS.values()))
