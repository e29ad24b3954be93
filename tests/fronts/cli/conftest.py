"""The command line as a child process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from carrel.workspace.sessions import WorkspaceManager

Word = str | bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command line did."""

    status: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.decode().splitlines()

    @property
    def json(self) -> Any:  # Any: whatever JSON can say
        """The one document on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:  # Any: whatever JSON can say
        """The one error on standard error."""
        document = json.loads(self.err)
        assert list(document) == ["error"]
        error: dict[str, Any] = document["error"]
        assert list(error) == ["code", "message", "path"]
        return error


@dataclass(frozen=True, slots=True)
class Carrel:
    """`python -m carrel`, on a sessions directory of its own."""

    sessions: Path
    here: Path
    """Where it runs."""

    def argv(self, *words: Word) -> list[Word]:
        return [sys.executable, "-W", "error", "-m", "carrel", "--sessions-dir", str(self.sessions), *words]

    def __call__(self, *words: Word, stdin: bytes = b"", env: dict[str, str] | None = None) -> Answer:
        done = subprocess.run(
            self.argv(*words),
            input=stdin,
            capture_output=True,
            cwd=self.here,
            timeout=60,
            check=False,
            env={**os.environ, **(env or {})},
        )
        return Answer(done.returncode, done.stdout, done.stderr.decode())

    def start(self, *words: Word) -> subprocess.Popen[bytes]:
        """Start a command whose streams the test holds, and that hears signals even if the tests do not."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        hung_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            return subprocess.Popen(
                self.argv(*words),
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
