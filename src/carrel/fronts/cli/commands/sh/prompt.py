"""The prompt of `carrel sh`: history, completion, and Ctrl-C for the running command."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.fronts.cli.commands.sh.interrupts import (
    Unstoppable,
    collected_interrupts,
    raised_interrupts,
    run_interruptible,
)
from carrel.fronts.cli.output import display, print_output
from carrel.shell.budget import STATUS_CANCELLED
from carrel.shell.runtime.completion import DELIMITERS, complete

if TYPE_CHECKING:
    from carrel.sandbox.shell import Shell

_HISTORY_LINES = 1_000


class Prompt:
    """Reads command lines from the terminal or a pipe and runs them until the input ends."""

    def __init__(self, shell: Shell, name: str) -> None:
        """Read commands for *shell*; the prompt shows *name*."""
        self._shell = shell
        self._name = name
        self._readline = _readline()
        self._candidates: list[str] = []
        self._interrupts: list[int] = []

    def run(self) -> int:
        """Run commands until `exit` or the end of input; return the status of the last one."""
        self._prepare()
        status = 0
        try:
            ended = False
            with collected_interrupts() as self._interrupts:
                while not ended:
                    status, ended = self._next(status)
        finally:
            self._save_history()
        return status

    def _next(self, status: int) -> tuple[int, bool]:
        """Read and run one line; *status* is that of the previous one.

        Returns:
            The new status, and whether the prompt ends.
        """
        self._interrupts.clear()
        try:
            line = self._read(status)
            if line is None:
                return status, True
            return self._run(line) if line.strip() else (status, False)
        except Unstoppable:
            raise
        except KeyboardInterrupt:
            if not sys.stdin.isatty():
                raise
            click.echo()
            return STATUS_CANCELLED, False

    def _read(self, status: int) -> str | None:
        """Read the next line; return `None` at the end of input."""
        if not sys.stdin.isatty():
            with raised_interrupts():
                return _line()
        mark = f"[{status}] " if status else ""
        prompt = f"{mark}{self._name}:{display(self._shell.cwd)}$ "
        try:
            with raised_interrupts():
                return input(prompt)
        except EOFError:
            click.echo()
            return None

    def _run(self, line: str) -> tuple[int, bool]:
        try:
            result = run_interruptible(self._shell, line, print_output, self._interrupts)
        except (ClosedError, SessionMissingError):
            raise
        except CarrelError as error:
            click.echo(f"carrel: {error.message}", err=True)
            return 1, False
        return result.exit_code, result.ended

    # History and completion, on a terminal

    def _prepare(self) -> None:
        if not sys.stdin.isatty():
            return
        # A line may hold any bytes, as file names may.
        sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]  # a console's stream
        readline = self._readline
        if readline is None:
            return
        readline.set_completer_delims(DELIMITERS)
        readline.set_completer(self._complete)
        readline.parse_and_bind("tab: complete")
        readline.set_history_length(_HISTORY_LINES)
        with suppress(OSError, RuntimeError):
            readline.read_history_file(_history())

    def _complete(self, word: str, number: int) -> str | None:
        readline = self._readline
        if readline is None:
            return None
        if number == 0:
            before = readline.get_line_buffer()[: readline.get_begidx()]
            self._candidates = complete(self._shell, before, word)
        return self._candidates[number] if number < len(self._candidates) else None

    def _save_history(self) -> None:
        if self._readline is None or not sys.stdin.isatty():
            return
        with suppress(OSError, RuntimeError):
            path = _history()
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._readline.write_history_file(path)


def _line() -> str | None:
    """Read the next line of a script, unbuffered: the rest of the input is for the command."""
    line = bytearray()
    while (byte := os.read(sys.stdin.fileno(), 1)) not in (b"", b"\n"):
        line += byte
    return os.fsdecode(bytes(line)) if line or byte else None


def _history() -> Path:
    """Path of the history file.

    Raises:
        RuntimeError: There is no home directory.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path("~/.local/state").expanduser()
    return base / "carrel" / "history"


def _readline() -> ModuleType | None:
    """The `readline` module, or `None` in a Python built without it."""
    try:
        import readline
    except ImportError:
        return None
    return readline
