"""Colours are for terminals, and only where nobody asks for plain text."""

from __future__ import annotations

import io
import os
import time

import pytest

from carrel.fronts.cli.main import cli
from carrel.fronts.cli.output import arrow, render_local_time, render_size
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


class Screen(io.TextIOWrapper):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "encoding", "sign"),
    [
        (Screen, "utf-8", "\N{RIGHTWARDS ARROW}"),
        (Screen, "ascii", "->"),
        (Screen, "latin-1", "->"),
        (io.TextIOWrapper, "utf-8", "->"),
    ],
)
def test_an_arrow_is_plain_where_it_could_not_be_shown(
    kind: type[io.TextIOWrapper], encoding: str, sign: str
) -> None:
    assert arrow(kind(io.BytesIO(), encoding=encoding)) == sign


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (34_304, "33.5 KiB"),
        (100 * 2**20, "100 MiB"),
        (3 * 2**40, "3 TiB"),
        (5000 * 2**40, "5,000 TiB"),
    ],
)
def test_a_size_has_its_unit(count: int, text: str) -> None:
    assert render_size(count) == text


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (0, "now"),
        (1, "1 second ago"),
        (59, "59 seconds ago"),
        (3599, "59 minutes ago"),
        (7200, "2 hours ago"),
        (86_400, "1 day ago"),
        (-90, "in 1 minute"),
    ],
)
def test_a_time_is_local_and_has_its_age(monkeypatch: pytest.MonkeyPatch, seconds: int, age: str) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    try:
        assert render_local_time(0, seconds * 10**9) == f"1970-01-01 02:00:00 ({age})"
        assert render_local_time(10**30, 0) == "@1000000000000000000000"
    finally:
        monkeypatch.undo()
        time.tzset()
