"""Run a command and say how it gets on; its own words are shown only if it fails.

python3 scripts/progress.py WHAT COMMAND...

On a terminal this is one line that moves, with the time and the last thing that the command said; elsewhere
it is a line now and then. It needs nothing but Python, since it is used before anything is installed.
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
"""How often a log hears that it goes on."""
MOVE_SECONDS = 0.2
CLEAR_LINE = "\r\x1b[K"
NO_TEXT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^ -~]")
NO_NEWS = ("WARNING", "[notice]", "Looking in ")


class Line:
    """What is said while the command runs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._moves = sys.stderr.isatty()
        self._began = time.monotonic()
        self._span = -1
        """Which of the spans of time the last line of a log was about."""

    def tell(self, news: str) -> None:
        """Say how long it takes by now, and the news."""
        seconds = int(time.monotonic() - self._began)
        text = f"{self._what}: {seconds} s" + (f", {news}" if news else "")
        if self._moves:
            # One column is left free: a line that fills a terminal may move on to the next.
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            self._write(f"{CLEAR_LINE}{text[: columns - 1]}")
        elif seconds // LINE_SECONDS > self._span:
            self._write(f"{text}\n")
            self._span = seconds // LINE_SECONDS

    def end(self, outcome: str) -> None:
        """Say what came of it."""
        self.clear()
        self._write(f"{self._what}: {outcome} {time.monotonic() - self._began:.0f} s\n")

    def clear(self) -> None:
        """Take away the line that moves."""
        if self._moves:
            self._write(CLEAR_LINE)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def main() -> int:
    """Run what the command line says; returns its exit status."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    what, *command = sys.argv[1:]
    line = Line(what)
    try:
        status, said = run(command, line)
    except OSError as error:
        line.clear()
        sys.exit(f"{what}: {error}")
    except KeyboardInterrupt:
        line.clear()
        # As the signal would have done, so that a shell does not go on with its next command.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
        raise
    if status == 0:
        line.end("done in")
        return 0
    line.clear()
    sys.stderr.write(said)
    line.end(f"failed with status {status} after")
    return status if status > 0 else 128 - status


def run(command: list[str], line: Line) -> tuple[int, str]:
    """Run *command* to its end; its status, and all that it said."""
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as source:
        with open(writing, "wb") as sink:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        with child:
            said = follow(source, line)
    return child.returncode, said.decode(errors="replace")


def follow(source: FileIO, line: Line) -> bytes:
    """Tell what comes from *source* up to its end; all of it."""
    said = b""
    while True:
        line.tell(news(said))
        if select.select([source], [], [], MOVE_SECONDS)[0]:
            if not (data := source.read(2**16)):
                return said
            said += data


def news(said: bytes) -> str:
    """The last thing said, without what nobody needs to know while all is well."""
    whole, _, _ = said[-4096:].rpartition(b"\n")
    for text in reversed(whole.decode(errors="replace").splitlines()):
        plain = NO_TEXT.sub("", text).strip()
        if plain and not plain.startswith(NO_NEWS):
            return plain
    return ""


sys.exit(main())
