"""The loader that runs the image's `python3`, run here by the Python of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from carrel.runtimes.container.command import python_command
from carrel.runtimes.script import Script
from tests.runtimes.wasm.guest.last_values import FAILING, SHOWN, SILENT, WARNING


def run(source: str, directory: Path, *, show: bool = True) -> tuple[int, str, str]:
    """Run code as a container would; return its exit status and its output."""
    script = Script(source=source.encode(), cwd="/", argv=("one",), show_last_value=show)
    command = python_command(script, "/", None)
    done = subprocess.run(
        [sys.executable, *command.argv[1:]],
        input=command.preface + b"given",
        capture_output=True,
        cwd=directory,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(("source", "shown"), SHOWN.items())
def test_the_value_of_a_last_expression_is_shown_on_request(source: str, shown: str, tmp_path: Path) -> None:
    assert run(source, tmp_path) == (0, shown, "")
    assert run(source, tmp_path, show=False)[1] == ""


@pytest.mark.parametrize("source", SILENT)
def test_nothing_else_is_shown(source: str, tmp_path: Path) -> None:
    assert run(source, tmp_path) == (0, "", "")


@pytest.mark.parametrize("source", FAILING)
def test_an_error_is_reported_as_without_a_last_value(source: str, tmp_path: Path) -> None:
    status, _, error = run(source, tmp_path)
    assert (status, error) == (1, run(source, tmp_path, show=False)[2])
    assert "carrel" not in error


def test_a_warning_is_printed_once(tmp_path: Path) -> None:
    status, printed, error = run(WARNING, tmp_path)
    assert (status, printed) == (0, "'\\\\d'\n")
    assert error == run(WARNING, tmp_path, show=False)[2]


@pytest.mark.parametrize("show", [True, False])
def test_the_namespace_has_no_name_of_the_loader(tmp_path: Path, show: bool) -> None:
    code = "import sys; print(sorted(n for n in globals() if n[0] != '_'), sys.argv, input())"
    assert run(code, tmp_path, show=show) == (0, "['sys'] ['-c', 'one'] given\n", "")
