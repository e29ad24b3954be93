"""The names that models and clients know, spelled out: changing one breaks them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from carrel.tools.core.spec import Profile
from carrel.tools.core.table import TOOLS

EDITOR = {
    "str_replace_based_edit_tool": (
        "command path view_range file_text old_str new_str insert_line insert_text",
        "command path",
    ),
}
CODING = {
    "read": ("file_path view_range", "file_path"),
    "write": ("file_path content", "file_path content"),
    "edit": ("file_path old_string new_string replace_all", "file_path old_string new_string"),
    "glob": ("pattern path", "pattern"),
    "grep": ("pattern path", "pattern"),
}
MCP = {
    # The reference server has no `offset`; without it, the middle of a long file could not be read.
    "read_file": ("path head tail offset", "path"),
    "read_text_file": ("path head tail offset", "path"),
    "read_media_file": ("path", "path"),
    "read_multiple_files": ("paths", "paths"),
    "write_file": ("path content", "path content"),
    "edit_file": ("path edits dryRun", "path edits"),
    "create_directory": ("path", "path"),
    "list_directory": ("path", "path"),
    "list_directory_with_sizes": ("path sortBy", "path"),
    "directory_tree": ("path excludePatterns", "path"),
    "move_file": ("source destination", "source destination"),
    "search_files": ("path pattern excludePatterns", "path pattern"),
    "get_file_info": ("path", "path"),
    "list_allowed_directories": ("", ""),
}
CONTRACTS: Mapping[Profile, Mapping[str, tuple[str, str]]] = {
    Profile.EDITOR: EDITOR,
    Profile.CODING: CODING,
    Profile.MCP: MCP,
}
"""The arguments of each tool, and those that must be given."""
ROWS = [
    pytest.param(profile, name, *arguments, id=f"{profile}-{name}")
    for profile, tools in CONTRACTS.items()
    for name, arguments in tools.items()
]


@pytest.mark.parametrize("profile", CONTRACTS)
def test_a_profile_has_the_tools_of_its_contract(profile: Profile) -> None:
    assert set(TOOLS[profile]) - {"bash"} == set(CONTRACTS[profile])


@pytest.mark.parametrize(("profile", "name", "arguments", "required"), ROWS)
def test_a_tool_takes_the_arguments_of_its_contract(
    profile: Profile, name: str, arguments: str, required: str
) -> None:
    schema = TOOLS[profile][name].load().parameters.schema()
    assert set(schema["properties"]) == set(arguments.split())
    assert set(schema["required"]) == set(required.split())


def test_an_edit_of_mcp_is_an_old_and_a_new_text() -> None:
    schema = TOOLS[Profile.MCP]["edit_file"].load().parameters.schema()
    edit = schema["properties"]["edits"]["items"]
    assert set(edit["properties"]) == set(edit["required"]) == {"oldText", "newText"}


def test_the_commands_and_orders_are_those_of_the_contracts() -> None:
    editor = TOOLS[Profile.EDITOR]["str_replace_based_edit_tool"].load().parameters.schema()
    assert editor["properties"]["command"]["enum"] == ["view", "create", "str_replace", "insert"]
    sizes = TOOLS[Profile.MCP]["list_directory_with_sizes"].load().parameters.schema()
    assert sizes["properties"]["sortBy"] == {
        "type": "string",
        "enum": ["name", "size"],
        "description": "Sort by name, or by size, largest first",
        "default": "name",
    }
