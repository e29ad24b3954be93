"""Where `carrel demo` happens: commands are run for real, and nothing of them goes on when it is stopped."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from carrel.fronts.cli.demo.runner import CommandResult, DemoRunner
from tests.fronts.cli.terminal import CTRL_C, Terminal

ASKING = """
import os, sys
from pathlib import Path
from carrel.fronts.cli.demo.runner import DemoRunner, temporary_directory
with temporary_directory() as directory:
    stage = DemoRunner(directory, os.environ)
    os.mkfifo(directory / "here" / "pipe")
    stage.run("carrel session create demo")
    print("asking", directory, flush=True)
    stage.run("carrel files put demo pipe")
"""


def test_a_line_is_understood_as_by_a_shell_and_both_streams_are_the_answer(tmp_path: Path) -> None:
    stage = DemoRunner(tmp_path, os.environ)
    stage.write_file("a b", "text\n")
    assert stage.run("carrel session create demo") == CommandResult(text="demo\n", status=0)
    assert stage.run("carrel files put demo 'a b'") == CommandResult(text="", status=0)
    assert stage.run("carrel sh demo 'cat \"a b\" c'") == CommandResult(
        text="text\ncat: c: No such file or directory\n", status=1
    )


def test_ctrl_c_ends_a_command_that_would_never_end(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    terminal = Terminal([sys.executable, "-c", ASKING], environ, tmp_path, columns=400)
    terminal.until(b"\r\n")
    # It can be opened as soon as the command reads from it, which then waits for what is never written.
    pipe = os.open(os.path.join(terminal.shown.split()[1].decode(), "here", "pipe"), os.O_WRONLY)
    terminal.type(CTRL_C)
    assert terminal.status() != 0
    with pytest.raises(BrokenPipeError):
        os.write(pipe, b"nobody reads this")
    os.close(pipe)
    assert os.listdir(tmp_path) == []
