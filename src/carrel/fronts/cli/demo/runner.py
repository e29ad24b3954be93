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
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STOP_SECONDS = 10
"""Time that an interrupted command has to stop before it is killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """The output and exit status of a command."""

    text: str
    status: int


class DemoRunner:
    """Runs commands in a directory of their own, next to a sessions directory with a secret file."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        """Set up the empty *directory*.

        Raises:
            ConfigError: The configuration, which names the directory of the compiled guest, is invalid.
        """
        self._cwd = directory / "here"
        sessions = directory / "sessions"
        self._environ = _environ(environ, sessions)
        self._cwd.mkdir()
        sessions.mkdir()
        (sessions / "secret").write_text("not for a session\n", "utf-8")

    def write_file(self, name: str, text: str) -> None:
        """Write a file to the working directory of the commands."""
        (self._cwd / name).write_text(text, "utf-8")

    def run(self, line: str) -> CommandResult:
        """Run one command line that begins with `carrel`; stop it if we are interrupted."""
        _, *words = shlex.split(line)
        argv = [sys.executable, "-P", "-m", "carrel", *words]
        child = Popen(  # noqa: S603  # ourselves
            argv,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=self._cwd,
            env=self._environ,
            process_group=0,  # Ctrl-C reaches only us; _stop signals the child
        )
        with child:
            try:
                printed, _ = child.communicate()
            except BaseException:
                _stop(child)
                raise
        return CommandResult(text=printed.decode(errors="backslashreplace"), status=child.returncode)


def _environ(environ: Mapping[str, str], sessions: Path) -> dict[str, str]:
    """The environment without the user's settings, but with their compiled guest and packages.

    Always in UTF-8, which workspaces require.
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
    """Interrupt the child, and kill it if it does not stop."""
    child.send_signal(signal.SIGINT)
    try:
        child.wait(_STOP_SECONDS)
    except TimeoutExpired:
        child.kill()


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A temporary directory, removed afterwards even on Ctrl-C, hang-up or SIGTERM."""
    with _raise_first_signal() as ignore_signals:
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            yield directory
        finally:
            ignore_signals()
            shutil.rmtree(directory)


@contextmanager
def _raise_first_signal() -> Iterator[Callable[[], None]]:
    """Raise the first stop signal as an exception, and ignore later ones; yields a way to ignore all."""
    handled = [each for each in _STOP_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]

    def ignore_signals() -> None:
        for each in handled:
            signal.signal(each, signal.SIG_IGN)

    def stop(number: int, frame: FrameType | None) -> None:
        ignore_signals()
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    before = {each: signal.signal(each, stop) for each in handled}
    try:
        yield ignore_signals
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
