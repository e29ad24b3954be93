"""Every argument of every tool that is or holds a path, for any one path."""

from __future__ import annotations

import base64
import binascii
import difflib  # noqa: F401  # imported late by a tool that explains, perhaps as a user who may not read it
import json
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml  # noqa: F401  # the same, by one that reads

import carrel.sandbox.shell  # noqa: F401  # the same, by those that run commands
from carrel.shell.command.table import COMMANDS
from carrel.tools.core.spec import Profile, ToolEffect
from carrel.tools.core.table import TOOLS
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from carrel.workspace.workspace import Workspace
from tests.attack.operations import AWAY, MINE, MINE_DIRECTORY

PATHS = frozenset({"path", "file_path", "paths", "source", "destination"})
"""Arguments that are paths."""
PATTERNS = frozenset({"pattern", "include", "excludePatterns", "cursor", "command", "query"})
"""Arguments in which a path can stand."""
OTHERS = frozenset(
    {
        *("case_sensitive", "context_lines", "create_dirs", "dryRun", "encoding", "force", "head", "tail"),
        *("if_match", "include_hidden", "limit", "max_results", "max_size_mb", "mode", "offset", "overwrite"),
        *("recursive", "regex", "replace_all", "restart", "sortBy", "timeout", "timeout_ms", "view_range"),
        *("content", "edits", "file_text", "insert_line", "insert_text", "new_str", "new_string", "new_text"),
        *("old_str", "old_string", "old_text", "stdin"),
        "code",  # what code can reach is tried by its own operations
    }
)
"""Arguments that lead nowhere."""


class Call(NamedTuple):
    """A call of a tool; `{}` in its arguments stands for the path."""

    profile: Profile
    name: str
    arguments: dict[str, Any]  # Any: whatever JSON can say

    @property
    def is_changing(self) -> bool:
        """Whether it may change the workspace."""
        return TOOLS[self.profile][self.name].effect is not ToolEffect.READ

    @property
    def is_direct(self) -> bool:
        """Whether the path alone is what the call is about, so that it must fail where the gate refuses."""
        is_many = "paths" in self.arguments
        return not is_many and any(self.arguments.get(name) == "{}" for name in PATHS)

    def __str__(self) -> str:
        return f"{self.profile}: {self.name} {json.dumps(self.arguments)}"


def _calls(profile: Profile, **tools: list[dict[str, Any]]) -> list[Call]:
    return [Call(profile, name, arguments) for name, each in tools.items() for arguments in each]


_EDIT: dict[str, Any] = {"oldText": "i", "newText": "o"}
_VIEW: dict[str, Any] = {"command": "view", "path": "{}"}

