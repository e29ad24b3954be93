"""A command line that runs in this process answers as one of its own does, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from tests.command_line import execute, on_terminal, plain_words, process

LINES = {
    "help": ("--help",),
    "usage": ("files", "nope"),
    "json": ("files", "ls", "s9", "--json"),
    "bytes": ("files", "ls", "s1", b"no\xff"),
    "put": ("files", "put", "s1", "-", "large"),
    "verbose": ("-v", "files", "cat", "s1", "../secret"),
}


def state() -> tuple[object, ...]:
    """What a command could change in this process."""
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    streams = [(os.fstat(fd).st_dev, os.fstat(fd).st_ino) for fd in range(3)]
    return (
        dict(os.environ),
        os.getcwd(),
        handlers,
        streams,
        (sys.stdin, sys.stdout, sys.stderr),
        list(sys.argv),
        list(warnings.filters),
        tempfile.gettempdir(),
        sorted(os.listdir("/proc/self/fd")),
    )


@pytest.mark.parametrize("name", LINES)
def test_it_answers_as_a_process_does(name: str, tmp_path: Path) -> None:
    words = ("--sessions-dir", "sessions", *LINES[name])
    stdin = bytes(range(256)) * 1000
    answers = []
    for run, place in ((execute, tmp_path / "here"), (process, tmp_path / "there")):
        place.mkdir()
        assert execute("--sessions-dir", "sessions", "session", "create", "s1", cwd=place).status == 0
        answer = run(*words, stdin=stdin, environ={**os.environ, "TERM": "dumb"}, cwd=place)
        stored = place / "sessions" / "s1" / "large"
        answers.append((answer, stored.read_bytes() if stored.exists() else None))
    assert answers[0] == answers[1]


def test_it_leaves_everything_as_it_was(tmp_path: Path) -> None:
    execute("session", "create", "s1", cwd=tmp_path)
    before = state()
    for words in (("sh", "s1", "env"), ("tool", "s1", "file_list", "{}"), ("nope",)):
        execute(*words, environ={"CARREL_SESSIONS_DIR": "workspace", "TMPDIR": str(tmp_path)}, cwd=tmp_path)
        on_terminal(*words, cwd=tmp_path)
    assert state() == before


def test_a_warning_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from carrel.fronts.cli.context import CliContext

    def warn(self: CliContext) -> None:
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr(CliContext, "manager_if_present", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = execute("session", "list", cwd=tmp_path)
    assert answer.status == 70
    assert "DeprecationWarning: old" in answer.err


@pytest.mark.parametrize(("ending", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_what_ends_the_program_ends_only_the_command(
    ending: type[BaseException], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from carrel.fronts.cli.context import CliContext

    def end(self: CliContext) -> None:
        raise ending

    monkeypatch.setattr(CliContext, "manager_if_present", end)
    answer = execute("session", "list", cwd=tmp_path)
    assert (answer.status, answer.out, answer.err) == (status, b"", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("carrel", []),
        ("carrel sh s1 'head -n 3 a.csv'\n", ["sh", "s1", "head -n 3 a.csv"]),
        ("carrel run s1 -c 'print(\"$x | y\")'", ["run", "s1", "-c", 'print("$x | y")']),
        ('carrel sh s1 "a b"', ["sh", "s1", "a b"]),
        ("carrel files ls s1 -r --pattern '*.csv'", ["files", "ls", "s1", "-r", "--pattern", "*.csv"]),
        ("carrel files ls s1 --pattern *.csv", None),
        ('carrel sh s1 "$HOME"', None),
        ("carrel files ls s1 | wc -l", None),
        ("carrel files ls s1; echo", None),
        ("carrel files get s1 a - > b", None),
        ("A=1 carrel files ls s1", None),
        ("carrel-other files", None),
        ("carrel put ~/a", None),
    ],
)
def test_only_a_line_that_a_shell_would_just_split_is_plain(line: str, words: list[str] | None) -> None:
    assert plain_words(line) == words
