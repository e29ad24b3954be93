"""Every role by every tool and every command: what it does not have is not there, and changes nothing."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from carrel.config.table import DEFAULT_ROLES
from carrel.policy.roles import Role
from carrel.policy.rules import AccessMode
from carrel.shell.command.table import COMMANDS
from carrel.tools.core.formats import Format
from carrel.tools.core.spec import Profile, ToolEffect
from carrel.tools.core.table import TOOLS
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.requirements import requirement

ROLES: Mapping[str, tuple[str, ...]] = {
    **DEFAULT_ROLES,
    "reader": ("file_read",),
    "editor": ("file_read", "file_edit", "bash"),
    "runner": ("bash", "python_executor"),
}
"""All that are tried, besides one that is not configured."""
EVERY = [*ROLES, "nobody"]

_READS = "file_read file_search"
_READS_OF_MCP = "read_text_file read_file read_media_file read_multiple_files"
_LOOKS_OF_MCP = (
    "list_directory list_directory_with_sizes directory_tree search_files get_file_info"
    " list_allowed_directories"
)
_READER = {
    Profile.AGENT: "file_read file_list file_search bash",
    Profile.FILES: "read_file list_directory exists file_info",
    Profile.EDITOR: "str_replace_based_edit_tool bash",
    Profile.CODING: "read glob grep bash",
    Profile.MCP: f"{_READS_OF_MCP} {_LOOKS_OF_MCP}",
}
HAS: Mapping[str, Mapping[Profile, str]] = {
    "developer": {profile: " ".join(tools) for profile, tools in TOOLS.items()},
    "generalist": _READER,
    "critic": _READER,
    "reader": {
        Profile.AGENT: _READS,
        Profile.FILES: "read_file",
        Profile.EDITOR: "str_replace_based_edit_tool",
        Profile.CODING: "read grep",
        Profile.MCP: _READS_OF_MCP,
    },
    "editor": {
        Profile.AGENT: "file_read file_edit file_search bash",
        Profile.FILES: "read_file",
        Profile.EDITOR: "str_replace_based_edit_tool bash",
        Profile.CODING: "read grep bash",
        Profile.MCP: _READS_OF_MCP,
    },
    "runner": {
        Profile.AGENT: "bash python_executor",
        Profile.FILES: "",
        Profile.EDITOR: "bash",
        Profile.CODING: "bash",
        Profile.MCP: "",
    },
    "nobody": dict.fromkeys(Profile, ""),
}
"""The tools of each role."""

_EDIT = {"command": "create", "path": "new", "file_text": "x"}
CALLS: Mapping[Profile, Mapping[str, dict[str, Any]]] = {
    Profile.AGENT: {
        "file_read": {"path": "f"},
        "file_write": {"path": "new", "content": "x"},
        "file_list": {"path": "."},
        "file_edit": {"path": "f", "old_text": "one", "new_text": "two"},
        "file_search": {"query": "one"},
        "file_delete": {"path": "f"},
        "file_move": {"source": "f", "destination": "new"},
        "bash": {"command": "touch new"},
        "python_executor": {"code": "open('new', 'w').close()"},
    },
    Profile.FILES: {
        "read_file": {"path": "f"},
        "write_file": {"path": "new", "content": "x"},
        "list_directory": {"path": "."},
        "create_directory": {"path": "new"},
        "delete": {"path": "f"},
        "exists": {"path": "f"},
        "file_info": {"path": "f"},
    },
    Profile.EDITOR: {"str_replace_based_edit_tool": _EDIT, "bash": {"command": "touch new"}},
    Profile.CODING: {
        "read": {"file_path": "f"},
        "write": {"file_path": "new", "content": "x"},
        "edit": {"file_path": "f", "old_string": "one", "new_string": "two"},
        "glob": {"pattern": "*"},
        "grep": {"pattern": "one"},
        "bash": {"command": "touch new"},
    },
    Profile.MCP: {
        "read_text_file": {"path": "f"},
        "read_file": {"path": "f"},
        "read_media_file": {"path": "picture.gif"},
        "read_multiple_files": {"paths": ["f", "d/g"]},
        "write_file": {"path": "new", "content": "x"},
        "edit_file": {"path": "f", "edits": [{"oldText": "one", "newText": "two"}]},
        "create_directory": {"path": "new"},
        "list_directory": {"path": "."},
        "list_directory_with_sizes": {"path": "."},
        "directory_tree": {"path": "."},
        "move_file": {"source": "f", "destination": "new"},
        "search_files": {"path": ".", "pattern": "*"},
        "get_file_info": {"path": "f"},
        "list_allowed_directories": {},
    },
}
"""For each tool a call that changes something, if the tool can at all."""

LINES: Mapping[str, str] = {
    ":": ": > new",
    "[": "[ 1 = 1 ] > new",
    "basename": "basename d/g > new",
    "cat": "cat d/g > f",
    "cd": "cd d > new",
    "cp": "cp f new",
    "cut": "cut -c 1 f > new",
    "diff": "diff f d/g >> f",
    "dirname": "dirname d/g > new",
    "du": "du > new",
    "echo": "echo x >> f",
    "env": "env rm f",
    "exit": "exit > new",
    "export": "export A=1 > new",
    "false": "false > new",
    "find": "find . -name f -delete",
    "grep": "grep one f > new",
    "head": "head -n 1 f > f",
    "help": "help > new",
    "ls": "ls > new",
    "mkdir": "mkdir new",
    "mv": "mv f new",
    "nl": "nl f > new",
    "printf": "printf x > new",
    "pwd": "pwd > new",
    "python": "python -c \"open('new', 'w').close()\"",
    "python3": "python3 -c \"open('new', 'w').close()\"",
    "realpath": "realpath f > new",
    "rm": "rm f",
    "rmdir": "rmdir empty",
    "sed": "sed -i s/one/two/ f",
    "seq": "seq 3 > new",
    "set": "set -o pipefail > new",
    "sleep": "sleep 0 > new",
    "sort": "sort -r -o f f",
    "stat": "stat f > new",
    "tac": "tac f > new",
    "tail": "tail -n 1 f > new",
    "tee": "echo x | tee f",
    "test": "test 1 > new",
    "touch": "touch f",
    "tr": "echo a | tr a b > new",
    "tree": "tree > new",
    "true": "true > new",
    "uniq": "uniq f new",
    "unset": "unset A > new",
    "wc": "wc f > new",
    "which": "which ls > new",
    "workspace": "workspace > new",
    "xargs": "echo f | xargs rm",
}
"""For each command a line that writes, by the command itself if it can."""
MORE = (
    "cp -r d new",
    "cp f d",
    "mv d new",
    "mv f d/g",
    "rm -rf d",
    "rm -rf /workspace/d",
    "mkdir -p new/er",
    "touch new",
    "touch -d @0 f",
    "echo x > /workspace/new",
    "ls missing 2> new",
    "ls 2>> f > new",
    "missing > new",
    "echo x | tee -a f",
    "echo x | tee a | tee b",
    "find . -type f -print0 | xargs -0 rm",
    "sed -i 1d f d/g",
    "sort f -o new",
    "echo new | xargs touch",
    "echo f | xargs -n 1 env rm",
    "env -i env touch new",
    "A=1 touch new",
    "cd d && touch new",
    "false || rm f",
    "true; rm f",
    "cat f | sort | tee new",
    "printf 'f\\n' | xargs -I {} mv {} new",
)
"""Other ways to write."""


@pytest.fixture
def files(workspace: Workspace, directory: Path) -> Path:
    """Some files, and where the host has them."""
    workspace.write("f", b"one\nand\n")
    workspace.write("d/g", b"g\n")
    workspace.write("picture.gif", base64.b64decode("R0lGODlhAQABAAAAACH5BAEAAAAALAAAAAABAAEAAAIBAAA="))
    workspace.mkdir("empty")
    return directory


@pytest.fixture
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


@pytest.fixture
def boxes(workspace: Workspace) -> dict[str, Toolbox]:
    """The toolbox of each role."""
    return {role: Toolbox(workspace, role, roles=ROLES, pipelines=True) for role in EVERY}


def state(directory: Path) -> dict[str, tuple[object, ...]]:
    """Return everything below a directory: kind, modification time and content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [directory, *directory.rglob("*")]:
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = about.st_mode, about.st_mtime_ns, content
    return found


