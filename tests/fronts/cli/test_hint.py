"""A word for people about what may come next, which no program sees."""

from __future__ import annotations

import os

import pytest

from tests.fronts.cli.conftest import Carrel


def shown(carrel: Carrel, *words: str) -> str:
    """What a terminal without colours is told."""
    shown = carrel.shown(*words, environ={**os.environ, "NO_COLOR": "1"})
    return shown.decode().replace("\r\n", "\n")


NONE_YET = "carrel: no sessions yet; create one with: carrel session create\n"


def test_somebody_new_is_told_how_to_begin(carrel: Carrel) -> None:
    assert shown(carrel, "session", "list") == NONE_YET
    assert shown(carrel, "key", "list") == "carrel: no keys yet; create one with: carrel key create NAME\n"
    missing = "carrel: list sessions with: carrel session list; create one with: carrel session create ID\n"
    assert shown(carrel, "files", "ls", "s1") == f"carrel: no such session: 's1'\n{missing}"
    assert shown(carrel, "session", "create", "s1") == "s1\ncarrel: open a shell in it with: carrel sh s1\n"
    empty = "carrel: nothing to list; copy a file into the session with: carrel files put s1 FILE\n"
    assert shown(carrel, "files", "ls", "s1") == empty
    carrel("session", "delete", "s1")
    assert shown(carrel, "session", "list") == NONE_YET


@pytest.mark.parametrize("json", [[], ["--json"]], ids=["plain", "json"])
def test_a_program_is_told_nothing_but_what_it_asked_for(carrel: Carrel, json: list[str]) -> None:
    for words in (["session", "list"], ["key", "list"], ["session", "create", "s1"], ["files", "ls", "s1"]):
        answer = carrel(*words, *json)
        assert (answer.status, answer.err) == (0, "")
    assert carrel("files", "ls", "s9", *json).err.count("\n") == 1


def test_whoever_wants_json_is_told_nothing_else_on_a_terminal_too(carrel: Carrel) -> None:
    assert shown(carrel, "session", "list", "--json") == '{"sessions": [], "next_after": null}\n'
    assert shown(carrel, "files", "ls", "s1", "--json").count("\n") == 1
