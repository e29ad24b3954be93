"""A terminal of a given size with a program in it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

CTRL_C = b"\x03"
OPENING = 'exec "$@" <"$0" >"$0" 2>&1'
"""Whoever leads a session and opens a terminal has it from then on, with its Ctrl-C."""
_PATIENCE_SECONDS = 60


class Terminal:
    """Runs a program and keeps all that it shows."""

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
        self._controller, device = pty.openpty()
        fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        opened = ["sh", "-c", OPENING, os.ttyname(device), *argv]
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also if the tests do not hear it
        try:
            self._child = subprocess.Popen(
                opened, env=env, cwd=cwd, stdin=device, stdout=device, stderr=device, start_new_session=True
            )
        finally:
            signal.signal(signal.SIGINT, before)
            os.close(device)

    def type(self, data: bytes) -> None:
        """Press these keys."""
        os.write(self._controller, data)

    def until(self, text: bytes) -> None:
        """Read on until *text* was shown."""
        while text not in self.shown:
            assert self._read(), self.shown

    def status(self) -> int:
        """The exit status, when it has ended."""
        while self._read():
            pass
        os.close(self._controller)
        return self._child.wait(_PATIENCE_SECONDS)

    def _read(self) -> bytes:
        assert select.select([self._controller], [], [], _PATIENCE_SECONDS)[0], self.shown
        try:
            data = os.read(self._controller, 2**16)
        except OSError:  # what Linux says when nobody has the other end any more
            return b""
        self.shown += data
        return data