# Tools


def test_the_tables_are_complete() -> None:
    assert {profile: list(calls) for profile, calls in CALLS.items()} == {
        profile: list(tools) for profile, tools in TOOLS.items()
    }
    assert list(HAS) == EVERY
    assert all(list(row) == list(Profile) for row in HAS.values())
    assert list(LINES) == list(COMMANDS)


@pytest.mark.parametrize("profile", Profile)
@pytest.mark.parametrize("role", EVERY)
def test_a_role_is_offered_just_its_tools(workspace: Workspace, role: str, profile: Profile) -> None:
    box = Toolbox(workspace, role, roles=ROLES, profile=profile)
    expected = HAS[role][profile].split()
    assert list(box.names) == expected
    assert [tool.name for tool in box.tools()] == expected
    assert [schema["title"] for schema in box.schemas()] == expected
    for format in Format:
        assert len(box.schemas(format)) == len(expected)


def may_write(role: str, tool: str) -> bool:
    """Whether *role* changes something by *tool*."""
    return role == "developer" or (role, tool) == ("editor", "file_edit")


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(
    ("profile", "name"), [(profile, name) for profile, tools in TOOLS.items() for name in tools]
)
@pytest.mark.parametrize("role", EVERY)
def test_every_role_by_every_tool(
    workspace: Workspace, files: Path, role: str, profile: Profile, name: str
) -> None:
    box = Toolbox(workspace, role, roles=ROLES, profile=profile)
    arguments = CALLS[profile][name]
    before = state(files)
    result = box.call(name, arguments)
    awaited = asyncio.run(box.acall(name, arguments)) if state(files) == before else result
    reads = TOOLS[profile][name].effect is ToolEffect.READ
    if name not in HAS[role][profile].split():
        assert result == awaited == box.call(name, {"no": 1}) == box.call(name)
        unknown = box.call("no_such_tool", arguments)
        assert unknown.code == "tool.unknown"
        same = unknown.to_json().replace("'no_such_tool'", repr(name))
        assert result.to_json() == same
        assert state(files) == before
    elif reads or may_write(role, name):
        assert result.success, result.error
        assert (state(files) == before) == reads
        assert ("changes" in result.metadata) != reads
    else:
        for each in (result, awaited):
            assert (each.success, each.code) in [(False, "access.denied"), (False, "tool.status")]
            assert "changes" not in each.metadata
        assert state(files) == before


