"""`scripts/progress.py` says how a command gets on, and shows its words only if it fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.fronts.cli.terminal import CTRL_C, Terminal

SCRIPT = str(Path(__file__).parent.parent / "scripts" / "progress.py")


def told(*command: str) -> tuple[int, str, str]:
    """The status, and what is on standard output and error, with times that are no times."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "packages", *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, re.sub(r"\d+ s\b", "N s", done.stderr)


def shell(script: str) -> tuple[str, str, str]:
    return "sh", "-c", script


def test_a_log_hears_that_it_began_and_that_it_is_done() -> None:
    assert told(*shell("echo WARNING: nobody cares; echo working >&2")) == (
        0,
        "",
        "packages: N s\npackages: done in N s\n",
    )


def test_a_failure_is_told_in_the_command_s_own_words() -> None:
    assert told(*shell("echo WARNING: this; echo no room >&2; exit 3")) == (
        3,
        "",
        "packages: N s\nWARNING: this\nno room\npackages: failed with status 3 after N s\n",
    )


def test_a_command_that_is_killed_fails_as_in_a_shell() -> None:
    status, _, said = told(*shell("kill -9 $$"))
    assert (status, said.splitlines()[-1]) == (137, "packages: failed with status -9 after N s")


def test_a_program_that_is_missing_is_named() -> None:
    status, _, said = told("/no/such/program")
    assert status == 1
    assert said == "packages: [Errno 2] No such file or directory: '/no/such/program'\n"


def test_a_terminal_shows_the_last_news_in_one_line_that_is_gone_afterwards(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    news = r"printf '\033[1mCollecting\033[0m %0100d\nWARNING: nobody cares\nhalf a li' 7"
    argv: list[str | bytes] = [sys.executable, SCRIPT, "packages", *shell(f"{news}; read line <{go}")]
    terminal = Terminal(argv, os.environ, tmp_path, columns=40)
    terminal.until(b" s, Collecting 00000000")
    go.write_text("\n")
    assert terminal.status() == 0
    assert b"WARNING" not in terminal.shown
    *moving, last = terminal.shown.split(b"\r\x1b[K")
    assert max(map(len, moving)) < 40
    assert not any(b"\n" in line for line in moving)
    assert re.fullmatch(rb"packages: done in \d+ s\r\n", last)


def test_ctrl_c_ends_it_and_the_command(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    script = f"echo begun; read line <{go}; touch {tmp_path}/went-on"
    terminal = Terminal([sys.executable, SCRIPT, "packages", *shell(script)], os.environ, tmp_path)
    terminal.until(b"begun")
    terminal.type(CTRL_C)
    assert terminal.status() == -signal.SIGINT
    assert b"Traceback" not in terminal.shown
    assert os.listdir(tmp_path) == ["go"]
