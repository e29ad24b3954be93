"""The program as a whole: help, version, errors, streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from carrel.fronts.cli.help import commands_of
from carrel.fronts.cli.main import cli
from tests.command_line import Answer, execute, on_terminal
from tests.fronts.cli.conftest import Carrel
from tests.requirements import requirement

WEIGH = """
import sys
from carrel.fronts.cli.main import run
status = run(["--help"])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""
HEAVY = {
    "asyncio",
    "re2",
    "sqlite3",
    "ctypes",
    "logging",
    "json",
    "tempfile",
    "carrel.workspace",
    "carrel.sessions",
    "carrel.storage",
    "carrel.fs",
    "carrel.tools",
}


def test_help_shows_every_command_in_its_section(carrel: Carrel) -> None:
    answer = carrel("--help")
    assert answer.status == 0
    text = answer.out.decode()
    for words in (
        "\nGetting started:\n  demo ",
        "\nSessions:\n  session create ",
        "\nFiles:\n  files ls ",
        "\n  policy explain ",
        "\nRunning commands and code:\n  sh ",
        "\nService:\n  serve ",
    ):
        assert words in text
    assert "Other:" not in text
    assert "_complete" not in text


def test_no_page_of_help_is_wider_than_a_terminal() -> None:
    for name, command in commands_of(cli):
        context = click.Context(command, info_name=f"carrel {name}", terminal_width=80)
        for line in command.get_help(context).splitlines():
            assert len(line) <= 80, (name, line)


@pytest.mark.parametrize("columns", [60, 80])
def test_help_keeps_to_the_width_of_the_terminal(carrel: Carrel, columns: int) -> None:
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    words = carrel.words("session", "extend", "--help")
    status, shown = on_terminal(*words, environ=env, cwd=carrel.here, columns=columns)
    lines = shown.decode().splitlines()
    assert status == 0
    assert len(lines) > 10
    assert max(map(len, lines)) <= columns


def test_no_words_at_all_show_the_help(carrel: Carrel) -> None:
    assert carrel().out == carrel("--help").out


def test_help_stays_light() -> None:
    done = subprocess.run([sys.executable, "-c", WEIGH], capture_output=True, check=True, timeout=60)
    modules = set(done.stderr.decode().split())
    assert not modules & HEAVY
    assert len(modules) < 170
    assert len([name for name in modules if name.startswith("carrel")]) < 36


def test_the_version_is_that_of_the_package(carrel: Carrel) -> None:
    from importlib.metadata import version

    assert carrel("--version").out.decode() == f"carrel {version('carrel')}\n"


def test_the_console_script_is_the_same_program() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="carrel")
    assert script.value == "carrel.fronts.cli.main:main"


@pytest.mark.parametrize(
    "words",
    [
        ["nope"],
        ["--nope"],
        ["files"],
        ["files", "ls"],
        ["files", "cat", "s1"],
        ["files", "cat", "s1", "a", "b"],
        ["files", "put", "s1", "-"],
        ["files", "cat", "s1", "a", "--lines", "x"],
        ["files", "cat", "s1", "a", "--lines", "0:3"],
        ["files", "cat", "s1", "a", "--lines", "1:-3"],
        ["policy", "explain", "s1", "a", "--access", "own"],
        ["policy", "explain", "s1", "a", "--allow", ""],
    ],
)
def test_words_that_make_no_sense_exit_with_2_and_one_line(carrel: Carrel, words: list[str]) -> None:
    answer = carrel(*words)
    assert answer.status == 2
    assert answer.out == b""
    assert answer.err.startswith("carrel: ")
    assert answer.err.count("\n") == 1
    assert not carrel.sessions.exists()


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["sesion"], "Did you mean 'session'?"),
        (["doctr"], "Did you mean 'doctor'?"),
        (["ls"], "Did you mean 'files ls'?"),
        (["list"], "Did you mean 'session list' or 'key list'?"),
        (["files", "lst"], "Did you mean 'ls'?"),
        (["help"], "Did you mean '--help'?"),
        (["version"], "Did you mean '--version'?"),
        (["session", "help"], "Did you mean '--help'?"),
        (["run", "s1", "--timeot", "3", "x.py"], "No such option '--timeot'. Did you mean '--timeout'?"),
        (["completion"], "Choose from: bash, zsh, fish. Try"),
        (["files"], "Missing command: ls, cat, put, get or rm."),
        (["files", "ls", "s1", "--recursiv"], "Did you mean '--recursive'?"),
        (["--sesions-dir", "x", "doctor"], "Did you mean '--sessions-dir'?"),
        (["files", "get", "s1", "a", "--archive", "rar"], "'tar', 'tar.gz', 'tar.bz2', 'tar.xz', 'zip'"),
    ],
)
def test_what_may_have_been_meant_is_told(carrel: Carrel, words: list[str], suggestion: str) -> None:
    answer = carrel(*words)
    assert answer.status == 2
    assert suggestion in answer.err