CALLS = (
    *_calls(
        Profile.AGENT,
        file_read=[
            {"path": "{}"},
            {"path": "{}", "encoding": "base64"},
            {"path": "{}", "offset": 1, "limit": 5},
            {"path": MINE, "cursor": "{}"},
        ],
        file_write=[
            {"path": "{}", "content": "new"},
            {"path": "{}", "content": "new", "mode": "append"},
            {"path": "{}/new/newer", "content": "new", "create_dirs": True},
        ],
        file_list=[
            {"path": "{}", "include_hidden": True},
            {"path": "{}", "recursive": True, "pattern": "**/*"},
            {"path": ".", "pattern": "{}"},
            {"path": ".", "cursor": "{}"},
        ],
        file_edit=[{"path": "{}", "old_text": "i", "new_text": "o", "replace_all": True}],
        file_search=[
            {"query": "a", "path": "{}", "include_hidden": True},
            {"query": "a", "include": "{}"},
            {"query": "a", "cursor": "1@{}"},
            {"query": "{}"},
        ],
        file_delete=[
            {"path": "{}"},
            {"path": "{}", "recursive": True, "force": True},
            {"path": "{}", "pattern": "**/*"},
            {"path": ".", "pattern": "{}"},
        ],
        file_move=[
            {"source": "{}", "destination": AWAY},
            {"source": MINE, "destination": "{}"},
            {"source": MINE, "destination": "{}/new/newer", "create_dirs": True},
            {"source": MINE, "destination": "{}", "overwrite": True},
            {"source": MINE_DIRECTORY, "destination": "{}", "overwrite": True},
        ],
        bash=[
            {"command": "cat {} > " + AWAY},
            {"command": f"cp -r {MINE_DIRECTORY} " + "{}"},
            {"command": f"cat {MINE}", "cursor": "{}"},
        ],
        python_executor=[{"code": "1", "cursor": "{}"}],
    ),
    *_calls(
        Profile.FILES,
        read_file=[{"path": "{}"}, {"path": "{}", "encoding": "base64"}, {"path": MINE, "cursor": "{}"}],
        write_file=[
            {"path": "{}", "content": "new"},
            {"path": "{}", "content": "new", "force": False},
            {"path": "{}/new/newer", "content": "bmV3", "encoding": "base64"},
        ],
        list_directory=[{"path": "{}"}, {"path": "{}", "recursive": True}, {"path": ".", "cursor": "{}"}],
        create_directory=[
            {"path": "{}"},
            {"path": "{}", "recursive": False},
            {"path": "{}/new/newer"},
        ],
        delete=[{"path": "{}"}, {"path": "{}", "recursive": True}, {"path": "{}", "force": True}],
        exists=[{"path": "{}"}],
        file_info=[{"path": "{}"}],
    ),
    *_calls(
        Profile.EDITOR,
        str_replace_based_edit_tool=[
            _VIEW,
            {**_VIEW, "view_range": [1, -1]},
            {"command": "create", "path": "{}", "file_text": "new"},
            {"command": "create", "path": "{}/new/newer", "file_text": "new"},
            {"command": "str_replace", "path": "{}", "old_str": "i", "new_str": "o"},
            {"command": "insert", "path": "{}", "insert_line": 0, "insert_text": "new"},
        ],
        bash=[{"command": "ls -la {}"}, {"command": f"cat {MINE}", "cursor": "{}"}],
    ),
    *_calls(
        Profile.CODING,
        read=[{"file_path": "{}"}, {"file_path": "{}", "view_range": [1, 2]}],
        write=[{"file_path": "{}", "content": "new"}, {"file_path": "{}/new/newer", "content": "new"}],
        edit=[{"file_path": "{}", "old_string": "i", "new_string": "o"}],
        glob=[{"pattern": "{}"}, {"pattern": "**/*", "path": "{}"}, {"pattern": "{}/**"}],
        grep=[{"pattern": "a", "path": "{}"}, {"pattern": "{}"}],
        bash=[{"command": "cat < {}"}, {"command": f"cat {MINE}", "cursor": "{}"}],
    ),
    *_calls(
        Profile.MCP,
        read_text_file=[{"path": "{}"}, {"path": "{}", "head": 2}, {"path": "{}", "tail": 2}],
        read_file=[{"path": "{}"}],
        read_media_file=[{"path": "{}"}],
        read_multiple_files=[{"paths": [MINE, "{}"]}],
        write_file=[{"path": "{}", "content": "new"}, {"path": "{}/new/newer", "content": "new"}],
        edit_file=[{"path": "{}", "edits": [_EDIT]}, {"path": "{}", "edits": [_EDIT], "dryRun": True}],
        create_directory=[{"path": "{}"}, {"path": "{}/new/newer"}],
        list_directory=[{"path": "{}"}],
        list_directory_with_sizes=[{"path": "{}"}],
        directory_tree=[{"path": "{}"}, {"path": ".", "excludePatterns": ["{}"]}],
        move_file=[{"source": "{}", "destination": AWAY}, {"source": MINE, "destination": "{}"}],
        search_files=[
            {"path": "{}", "pattern": "**/*"},
            {"path": ".", "pattern": "{}"},
            {"path": ".", "pattern": "*", "excludePatterns": ["{}"]},
        ],
        get_file_info=[{"path": "{}"}],
    ),
)

# All are imported late, perhaps as a user who may not read them.
for _each in TOOLS.values():
    for _tool in _each.values():
        _tool.load()
for _command in COMMANDS.values():
    _command.load()


class Tools:
    """The tools of every profile, for one who may do everything, on one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._toolboxes = {
            profile: Toolbox(workspace, profile=profile, pipelines=True, shell_timeout_seconds=0.5)
            for profile in Profile
        }

    def run(self, call: Call, path: str) -> ToolResult:
        """Make the *call* for *path*."""
        return self._toolboxes[call.profile].call(call.name, filled(call, path))


def filled(call: Call, path: str) -> dict[str, Any]:  # Any: whatever JSON can say
    """The arguments of the *call* for *path*."""
    return {
        name: _filled(value, shlex.quote(path) if name == "command" else path)
        for name, value in call.arguments.items()
    }


def _filled(value: Any, path: str) -> Any:
    if isinstance(value, list):
        return [_filled(each, path) for each in value]
    return value.replace("{}", path) if isinstance(value, str) else value


def told(value: object) -> Iterator[str]:
    """Every text in a JSON document, and what it stands for if it is base64."""
    if isinstance(value, str):
        yield value
        try:
            yield base64.b64decode(value, validate=True).decode("utf-8", "replace")
        except (ValueError, binascii.Error):
            return
    elif isinstance(value, dict):
        for each in (*value, *value.values()):
            yield from told(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from told(each)
