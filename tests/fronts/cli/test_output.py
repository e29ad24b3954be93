"""Colours are for terminals, and only where nobody asks for plain text."""

from __future__ import annotations

import os

import pytest

from carrel.fronts.cli.main import cli
from tests.fronts.cli.conftest import Carrel

RED = b"\x1b[31m"


def shown(carrel: Carrel, *words: str, **variables: str) -> bytes:
    """What a terminal is told."""
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return carrel.shown(*words, environ={**env, "TERM": "xterm", **variables})


def test_an_error_is_red_on_a_terminal(carrel: Carrel) -> None:
    assert shown(carrel, "files", "ls", "s1").startswith(RED + b"carrel:\x1b[0m no such session: 's1'")


@pytest.mark.parametrize(
    "variables", [{"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}, {"TERM": ""}], ids=str
)
def test_whoever_asks_for_plain_text_gets_it(carrel: Carrel, variables: dict[str, str]) -> None:
    carrel("session", "create", "s1")
    for words in (["files", "ls", "s9"], ["session", "list"], ["session", "show", "s1"], ["doctor"]):
        assert b"\x1b" not in shown(carrel, *words, **variables)


def test_an_empty_wish_is_none(carrel: Carrel) -> None:
    assert RED in shown(carrel, "files", "ls", "s1", NO_COLOR="")


def test_a_pipe_is_told_no_colours(carrel: Carrel, session: str) -> None:
    for words in (["files", "ls", "s9"], ["session", "list"], ["session", "show", session], ["doctor"]):
        answer = carrel(*words, env={"TERM": "xterm"})
        assert b"\x1b" not in answer.out + answer.err.encode()


def test_what_there_is_to_see_is_coloured_on_a_terminal(carrel: Carrel, session: str) -> None:
    for words in (["session", "list"], ["session", "show", session], ["doctor"]):
        assert b"\x1b[" in shown(carrel, *words)


@pytest.mark.parametrize(("wish", "expected"), [("1", False), ("", None)])
def test_what_click_colours_obeys_the_same_wish(
    wish: str, expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", wish)
    monkeypatch.setenv("TERM", "xterm")
    with cli.make_context("carrel", ["demo"]) as context:
        assert cli.callback is not None
        context.invoke(cli.callback, sessions_dir=None, verbose=False)
        assert context.color is expected
