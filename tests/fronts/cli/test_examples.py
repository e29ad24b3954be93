"""Every command has examples, and every example works."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import click
import pytest

from carrel.fronts.cli.help import EXAMPLES, commands_of, examples_of
from carrel.fronts.cli.main import cli
from carrel.sessions.manager import WorkspaceManager
from tests.command_line import execute, plain_words
from tests.depth import IS_THOROUGH
from tests.fronts.cli.completion.test_completion import require_shell

GUEST = ("", "run", "demo", "setup")
"""The commands whose examples run Python in a session, or see that it can be run."""
PORTS = {"CARREL_SERVE_PORT": "0", "CARREL_SERVE_GRPC_PORT": "0"}
ELSEWHERE = (*EXAMPLES["key local"], *(() if IS_THOROUGH else ("carrel demo",)))
"""What needs a service that runs, or takes seconds, and other tests do as well."""
BEFORE = {
    "bash": "",
    "zsh": "autoload -Uz compinit; compinit -u -D; ",
}


def test_every_command_has_examples_and_no_example_is_without_a_command() -> None:
    names = {name for name, command in commands_of(cli) if not isinstance(command, click.Group)}
    assert {""} | names == set(EXAMPLES)


def test_every_page_of_help_ends_with_its_examples() -> None:
    for name, command in commands_of(cli):
        help_text = command.get_help(click.Context(command, info_name=name))
        assert help_text.endswith(
            "\n".join(["  Examples:", *(f"    {each}" for each in examples_of(name))])
        ), name


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """All that the examples speak of."""
    world = tmp_path / "world"
    (world / "project").mkdir(parents=True)
    (world / "home" / ".config" / "fish" / "completions").mkdir(parents=True)
    (world / "project" / "main.py").write_text("")
    (world / "data.csv").write_text("month,rain\n1,60\n2,71\n")
    (world / "analyse.py").write_text("import sys; print(sys.argv)")
    (world / "arguments.json").write_text(json.dumps({"command": "ls"}))
    with tarfile.open(world / "project.tar.gz", "w:gz") as archive:
        archive.add(world / "project", "project")
    with WorkspaceManager(world / "workspace").create("demo") as workspace:
        workspace.write("data.csv", (world / "data.csv").read_bytes())
        workspace.write("notes/todo.txt", b"TODO: read the rain\n")
        workspace.write("notes/count.py", b"print(1)")
        workspace.write("old.txt", b"caf\xe9\n")
    return world


@pytest.mark.parametrize("name", EXAMPLES, ids=lambda name: name.replace(" ", "-") or "carrel")
def test_the_examples_of_a_command_work(name: str, world: Path, request: pytest.FixtureRequest) -> None:
    env = {**os.environ, **PORTS, "HOME": str(world / "home"), "TERM": "dumb"}
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    if name in GUEST:
        env["CARREL_CACHE"] = str(request.getfixturevalue("guest_cache"))
    if name == "key revoke":
        done(EXAMPLES["key create"][0], world, env)
    for line in EXAMPLES[name]:
        if line.startswith("carrel serve"):
            serve(line, world, env)
        elif line not in ELSEWHERE and "--container" not in line:
            done(line, world, env)


def done(line: str, world: Path, env: dict[str, str]) -> bytes:
    """Type *line*; what it printed."""
    words = plain_words(line)
    if words is not None:
        answer = execute(*words, environ=env, cwd=world)
        assert (answer.status, "Traceback" in answer.err) == (0, False), (line, answer.err)
        return answer.out
    shell = "zsh" if "zsh" in line else "bash"
    ended = subprocess.run(
        [require_shell(shell), "-c", f"set -e; {BEFORE[shell]}{line}"],
        cwd=world,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False), (line, ended.stderr)
    return ended.stdout


def serve(line: str, world: Path, env: dict[str, str]) -> None:
    """Start the service, at a port that is free, until it says where it is."""
    words = shlex.split(line.replace("--port 8080", "--port 0"))
    with subprocess.Popen(
        [sys.executable, "-m", *words], cwd=world, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = process.stdout.readline() if "--json" in words else process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60)
    assert b"http://" in told
    if "--json" in words:
        document = json.loads(told)
        assert document["http"].startswith("http://127.0.0.1:")
        assert (document["grpc"], document["has_callers"]) == (None, True)
    assert process.returncode == 0