def test_what_is_like_nothing_has_no_suggestion(carrel: Carrel) -> None:
    assert carrel("xyzzy").err == "carrel: No such command 'xyzzy'. Try 'carrel --help'.\n"


def test_a_command_that_is_hidden_is_not_suggested(carrel: Carrel) -> None:
    assert "_complete" not in carrel("_complet").err


def test_words_that_make_no_sense_are_told_as_json_if_asked(carrel: Carrel) -> None:
    answer = carrel("files", "ls", "--json")
    assert answer.status == 2
    assert answer.error["code"] == "cli.usage"


def test_after_two_dashes_json_is_a_name(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "cat", session, "--", "--json")
    assert answer.status == 1
    assert answer.err == "carrel: no such file or directory: '--json'\n"


def test_an_empty_sessions_directory_name_is_refused(carrel: Carrel) -> None:
    answer = carrel("--sessions-dir", "", "files", "ls", "s1")
    assert answer.status == 2
    assert "--sessions-dir" in answer.err


def put(here: Path, *option: str, **variables: str) -> None:
    """Write `a` into the session `s1`, wherever sessions are."""
    words = (*option, "files", "put", "s1", "-", "a")
    answer = execute(*words, stdin=b"x", environ={**os.environ, **variables}, cwd=here)
    assert answer.status == 0, answer.err


def test_the_sessions_directory_is_named_by_option_variable_alias_and_file_in_this_order(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"session.directory = '{tmp_path}/file'")
    option = ("--sessions-dir", str(tmp_path / "option"))
    variables = {"CARREL_SESSIONS_DIR": str(tmp_path / "variable")}
    alias = {"SHANNON_SESSION_WORKSPACES_DIR": str(tmp_path / "alias")}
    config = {"CARREL_CONFIG": str(file)}
    put(tmp_path, *option, **variables, **alias, **config)
    assert sorted(os.listdir(tmp_path)) == ["config.toml", "option"]
    put(tmp_path, **variables, **alias, **config)
    assert sorted(os.listdir(tmp_path)) == ["config.toml", "option", "variable"]
    put(tmp_path, **alias, **config)
    assert sorted(os.listdir(tmp_path)) == ["alias", "config.toml", "option", "variable"]
    put(tmp_path, **config)
    assert sorted(os.listdir(tmp_path)) == ["alias", "config.toml", "file", "option", "variable"]
    put(tmp_path)
    assert (tmp_path / "workspace" / "s1" / "a").read_bytes() == b"x"


@pytest.mark.parametrize(
    "words",
    [
        ["files", "ls", "s1"],
        ["files", "cat", "s1", "a"],
        ["files", "get", "s1", "a", "-"],
        ["files", "put", "s1", "-", "b"],
        ["files", "rm", "s1", "a"],
        ["policy", "explain", "s1", "a"],
        ["session", "create", "s2"],
        ["session", "list"],
        ["session", "show", "s1"],
        ["session", "show", "s1", "--journal"],
        ["session", "verify", "s1"],
        ["session", "extend", "s1", "7d"],
        ["session", "delete", "s1"],
        ["session", "sweep"],
        ["doctor"],
    ],
    ids="-".join,
)
def test_every_command_takes_the_configured_directory(tmp_path: Path, words: list[str]) -> None:
    put(tmp_path, "--sessions-dir", str(tmp_path / "else"))
    file = tmp_path / "config.toml"
    file.write_text(f"session.directory = '{tmp_path}/else'")
    answer = execute(*words, environ={**os.environ, "CARREL_CONFIG": str(file)}, cwd=tmp_path)
    assert answer.status == 0, answer.err
    assert not (tmp_path / "workspace").exists()


