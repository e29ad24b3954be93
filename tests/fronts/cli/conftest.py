"""The command line: in this process, in one of its own, and on a terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from carrel.sessions.manager import WorkspaceManager
from tests.command_line import INTERRUPTIBLE_PROGRAM, PROGRAM, Answer, Word, execute, on_terminal, process


@dataclass(frozen=True, slots=True)
class Carrel:
    """`carrel`, on a sessions directory of its own."""

    sessions: Path
    here: Path
    """Where it runs."""

    def words(self, *words: Word) -> tuple[Word, ...]:
        return ("--sessions-dir", str(self.sessions), *words)

    def argv(self, *words: Word) -> list[Word]:
        return [*PROGRAM, *self.words(*words)]

    def __call__(self, *words: Word, stdin: bytes = b"", env: dict[str, str] | None = None) -> Answer:
        """Run a command in this process."""
        environ = {**os.environ, **(env or {})}
        return execute(*self.words(*words), stdin=stdin, environ=environ, cwd=self.here)

    def process(self, *words: Word, env: dict[str, str] | None = None) -> Answer:
        """Run a command in a process of its own."""
        return process(*self.words(*words), environ={**os.environ, **(env or {})}, cwd=self.here)

    def shown(self, *words: Word, environ: Mapping[str, str]) -> bytes:
        """Run a command in this process, on a terminal; what that shows."""
        return on_terminal(*self.words(*words), environ=environ, cwd=self.here)[1]

    def start(self, *words: Word) -> subprocess.Popen[bytes]:
        """Start a command whose streams the test holds, and that hears signals even if the tests do not."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        hung_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            return subprocess.Popen(
                [*INTERRUPTIBLE_PROGRAM, *self.words(*words)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.here,
            )
        finally:
            signal.signal(signal.SIGINT, before)
            signal.signal(signal.SIGHUP, hung_up)

    def workspace(self, session: str) -> Path:
        """Where the files of a session lie on the host."""
        return self.sessions / session

    @property
    def drafts(self) -> list[str]:
        """Unfinished files that were left behind."""
        return [path.name for path in self.sessions.glob(".carrel/sessions/*/.carrel-draft-*")]


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """Fail where a command goes on after its end; the threads of awaited calls stay for the next one."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("carrel-call"):
            thread.join(60)
            assert not thread.is_alive(), f"{thread} goes on"


@pytest.fixture
def carrel(tmp_path: Path) -> Carrel:
    here = tmp_path / "here"
    here.mkdir()
    return Carrel(tmp_path / "sessions", here)


@pytest.fixture
def session(carrel: Carrel) -> str:
    """A session with `a.txt`, `sub/b.txt` and an empty file."""
    with WorkspaceManager(carrel.sessions).create("s1") as workspace:
        workspace.write("a.txt", b"one\ntwo\nthree\n")
        workspace.write("sub/b.txt", b"b")
        workspace.write("empty", b"")
    return "s1"