@requirement("AP-22")
@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize(
    ("profile", "name"),
    [(profile, name) for profile, tools in TOOLS.items() for name in tools],
)
def test_every_tool_that_writes_asks_for_write_access(
    workspace: Workspace, files: Path, profile: Profile, name: str
) -> None:
    before = state(files)
    read_only = workspace.narrowed(mode=AccessMode.READ_ONLY)
    result = Toolbox(read_only, profile=profile).call(name, CALLS[profile][name])
    expected = {ToolEffect.READ: None, ToolEffect.WRITE: "access.denied", ToolEffect.RUN: "tool.status"}
    assert result.code == expected[TOOLS[profile][name].effect]
    assert "changes" not in result.metadata
    assert state(files) == before


@pytest.mark.parametrize("role", EVERY)
def test_no_advice_names_a_tool_that_the_role_does_not_have(
    boxes: dict[str, Toolbox], files: Path, role: str
) -> None:
    box = boxes[role]
    missing = {"path": "missing", "source": "missing", "command": "cat missing", "code": "open('missing')"}
    others = set(TOOLS[Profile.AGENT]) - set(box.names)
    for name in box.names:
        known = CALLS[Profile.AGENT][name]
        for arguments in ({**known, **{key: missing.get(key, known[key]) for key in known}}, {"no": 1}, {}):
            if name == "python_executor":
                continue
            said = box.call(name, arguments).to_json()
            assert not others & set(re.findall(r"\w+", said)), said