BAD_IDS = ["../etc", "..\\etc", "a/b", ".hidden", "", "a..b", "we ird\n", "a;rm", "x" * 129]


@requirement("ID-04", "ID-05", "ID-06", "ID-07", "ID-14")
@pytest.mark.parametrize(
    "words",
    [
        *(["files", "ls", bad] for bad in BAD_IDS),
        ["files", "cat", "../etc", "a"],
        ["files", "put", "../etc", "-", "a"],
        ["files", "get", "../etc", "a"],
        ["files", "rm", "../etc", "a"],
        ["policy", "explain", "../etc", "a"],
    ],
)
def test_a_bad_id_is_refused_and_nothing_is_made(carrel: Carrel, tmp_path: Path, words: list[str]) -> None:
    before = sorted(tmp_path.rglob("*"))
    answer = carrel(*words)
    assert answer.status == 2
    assert answer.err.startswith("carrel: invalid session id")
    assert answer.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_reading_from_an_unknown_session_makes_nothing(carrel: Carrel) -> None:
    for words in (["ls", "s9"], ["cat", "s9", "a"], ["get", "s9", "a"], ["rm", "-f", "s9", "a"]):
        answer = carrel("files", *words)
        assert answer.status == 1
        assert answer.err == "carrel: no such session: 's9'\n"
    assert not carrel.sessions.exists()


def test_a_sessions_directory_that_others_may_write_to_exits_with_5(carrel: Carrel) -> None:
    carrel.sessions.mkdir()
    carrel.sessions.chmod(0o777)
    answer = carrel("files", "ls", "s1", "--json")
    assert answer.status == 5
    assert answer.error["code"] == "sessions.unavailable"
    assert str(carrel.sessions) not in answer.err


def test_a_refusal_is_told_once(carrel: Carrel, session: str) -> None:
    answer = carrel("files", "cat", session, "../secret")
    assert answer == Answer(3, b"", "carrel: path '../secret' escapes session workspace\n")


def test_verbose_tells_the_events_too(carrel: Carrel, session: str) -> None:
    answer = carrel("-v", "files", "cat", session, "../secret\n")
    assert answer.status == 3
    event, error = answer.err.splitlines()
    assert event.startswith(
        'carrel: WARNING security.path_escape session_id=s1 operation=read path="../secret\\n"'
    )
    assert error.startswith("carrel: path '../secret\\n' escapes")


def test_a_reader_that_goes_away_ends_the_program_quietly(carrel: Carrel, session: str) -> None:
    carrel("files", "put", session, "-", "large", stdin=b"0123456789" * 500_000)
    for words in (["cat", session, "large"], ["get", session, "large", "-"]):
        child = carrel.start("files", *words)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdin.close()
        assert child.stdout.read(10) == b"0123456789"
        child.stdout.close()
        assert child.wait(timeout=60) == 141
        assert child.stderr.read() == b""
        child.stderr.close()


def test_control_c_ends_the_program_quietly_and_leaves_nothing(carrel: Carrel, session: str) -> None:
    child = carrel.start("files", "put", session, "-", "new")
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(b"x" * 2**22)  # more than a pipe holds, so the child is reading by now
    child.stdin.flush()
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 130
    assert (child.stdout.read(), child.stderr.read()) == (b"", b"")
    for stream in (child.stdin, child.stdout, child.stderr):
        stream.close()
    assert not (carrel.workspace(session) / "new").exists()
    assert carrel.drafts == []


INTERRUPTED_IMPORT = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "carrel.sessions.manager":
            exec("raise KeyboardInterrupt")

sys.meta_path.insert(0, Finder())
"""


def test_control_c_in_the_midst_of_an_import_ends_the_program_alike(carrel: Carrel, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IMPORT)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    answer = carrel.process("session", "create", "s1", env={"PYTHONPATH": path})
    assert (answer.status, answer.out, answer.err) == (130, b"", "")


def test_a_full_disk_behind_standard_output_is_told(carrel: Carrel, session: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            carrel.argv("files", "cat", session, "a.txt"), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"carrel: input or output failed: No space left on device\n"


def test_a_closed_stream_is_refused_before_anything_is_opened(carrel: Carrel) -> None:
    command = 'exec "$0" -m carrel --sessions-dir "$1" files put s1 - a <&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(carrel.sessions)], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == b"carrel: standard input, output and error must be open\n"
    assert not carrel.sessions.exists()
