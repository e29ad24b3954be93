"""Runs the commands of `carrel demo` as child processes in a temporary directory."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired
from types import FrameType

from carrel.config.load import load
from carrel.config.table import CONFIG_VARIABLE, KEYS

PREFIX = "carrel-demo-"
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE_SECONDS = 10
"""How long a command that was told to stop may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswer:
    """What a command printed, and how it ended."""

    text: str
    status: int


class DemoRunner:
    """A directory with sessions and a file beside them, and a place to run commands in."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        """Furnish the empty *directory*.

        Raises:
            ConfigError: The configuration, which says where the compiled guest is, cannot be used.
        """
        self._here = directory / "here"
        sessions = directory / "sessions"
        self._environ = _environ(environ, sessions)
        self._here.mkdir()
        sessions.mkdir()
        (sessions / "secret").write_text("not for a session\n", "utf-8")

    def put(self, name: str, text: str) -> None:
        """Have a file where commands are run."""
        (self._here / name).write_text(text, "utf-8")

    def ask(self, line: str) -> CommandAnswer:
        """Run one command line that begins with `carrel`; if we are stopped, so is it."""
        _, *words = shlex.split(line)
        argv = [sys.executable, "-P", "-m", "carrel", *words]
        child = Popen(  # noqa: S603  # ourselves
            argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=self._here,
            env=self._environ,
            process_group=0,  # Ctrl-C is for us; we tell the child
        )
        with child:
            try:
                printed, _ = child.communicate()
            except BaseException:
                _stop(child)
                raise
        return CommandAnswer(text=printed.decode(errors="backslashreplace"), status=child.returncode)


def _environ(environ: Mapping[str, str], sessions: Path) -> dict[str, str]:
    """Without the settings of whoever looks on, but with their compiled guest and their packages.

    And in UTF-8, without which there are no workspaces, whatever their terminal shows.
    """
    hidden = {name for key in KEYS for name in key.variables}
    changed = {name: value for name, value in environ.items() if name not in hidden}
    changed[CONFIG_VARIABLE] = os.devnull
    changed["CARREL_SESSIONS_DIR"] = str(sessions)
    if (cache := load(environ).python.cache) is not None:
        changed["CARREL_CACHE"] = str(cache)
    changed["PYTHONUTF8"] = "1"
    changed["PYTHONPATH"] = os.pathsep.join(os.path.abspath(each) for each in sys.path)
    return changed


def _stop(child: Popen[bytes]) -> None:
    """Let it clean up, and end it if it does not."""
    child.send_signal(signal.SIGINT)
    try:
        child.wait(_PATIENCE_SECONDS)
    except TimeoutExpired:
        child.kill()


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A directory that is gone afterwards, also if Ctrl-C, a hang-up or `kill` ends what is done in it."""
    with _ended_once() as hold:
        made = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            yield made
        finally:
            hold()
            shutil.rmtree(made)


@contextmanager
def _ended_once() -> Iterator[Callable[[], None]]:
    """Let the first signal that ends us be an exception; after it, or what is yielded, none disturbs."""
    heard = [each for each in _ENDINGS if signal.getsignal(each) is not signal.SIG_IGN]

    def hold() -> None:
        for each in heard:
            signal.signal(each, signal.SIG_IGN)

    def end(number: int, frame: FrameType | None) -> None:
        hold()
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in heard}
    try:
        yield hold
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
