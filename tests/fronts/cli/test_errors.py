"""An error is one line; `--debug` tells the rest, and a bug says that it is one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from carrel.config.debug import is_debug
from carrel.config.load import load
from tests.command_line import Answer
from tests.fronts.cli.conftest import Carrel

BUG = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "carrel.sessions.manager":
            raise ValueError("shelf\\n")

sys.meta_path.insert(0, Finder())
"""


@pytest.fixture
def bug(tmp_path: Path) -> dict[str, str]:
    """Variables with which the program breaks as soon as it wants sessions."""
    (tmp_path / "sitecustomize.py").write_text(BUG)
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_a_bug_is_told_in_one_line_and_has_its_own_status(carrel: Carrel, bug: dict[str, str]) -> None:
    answer = carrel.process("session", "create", "s1", env=bug)
    assert (answer.status, answer.out) == (70, b"")
    assert answer.err == (
        "carrel: this is a bug in carrel, please report it: ValueError: shelf\\n"
        " (carrel --debug ... prints a traceback)\n"
    )


def test_a_bug_is_told_as_json_if_asked(carrel: Carrel, bug: dict[str, str]) -> None:
    answer = carrel.process("session", "create", "s1", "--json", env=bug)
    assert (answer.status, answer.error["code"]) == (70, "cli.bug")


def assert_told_all(answer: Answer, kind: str) -> None:
    lines = answer.err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert any(line.startswith(kind) for line in lines)
    assert f"python: {sys.version.split()[0]}" in lines
    assert lines[-1].startswith("carrel: ")


def test_debug_shows_where_a_bug_is(carrel: Carrel, bug: dict[str, str]) -> None:
    answer = carrel.process("--debug", "session", "create", "s1", env={**bug, "CARREL_SANDBOX_KEY": "hush"})
    assert answer.status == 70
    assert_told_all(answer, "ValueError: ")
    assert "CARREL_SANDBOX_KEY" in answer.err
    assert "hush" not in answer.err


def test_debug_shows_where_a_foreseen_error_came_from(carrel: Carrel, session: str) -> None:
    plain = carrel("files", "cat", session, "nothing")
    for answer in (
        carrel("-v", "--debug", "files", "cat", session, "nothing"),
        carrel("files", "cat", session, "nothing", env={"CARREL_DEBUG": "1"}),
    ):
        assert answer.status == plain.status == 1
        assert answer.err.endswith(plain.err)
        assert "carrel.errors.MissingError" in answer.err
    assert plain.err == "carrel: no such file or directory: 'nothing'\n"


def test_debug_as_json_is_one_document(carrel: Carrel, session: str) -> None:
    import json

    answer = carrel("--debug", "files", "rm", session, "nothing", "--json")
    document = json.loads(answer.err)
    assert list(document) == ["error", "debug"]
    assert document["error"]["code"] == "path.missing"
    assert "MissingError" in document["debug"]["traceback"]


def test_debug_after_the_command_belongs_to_the_command(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "cat", session, "nothing", "--debug")
    assert (answer.status, answer.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_variable_is_a_switch_and_no_misspelt_setting(text: str, expected: bool) -> None:
    assert is_debug({"CARREL_DEBUG": text}) is expected
    assert load({"CARREL_DEBUG": text}).notes == ()
