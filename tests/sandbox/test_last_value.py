"""The value of a last expression is shown where that is requested."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from tests.requirements import requirement
from tests.runtimes.wasm.guest.last_values import FAILING, SHOWN, SILENT, WARNING
from tests.sandbox.house import House, said


@requirement("E-60")
@pytest.mark.parametrize(("source", "shown"), SHOWN.items())
def test_the_value_of_a_last_expression_is_shown_on_request(
    sandbox: BaseSandbox, source: str, shown: str
) -> None:
    assert said(sandbox.execute(source, show_last_value=True)) == shown
    assert said(sandbox.execute(source)) == ""


@pytest.mark.parametrize("source", SILENT)
def test_nothing_else_is_shown(sandbox: BaseSandbox, source: str) -> None:
    assert said(sandbox.execute(source, show_last_value=True)) == ""


@pytest.mark.parametrize("source", FAILING)
def test_an_error_is_reported_as_without_a_last_value(sandbox: BaseSandbox, source: str) -> None:
    result = sandbox.execute(source, show_last_value=True)
    assert (result.exit_code, result.stderr) == (1, sandbox.execute(source).stderr)
    assert "carrel" not in result.stderr


def test_a_warning_is_printed_once(sandbox: BaseSandbox) -> None:
    result = sandbox.execute(WARNING, show_last_value=True)
    assert result.stdout == "'\\\\d'\n"
    assert result.stderr == sandbox.execute(WARNING).stderr
    assert "SyntaxWarning" in result.stderr


def test_a_value_that_cannot_be_shown_is_an_error_on_its_line(sandbox: BaseSandbox) -> None:
    code = "class A:\n    def __repr__(self):\n        raise ValueError('no')\n\nA()"
    lines = sandbox.execute(code, show_last_value=True).stderr.splitlines()
    assert lines[1:3] == ['  File "<string>", line 5, in <module>', "    A()"]
    assert lines[-1] == "ValueError: no"


def test_a_stateful_sandbox_shows_it_and_knows_it_as_underscore(house: House) -> None:
    kept = house.new(stateful=True)
    assert said(kept.execute("x = 20\nx + 1", show_last_value=True)) == "21\n"
    assert said(kept.execute("_ * 2", show_last_value=True)) == "42\n"
    assert said(kept.execute("x")) == ""


def test_a_value_that_was_shown_is_finalized_when_the_script_ends(sandbox: BaseSandbox) -> None:
    code = "class A:\n    def __del__(self):\n        print('gone')\n\n    __repr__ = lambda self: 'A'\n\nA()"
    assert said(sandbox.execute(code, show_last_value=True)) == "A\ngone\n"


def test_a_file_of_the_workspace_runs_as_a_script(sandbox: BaseSandbox, files: Path) -> None:
    (files / "script.py").write_text("1 + 1")
    assert said(sandbox.execute_file("script.py", show_last_value=True)) == ""
