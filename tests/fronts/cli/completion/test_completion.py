"""What is typed after `carrel` is completed: what `carrel` offers, and what real shells make of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from carrel.fronts.cli.completion.command import SCRIPTS
from carrel.fronts.cli.main import cli
from carrel.sessions.manager import WorkspaceManager
from tests.engines import unavailable
from tests.fronts.cli.conftest import Carrel
from tests.fronts.cli.terminal import TAB, Terminal

WEIGH = """
import sys
from carrel.fronts.cli.main import run
status = run(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""
HEAVY = {
    "asyncio",
    "re2",
    "sqlite3",
    "logging",
    "json",
    "tempfile",
    "yaml",
    "carrel.workspace",
    "carrel.sessions",
    "carrel.storage",
    "carrel.tools",
}
CTRL_A, CTRL_U = b"\x01", b"\x15"
PROMPT = b"ready> "
SHOW = b"printf '<%s>' "


@pytest.fixture
def filled(carrel: Carrel, session: str) -> Carrel:
    """A session with files whose names are not plain, another session, and a local file."""
    with WorkspaceManager(carrel.sessions) as manager:
        with manager.open(session) as workspace:
            workspace.write("my todo.txt", b"")
            workspace.write("it's=a:b$c", b"")
            workspace.write(".hidden", b"")
            workspace.write("sub/deep/file", b"")
        manager.create("other").close()
    (carrel.here / "local.txt").write_text("")
    (carrel.here / "locale").mkdir()
    return carrel


# What is offered


def offered(carrel: Carrel, *words: str) -> list[str]:
    answer = carrel("_complete", "--", "--sessions-dir", str(carrel.sessions), *words)
    assert (answer.status, answer.err) == (0, "")
    return [line.partition("\t")[0] or line for line in answer.lines]


def test_every_command_and_group_is_offered_and_none_that_is_hidden(carrel: Carrel) -> None:
    assert sorted(offered(carrel, "")) == sorted(cli.visible_commands())
    assert offered(carrel, "session", "s") == ["show", "sweep"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["files", "cat", ""], ["other", "s1"]),
        (["files", "cat", "s1", ""], ["a.txt", "empty", "it's=a:b$c", "my todo.txt", "sub/"]),
        (["files", "cat", "s1", "."], [".hidden"]),
        (["files", "cat", "s1", "sub/"], ["sub/b.txt", "sub/deep/"]),
        (["files", "cat", "s1", "'my t"], ["my todo.txt"]),
        (["files", "cat", "s1", "my\\ "], ["my todo.txt"]),
        (["files", "cat", "s1", "--en"], ["--encoding"]),
        (["files", "cat", "s1", "a.txt", "--encoding", "a"], ["ascii"]),
        (["files", "put", "s1", "lo"], ["\tfile"]),
        (["files", "put", "s1", "local.txt", "su"], ["sub/"]),
        (
            ["files", "get", "s1", "sub", "--archive=tar."],
            [f"--archive=tar.{end}" for end in ("gz", "bz2", "xz")],
        ),
        (["session", "delete", "s1", ""], ["other"]),
        (["session", "create", "x", "--role", "cr"], ["critic"]),
        (["tool", "s1", "file_wr"], ["file_write"]),
        (["tool", "--role", "critic", "s1", "file_"], ["file_read", "file_list", "file_search"]),
        (["tools", "--role=de"], ["--role=developer"]),
        (["key", "create", "ci", "--session", "o"], ["other"]),
        (["run", ""], ["other", "s1"]),
        (["run", "s1", ""], ["\tfile"]),
        (["run", "s1", "--timeout", "3", "/workspace/su"], ["/workspace/sub/"]),
        (["sh", "o"], ["other"]),
        (["sh", "s1", "hea"], ["head"]),
        (["sh", "s1", "head", "sub/b"], ["sub/b.txt"]),
        (["--debug", "--sessions-dir", ""], ["\tdir"]),
        (["completion", "z"], ["zsh"]),
        (["files", "cat", "nobody", ""], []),
        (["files", "cat", "..", ""], []),
    ],
    ids=" ".join,
)
def test_values_are_offered(filled: Carrel, words: list[str], expected: list[str]) -> None:
    assert offered(filled, *words) == expected


def test_what_a_tool_does_is_told(filled: Carrel) -> None:
    answer = filled("_complete", "--", "tool", "s1", "file_re")
    assert answer.out == b"file_read\tRead a file of the workspace\n"


def test_a_link_out_of_the_workspace_offers_nothing(filled: Carrel, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("")
    (filled.workspace("s1") / "out").symlink_to(tmp_path / "outside")
    assert offered(filled, "files", "cat", "s1", "out/") == []
    assert offered(filled, "files", "cat", "s1", "../other/") == []


def test_a_name_that_a_terminal_could_obey_is_not_offered(filled: Carrel) -> None:
    (filled.workspace("s1") / "sub" / "\x1b[2J").write_text("")
    (filled.workspace("s1") / "sub" / "two\nlines").write_text("")
    assert offered(filled, "files", "cat", "s1", "sub/") == ["sub/b.txt", "sub/deep/"]


def test_to_complete_makes_nothing_and_is_no_use_of_a_session(filled: Carrel, tmp_path: Path) -> None:
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    offered(filled, "files", "cat", "s1", "")
    filled("_complete", "--", "--sessions-dir", str(tmp_path / "none"), "files", "cat", "")
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_configuration_that_is_wrong_is_passed_over(filled: Carrel, tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text("x =")
    answer = filled(
        "_complete", "--", "tools", "--role", "", env={"CARREL_CONFIG": str(tmp_path / "wrong.toml")}
    )
    assert (answer.status, answer.out, answer.err) == (0, b"", "")


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["ses"], 30),
        (["files", "cat", ""], 30),
        (["files", "cat", "s1", ""], 70),
        (["tools", "--role", ""], 50),
    ],
    ids=["command", "session", "file", "role"],
)
def test_completion_stays_light(filled: Carrel, words: list[str], most: int) -> None:
    env = {**os.environ, "CARREL_SESSIONS_DIR": str(filled.sessions)}
    argv = [sys.executable, "-c", WEIGH, "_complete", "--", *words]
    done = subprocess.run(argv, capture_output=True, check=True, timeout=60, env=env)
    assert done.stdout
    modules = set(done.stderr.decode().split())
    assert not modules & HEAVY
    assert len([name for name in modules if name.startswith("carrel")]) < most + 20
    assert len(modules) < 180 + most


