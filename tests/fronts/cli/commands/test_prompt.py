"""The prompt of `carrel sh`, typed at a terminal."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fronts.cli.conftest import Carrel
from tests.fronts.cli.terminal import CTRL_C, CTRL_D, PROMPT, TAB, UP, Terminal

pytest.importorskip("readline")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the history is kept."""
    return tmp_path / "state"


@pytest.fixture
def terminal(carrel: Carrel, session: str, state: Path) -> Iterator[Terminal]:
    """A shell in the session `s1` that shows its first prompt."""
    opened = start(carrel, state, "sh", session)
    opened.until(PROMPT)
    yield opened
    opened.close()


def start(carrel: Carrel, state: Path, *words: str) -> Terminal:
    env = {**os.environ, "XDG_STATE_HOME": str(state), "TERM": "dumb", "INPUTRC": os.devnull}
    return Terminal([os.fsdecode(word) for word in carrel.argv(*words)], env, carrel.here)


def test_the_prompt_names_the_session_where_it_is_and_a_status_that_is_not_0(terminal: Terminal) -> None:
    assert terminal.run(b"cd sub", b"s1:/workspace/sub$ ") == b""
    assert terminal.run(b"cat b.txt", b"s1:/workspace/sub$ ") == b"b"
    said = terminal.run(b"cat missing", b"[1] s1:/workspace/sub$ ")
    assert said == b"cat: missing: No such file or directory\r\n"
    assert terminal.run(b"cd") == b""


def test_without_a_session_it_is_the_operator_s_workspace(
    carrel: Carrel, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_WORKSPACE", str(tmp_path / "own"))
    terminal = start(carrel, state, "sh")
    terminal.until(b"workspace:/workspace$ ")
    terminal.type(CTRL_D)
    assert terminal.status() == 0
    terminal.close()


def test_a_directory_cannot_disturb_the_terminal_by_its_name(terminal: Terminal, carrel: Carrel) -> None:
    (carrel.workspace("s1") / "\x1b[2J").mkdir()
    terminal.type(b"cd ?*J\n")
    assert b"\x1b[2J" not in terminal.until(b"'/workspace/\\x1b[2J'$ ")


# How it ends


@pytest.mark.parametrize(("keys", "status"), [(CTRL_D, 0), (b"exit\n", 0), (b"exit 3\n", 3)])
def test_it_ends_by_ctrl_d_and_by_exit(terminal: Terminal, keys: bytes, status: int) -> None:
    terminal.type(keys)
    assert terminal.status() == status


def test_ctrl_d_ends_with_the_last_status(terminal: Terminal) -> None:
    terminal.run(b"cat missing")
    terminal.type(CTRL_D)
    assert terminal.status() == 1


# Ctrl-C


def test_ctrl_c_at_the_prompt_drops_the_line(terminal: Terminal) -> None:
    terminal.type(b"exit 3")
    terminal.until(b"exit 3")
    terminal.interrupt_line()
    terminal.until(PROMPT)
    assert terminal.run(b"pwd") == b"/workspace\r\n"


@pytest.mark.parametrize("line", [b"sleep 60", b"cat", b"cat sub/b.txt -"])
def test_ctrl_c_stops_the_command_and_not_the_shell(terminal: Terminal, line: bytes) -> None:
    # It may also come before the command begins.
    for _ in range(5):
        terminal.type(line + b"\n")
        terminal.until(line + b"\r\n")
        terminal.type(CTRL_C)
        terminal.until(b"[130] " + PROMPT)
    assert terminal.run(b"pwd") == b"/workspace\r\n"


def test_ctrl_d_ends_what_is_typed_for_a_command_and_not_the_shell(terminal: Terminal) -> None:
    terminal.type(b"cat sub/b.txt -\n")
    terminal.until(b"-\r\nb")
    terminal.type(b"one\n")
    terminal.until(b"one\r\none\r\n")
    terminal.type(CTRL_D)
    terminal.until(PROMPT)
    assert terminal.run(b"pwd") == b"/workspace\r\n"


def test_ctrl_c_stops_python_and_not_the_shell(
    carrel: Carrel, session: str, state: Path, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    terminal = start(carrel, state, "sh", session)
    terminal.until(PROMPT)
    terminal.type(b"python -c \"print('o' + 'n', flush=True); import time; time.sleep(60)\"\n")
    terminal.until(b"\non\r\n")
    terminal.type(CTRL_C)
    terminal.until(b"Command cancelled\r\n[130] " + PROMPT)
    terminal.type(b"python -c 'print(input())'\nme\n")
    assert terminal.until(PROMPT).endswith(b"me\r\n" + PROMPT)
    terminal.close()


# Lines


def test_a_line_may_hold_any_bytes(terminal: Terminal, carrel: Carrel) -> None:
    (carrel.workspace("s1") / os.fsdecode(b"\xff")).write_text("odd")
    terminal.type(b"cat \xff\n")
    assert b"\r\nodd" in terminal.until(PROMPT)


def test_tab_completes_commands_and_paths(terminal: Terminal) -> None:
    terminal.type(b"pw" + TAB)
    terminal.until(b"pwd ")
    terminal.type(b"\n")
    assert terminal.until(PROMPT) == b"\r\n/workspace\r\n" + PROMPT
    terminal.type(b"cat su" + TAB + b"b" + TAB)
    terminal.until(b"cat sub/b.txt ")
    terminal.type(b"\n")
    assert terminal.until(PROMPT) == b"\r\nb" + PROMPT


def test_tab_completes_a_name_that_has_to_be_escaped(terminal: Terminal, carrel: Carrel) -> None:
    (carrel.workspace("s1") / "odd name").write_text("odd")
    terminal.type(b"cat od" + TAB)
    terminal.until(b"cat odd\\ name ")
    terminal.type(b"\n")
    assert terminal.until(PROMPT) == b"\r\nodd" + PROMPT


def test_lines_are_remembered_for_the_next_shell_and_for_nobody_else(
    terminal: Terminal, carrel: Carrel, state: Path
) -> None:
    terminal.run(b"cat sub/b.txt")
    terminal.type(CTRL_D)
    assert terminal.status() == 0
    history = state / "carrel/history"
    assert history.read_text() == "cat sub/b.txt\n"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    again = start(carrel, state, "sh", "s1")
    again.until(PROMPT)
    again.type(UP)
    again.until(b"cat sub/b.txt")
    again.type(b"\n")
    assert again.until(PROMPT) == b"\r\nb" + PROMPT
    again.close()


def test_a_history_that_cannot_be_kept_hinders_nobody(carrel: Carrel, session: str, state: Path) -> None:
    state.write_text("in the way")
    terminal = start(carrel, state, "sh", session)
    terminal.until(PROMPT)
    assert terminal.run(b"pwd") == b"/workspace\r\n"
    terminal.type(CTRL_D)
    assert terminal.status() == 0
    terminal.close()
