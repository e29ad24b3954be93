"""Run a command and report its progress; its output is shown only if it fails.

python3 scripts/progress.py NAME COMMAND...

On a terminal this is one line, redrawn with the elapsed time and the last line of output; elsewhere it is a
line every few seconds. It needs nothing but Python, since it runs before anything is installed.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from io import FileIO

LINE_SECONDS = 10
"""Interval between progress lines when standard error is not a terminal."""
REDRAW_SECONDS = 0.2
CLEAR_LINE = "\r\x1b[K"
NO_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^ -~]")
IGNORED = ("WARNING", "[notice]", "Looking in ")
"""Prefixes of output lines that are not shown as progress."""


class ProgressLine:
    """Prints the progress while the command runs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._last_interval = -1
        """Number of the interval of the last line printed to a log."""

    def update(self, output: str) -> None:
        """Print the elapsed time and the last line of output."""
        seconds = int(time.monotonic() - self._started)
        text = f"{self._name}: {seconds} s" + (f", {output}" if output else "")
        if self._is_terminal:
            # One column stays free: a line that fills a terminal may wrap.
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            self._write(f"{CLEAR_LINE}{text[: columns - 1]}")
        elif seconds // LINE_SECONDS > self._last_interval:
            self._write(f"{text}\n")
            self._last_interval = seconds // LINE_SECONDS

    def end(self, outcome: str) -> None:
        """Print the outcome."""
        self.clear()
        self._write(f"{self._name}: {outcome} {time.monotonic() - self._started:.0f} s\n")

    def clear(self) -> None:
        """Clear the line on a terminal."""
        if self._is_terminal:
            self._write(CLEAR_LINE)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def main() -> int:
    """Run the command of the command line; return its exit status."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    name, *command = sys.argv[1:]
    line = ProgressLine(name)
    try:
        status, output = run(command, line)
    except OSError as error:
        line.clear()
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        line.clear()
        # End by the signal itself, so that a shell does not continue with its next command.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        raise
    if status == 0:
        line.end("done in")
        return 0
    line.clear()
    sys.stderr.write(output)
    line.end(f"failed with status {status} after")
    return status if status > 0 else 128 - status


def run(command: list[str], line: ProgressLine) -> tuple[int, str]:
    """Run *command*; return its status and its output."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as source:
        with open(writing, "wb") as sink:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        with child:
            output = follow(source, line)
    return child.returncode, output.decode(errors="replace")


def follow(source: FileIO, line: ProgressLine) -> bytes:
    """Read *source* to its end, reporting the progress; return all output."""
    output = b""
    while True:
        line.update(last_line(output))
        if select.select([source], [], [], REDRAW_SECONDS)[0]:
            if not (data := source.read(2**16)):
                return output
            output += data


def last_line(output: bytes) -> str:
    """The last complete line of output that is worth showing."""
    complete, _, _ = output[-4096:].rpartition(b"\n")
    for text in reversed(complete.decode(errors="replace").splitlines()):
        plain = NO_TEXT.sub("", text).strip()
        if plain and not plain.startswith(IGNORED):
            return plain
    return ""


sys.exit(main())