def test_a_role_that_may_only_edit_edits_and_its_commands_do_not_write(
    boxes: dict[str, Toolbox], files: Path
) -> None:
    box = boxes["editor"]
    assert box.call("file_edit", {"path": "f", "old_text": "one", "new_text": "two"}).success
    assert (files / "f").read_bytes() == b"two\nand\n"
    before = state(files)
    for line in ("echo x > f", "sed -i s/two/three/ f", "rm f"):
        assert "read-only" in box.call("bash", {"command": line}).output["stderr"]
    assert box.call("file_write", {"path": "f", "content": ""}).code == "tool.unknown"
    assert state(files) == before


def test_roles_come_from_the_configuration(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[roles.auditor]\ntools = ["file_list"]\n[roles.critic]\ntools = []\n')
    monkeypatch.setenv("CARREL_CONFIG", str(file))
    assert Toolbox(workspace, "auditor").names == ("file_list",)
    assert Toolbox(workspace, "critic").names == ()
    assert Toolbox(workspace, "generalist").names == ("file_read", "file_list", "file_search", "bash")
    assert Toolbox(workspace, "auditor", roles={}).names == ()
    assert Toolbox(workspace, Role("own", ("bash",))).names == ("bash",)


def test_a_role_without_tools_says_so(boxes: dict[str, Toolbox]) -> None:
    result = boxes["nobody"].call("file_read", {"path": "f"})
    assert result.error == "There is no tool 'file_read'. The role 'nobody' has no tools"


# Commands


@pytest.mark.usefixtures("guest")
@pytest.mark.parametrize("line", [*LINES.values(), *MORE])
def test_every_line_that_writes_by_every_role(boxes: dict[str, Toolbox], files: Path, line: str) -> None:
    before = state(files)
    for role in ("generalist", "critic", "editor", "runner", "reader", "nobody"):
        result = boxes[role].call("bash", {"command": line, "timeout": 30})
        assert state(files) == before, role
        assert "changes" not in result.metadata
        if "bash" in ROLES.get(role, ()):
            assert result.output["stderr"], (role, result)
            assert ("not allowed here" in result.output["stderr"]) == (
                line.startswith("python") and role != "runner"
            )
        else:
            assert result.code == "tool.unknown"
    result = boxes["developer"].call("bash", {"command": line, "timeout": 30})
    assert state(files) != before, result
    assert result.metadata["changes"]


@pytest.mark.parametrize("role", ["generalist", "critic", "editor"])
def test_commands_that_read_are_there_for_roles_that_do_not_write(
    boxes: dict[str, Toolbox], files: Path, role: str
) -> None:
    before = state(files)
    for line in ("cat f", "ls -la", "sort f", "find . -name g", "sed s/one/two/ f", "uniq f", "cat f | sort"):
        result = boxes[role].call("bash", {"command": line})
        assert (result.success, result.output["stderr"]) == (True, ""), line
    assert state(files) == before


@pytest.mark.parametrize("role", ["generalist", "critic", "editor"])
@pytest.mark.parametrize(
    "line",
    [
        "python f",
        "env python -c 1",
        "echo f | xargs python",
        "find f -print0 | xargs -0 python",
        "echo 1 | python3",
    ],
)
def test_no_command_leads_to_guest_code_that_a_role_may_not_run(
    boxes: dict[str, Toolbox], files: Path, role: str, line: str
) -> None:
    result = boxes[role].call("bash", {"command": line})
    assert re.search(r"python3?: command not allowed here", result.output["stderr"])
    listed = boxes[role].call("bash", {"command": "help"}).output["stdout"]
    assert "python" not in listed
    assert boxes[role].call("bash", {"command": "which python"}).output["exit_code"] == 1


@pytest.mark.parametrize("profile", Profile)
def test_no_tool_speaks_of_another_that_the_role_may_lack(workspace: Workspace, profile: Profile) -> None:
    for name in TOOLS[profile]:
        with Toolbox(workspace, Role("own", (name,)), profile=profile) as toolbox:
            others = {each for each in TOOLS[profile] if "_" in each} - set(toolbox.names)
            words = set(re.findall(r"\w+", str(toolbox.schemas())))
            assert not words & others, name
