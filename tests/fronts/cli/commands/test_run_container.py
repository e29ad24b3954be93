"""`carrel run --container`: Python and commands in the container of a session."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.fronts.cli.commands.run import CONTAINER
from carrel.fronts.cli.help import EXAMPLES
from carrel.sessions.manager import WorkspaceManager
from tests.command_line import execute
from tests.engines import PYTHON, require_engine


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Where the command finds its sessions and its engine."""
    return {
        **os.environ,
        "CARREL_SESSIONS_DIR": str(tmp_path / "sessions"),
        "CARREL_CONTAINER_IMAGE": PYTHON,
        "CARREL_CONTAINER_ENGINE": require_engine(),
    }


def carrel(environ: dict[str, str], *words: str, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
    answer = execute("run", *words, stdin=stdin, environ=environ)
    return answer.status, answer.out, answer.err.encode()


def test_a_command_follows_two_dashes(environ: dict[str, str], tmp_path: Path) -> None:
    words = ("--container", "demo", "--", "sh", "-c", 'cat; echo "$0" >made; exit 3', "-rf")
    assert carrel(environ, *words, stdin=b"in\n") == (3, b"in\n", b"")
    assert (tmp_path / "sessions" / "demo" / "made").read_text() == "-rf\n"
    with Engine.connect(environ["CARREL_CONTAINER_ENGINE"]) as engine:
        assert Containers(engine, tmp_path / "sessions" / ".carrel" / "containers").known() == []


def test_options_stand_before_the_two_dashes(environ: dict[str, str]) -> None:
    code, out, err = carrel(environ, "demo", "--container", "--timeout", "0.5", "--", "sleep", "1000")
    assert (code, out) == (124, b"")
    assert b"longer than 0.5 s" in err


def test_python_is_the_images_own(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import sys; print(sys.argv[1:], sys.platform)")
    assert carrel(environ, "--container", "demo", str(tmp_path / "job.py"), "a")[:2] == (0, b"['a'] linux\n")
    assert carrel(environ, "--container", "demo", "-", stdin=b"print(1)")[:2] == (0, b"1\n")
    code, out, _ = carrel(environ, "demo", "--container", "--json", "-c", "print(2)", "--", "x")
    assert (code, json.loads(out)["metadata"]["runtime"], json.loads(out)["stdout"]) == (
        0,
        "container",
        "2\n",
    )


def test_what_is_missing_is_told(environ: dict[str, str]) -> None:
    assert carrel(environ, "--container")[0] != 0
    assert b"Missing script" in carrel(environ, "--container", "demo", "--")[2]
    del environ["CARREL_CONTAINER_IMAGE"]
    assert (
        b"no image for containers: set containers.image"
        in carrel(environ, "--container", "demo", "--", "ls")[2]
    )


def test_the_example_in_the_help_works(environ: dict[str, str], tmp_path: Path) -> None:
    (line,) = (each for each in EXAMPLES["run"] if CONTAINER in each)
    with WorkspaceManager(tmp_path / "sessions").create("demo") as workspace:
        workspace.write("data.csv", b"")
    status, out, err = carrel(environ, *shlex.split(line)[2:])
    assert (status, err) == (0, b"")
    assert b"data.csv" in out
