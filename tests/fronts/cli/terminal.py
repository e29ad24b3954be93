"""A terminal of a given size with a program in it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from pathlib import Path

CTRL_C = b"\x03"
_PATIENCE_SECONDS = 60


class Terminal:
    """Runs a program and keeps all that it shows."""

    def __init__(
        self,
        argv: list[str | bytes],
        env: Mapping[str, str],
        cwd: Path,
        *,
        columns: int = 80,
        lines: int = 45,
    ) -> None:
        self.shown = b""
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.chdir(cwd)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execve(argv[0], argv, env)

    def type(self, data: bytes) -> None:
        """Press these keys."""
        os.write(self._fd, data)

    def until(self, text: bytes) -> None:
        """Read on until *text* was shown."""
        while text not in self.shown:
            assert self._read(), self.shown

    def status(self) -> int:
        """The exit status, when it has ended."""
        while self._read():
            pass
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self) -> bytes:
        end = time.monotonic() + _PATIENCE_SECONDS
        assert select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0], self.shown
        try:
            data = os.read(self._fd, 2**16)
        except OSError:  # what Linux says when nobody has the other end any more
            return b""
        self.shown += data
        return data
