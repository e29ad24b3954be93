"""`carrel tools` lists the tools of a role, for people and for clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.config.table import DEFAULT_ROLES
from carrel.fronts.cli.commands.tools import FORMATS
from carrel.fronts.cli.option_types import DEFAULT_ROLE, PROFILES
from carrel.policy.roles import Role
from carrel.tools.core.formats import Format, render_tool
from carrel.tools.core.options import ResolvedOptions
from carrel.tools.core.spec import Profile, RunLocation
from carrel.tools.core.table import tools_of
from tests.fronts.cli.conftest import Carrel

DEVELOPER = Role.find("developer", DEFAULT_ROLES)


def test_the_words_of_the_help_are_all_that_there_are() -> None:
    assert tuple(Profile) == PROFILES
    assert tuple(Format) == FORMATS
    assert DEFAULT_ROLE in DEFAULT_ROLES


def test_the_tools_of_a_role_are_listed_with_their_effect_and_what_they_are_for(carrel: Carrel) -> None:
    answer = carrel("tools", "--role", "critic")
    assert (answer.status, answer.err) == (0, "")
    assert answer.lines == [
        "file_read    read   Read a file of the workspace",
        "file_list    read   List a directory of the workspace",
        "file_search  read   Find lines in the files of the workspace",
        "bash         run    Run a command line in the workspace",
    ]


def test_without_a_role_the_generalist_is_meant(carrel: Carrel) -> None:
    assert carrel("tools").out == carrel("tools", "--role", "generalist").out != b""


def test_a_profile_has_names_of_its_own(carrel: Carrel) -> None:
    names = [line.split()[0] for line in carrel("tools", "--profile", "coding").lines]
    assert names == ["read", "glob", "grep", "bash"]


def test_a_role_that_is_not_configured_has_no_tools_and_that_is_said(carrel: Carrel) -> None:
    for words, out in (((), b""), (("--format", "mcp"), b"[]\n")):
        answer = carrel("tools", "--role", "nobody", *words)
        assert (answer.status, answer.out) == (0, out)
        assert answer.err == (
            "carrel: the role 'nobody' has no tools; configured roles: developer, generalist, critic\n"
        )


def test_a_configured_role_has_the_tools_that_are_given_to_it(carrel: Carrel, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[roles.reader]\ntools = ['file_read']\n")
    answer = carrel("tools", "--role", "reader", env={"CARREL_CONFIG": str(file)})
    assert [line.split()[0] for line in answer.lines] == ["file_read", "file_search"]


def test_what_a_role_names_and_nobody_has_is_said(carrel: Carrel, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[roles.reader]\ntools = ['file_read', 'file_raed', 'list_directory']\n")
    answer = carrel("tools", "--role", "reader", env={"CARREL_CONFIG": str(file)})
    assert [line.split()[0] for line in answer.lines] == ["file_read", "file_search"]
    assert answer.err == "carrel: the role 'reader' names unknown tools: 'file_raed'\n"


@pytest.mark.parametrize(("profile", "format"), list(zip(PROFILES, FORMATS, strict=True)))
def test_a_format_gives_the_list_that_a_client_takes(carrel: Carrel, profile: str, format: str) -> None:
    answer = carrel("tools", "--role", "developer", "--profile", profile, "--format", format)
    offered = tools_of(DEVELOPER, Profile(profile)).values()
    facts = ResolvedOptions.of(load({}), {}).facts(RunLocation.HERE)
    assert answer.json == [render_tool(tool.load(), Format(format), facts) for tool in offered] != []
    assert answer.out.count(b"\n") == 1


def test_json_is_a_document_with_the_schemas(carrel: Carrel) -> None:
    document = carrel("tools", "--json").json
    assert (document["role"], document["profile"]) == ("generalist", "agent")
    read = document["tools"][0]
    assert list(read) == ["name", "effect", "summary", "schema"]
    assert (read["name"], read["schema"]["required"]) == ("file_read", ["path"])


@pytest.mark.parametrize("words", [("--profile", "x"), ("--format", "x"), ("x",), ("--role",)])
def test_words_that_make_no_sense_are_refused(carrel: Carrel, words: tuple[str, ...]) -> None:
    answer = carrel("tools", *words)
    assert (answer.status, answer.out) == (2, b"")


def test_nothing_is_made(carrel: Carrel) -> None:
    carrel("tools", "--json")
    assert not carrel.sessions.exists()
