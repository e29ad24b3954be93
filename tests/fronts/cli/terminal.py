"""A terminal for the programs under test."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

CTRL_C, CTRL_D, TAB, UP = b"\x03", b"\x04", b"\t", b"\x1b[A"
PROMPT = b"s1:/workspace$ "
"""Of `carrel sh s1`."""


class Terminal:
    """A terminal with a program in it."""

    def __init__(
        self,
        argv: Sequence[str | bytes],
        env: Mapping[str, str],
        cwd: Path,
        *,
        columns: int = 80,
        lines: int = 45,
    ) -> None:
        self.shown = b""
        """All that was read so far."""
        with warnings.catch_warnings():
            # Later Pythons do not like a fork where there are threads, though the child becomes a program.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid, self._fd = pty.fork()
        if self._pid == 0:
            termios.tcsetwinsize(0, (lines, columns))
            os.chdir(cwd)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(argv[0], tuple(argv), env)

    def type(self, data: bytes) -> None:
        """Press these keys."""
        os.write(self._fd, data)

    def send_signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        os.kill(self._pid, number)

    def until(self, text: bytes) -> bytes:
        """All that is shown up to *text*."""
        shown, end = b"", time.monotonic() + 60
        while not shown.endswith(text):
            assert self._is_shown(max(0.0, end - time.monotonic())), shown
            data = self._read()
            assert data, shown
            shown += data
        return shown

    def interrupt_line(self) -> None:
        """Press Ctrl-C while a line is typed, and again if Python misses it because it just read a key."""
        self.type(CTRL_C)
        while not self._is_shown(1):
            self.type(CTRL_C)

    def run(self, line: bytes, prompt: bytes = PROMPT) -> bytes:
        """What a line prints up to the next prompt."""
        self.type(line + b"\n")
        self.until(line + b"\r\n")
        return self.until(prompt).removesuffix(prompt)

    def rest(self) -> bytes:
        """All that is shown until the program ends."""
        shown = b""
        while data := self._read():
            shown += data
        return shown

    def status(self) -> int:
        """The exit status, when it has ended."""
        self.rest()
        pid, self._pid = self._pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def close(self) -> None:
        """Hang up."""
        os.close(self._fd)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _is_shown(self, seconds: float) -> bool:
        """Whether something comes within so many seconds; unlike `select`, whatever the descriptor is."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def _read(self) -> bytes:
        """What is shown next, a byte at a time so that nothing after is lost; nothing at the end."""
        try:
            data = os.read(self._fd, 1)
        except OSError:
            return b""
        self.shown += data
        return data