# What shells make of it


ROWS = [
    ("carrel sess", "session"),
    ("carrel files ca", "cat"),
    ("carrel files ls s1 --rec", "--recursive"),
    ("carrel files cat ot", "other"),
    ("carrel files cat s1 a", "a.txt"),
    ("carrel files cat s1 my", "my todo.txt"),
    ("carrel files cat s1 sub/b", "sub/b.txt"),
    ("carrel files cat s1 it", "it's=a:b$c"),
    ("carrel files put s1 local.", "local.txt"),
    ("carrel tool s1 file_wr", "file_write"),
    ("carrel tools --role dev", "developer"),
    ("carrel tools --role=dev", "--role=developer"),
    ("carrel sh s1 hea", "head"),
    ("carrel run s1 /workspace/a", "/workspace/a.txt"),
]
"""A line before the key for completion, and its last word afterwards."""


def require_shell(name: str) -> str:
    """Where the shell is; without it the test is skipped, and fails under CI."""
    found = shutil.which(name)
    return found or unavailable(f"needs {name}")


def environment(carrel: Carrel) -> dict[str, str]:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "PATH": programs,
        "CARREL_SESSIONS_DIR": str(carrel.sessions),
        "HOME": str(carrel.here),
        "INPUTRC": os.devnull,
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }


@contextmanager
def prompting(carrel: Carrel, *argv: str, setup: bytes) -> Iterator[Terminal]:
    """A shell at its prompt."""
    terminal = Terminal(list(argv), environment(carrel), carrel.here, columns=200)
    try:
        terminal.type(setup + b"; PS1='rea''dy> '\n")
        terminal.until(b"\n" + PROMPT)
        yield terminal
    finally:
        terminal.close()


def completed(terminal: Terminal, *keys: str) -> list[str]:
    """The words of the line that came of pressing *keys*, each followed by the key for completion."""
    terminal.type(TAB.join([*(each.encode() for each in keys), b""]) + CTRL_A + SHOW + b"\n")
    terminal.until(b"\n<")
    return terminal.until(PROMPT).decode().removesuffix(f">{PROMPT.decode()}").split("><")


SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], b'eval "$(carrel completion bash)"'),
    "zsh": (
        ["-f", "-i"],
        b"bindkey -e; unsetopt promptsp promptcr; autoload -Uz compinit; compinit -u -D;"
        b' eval "$(carrel completion zsh)"',
    ),
}


@pytest.mark.parametrize("name", SHELLS)
def test_bash_and_zsh_complete_what_is_typed(filled: Carrel, name: str) -> None:
    options, setup = SHELLS[name]
    with prompting(filled, require_shell(name), *options, setup=setup) as terminal:
        for line, expected in ROWS:
            *before, _ = line.split(" ")
            assert completed(terminal, line) == [*before, expected]
        # A directory is not the end of a word.
        assert completed(terminal, "carrel files cat s1 su", "d", "f")[-1] == "sub/deep/file"
        assert completed(terminal, "carrel files put s1 locale")[-1].rstrip("/") == "locale"
        # A quote that is open stays one.
        assert completed(terminal, "carrel files cat s1 'my")[-1] == "my todo.txt"
        assert completed(terminal, 'carrel files cat s1 "my')[-1] == "my todo.txt"


@pytest.mark.thorough
def test_fish_completes_what_is_typed(filled: Carrel) -> None:
    ask = "carrel completion fish | source; for line in $argv; complete -C $line; echo ==; end"
    lines = [line for line, _ in ROWS]
    done = subprocess.run(
        [require_shell("fish"), "--no-config", "-c", ask, *lines, "carrel files cat s1 sub/"],
        capture_output=True,
        text=True,
        cwd=filled.here,
        env=environment(filled),
        timeout=60,
        check=True,
    )
    *found, rest = done.stdout.split("==\n")
    assert done.stderr == ""
    assert rest == ""
    for (line, expected), answer in zip(ROWS, found, strict=False):
        assert [each.partition("\t")[0] for each in answer.splitlines()] == [expected], line
    assert found[-1].splitlines() == ["sub/b.txt", "sub/deep/"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_has_no_error_of_syntax(carrel: Carrel, name: str) -> None:
    script = carrel("completion", name).out
    subprocess.run([require_shell(name), "-n", "/dev/stdin"], input=script, check=True, timeout=60)


@pytest.mark.thorough
def test_zsh_finds_the_script_in_its_path_too(filled: Carrel) -> None:
    from importlib.resources import files

    scripts = str(files("carrel.fronts.cli.completion").joinpath("scripts"))
    setup = f"bindkey -e; unsetopt promptsp promptcr; fpath=({scripts} $fpath)"
    setup += "; autoload -Uz compinit; compinit -u -D"
    with prompting(filled, require_shell("zsh"), "-f", "-i", setup=setup.encode()) as terminal:
        assert completed(terminal, "carrel files cat s1 a") == ["carrel", "files", "cat", "s1", "a.txt"]
        assert completed(terminal, "carrel files cat s1 e")[-1] == "empty"
