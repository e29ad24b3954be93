"""Compile the guest and report the progress, as a bar on a terminal and as lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from carrel.fronts.cli.output import terminal_columns

if TYPE_CHECKING:
    from carrel.runtimes.wasm.build.compiled import CompiledGuest, CompileOutcome, OnProgress, Progress

LINE_SECONDS = 10
"""How often a log hears that it goes on."""
BAR_CHARACTERS = 30
MIN_BAR_CHARACTERS = 5
"""A shorter bar shows nothing."""
CLEAR_LINE = "\r\x1b[K"


def compile_with_progress(
    guest: CompiledGuest, stream: TextIO, *, metered: bool = False, quiet: bool = False
) -> CompileOutcome:
    """Compile *guest* unless it is there, and say on *stream* how far it is.

    Raises:
        CarrelError: It cannot be made.
    """
    teller = CompileProgress("guest with fuel" if metered else "guest", stream, quiet=quiet)
    with teller.telling() as tell:
        made = guest.make(metered=metered, on_progress=tell)
    teller.end(made)
    return made


class CompileProgress:
    """Says how far it is: in one line that moves on a terminal, in a line now and then elsewhere."""

    def __init__(self, what: str, stream: TextIO, *, quiet: bool = False) -> None:
        self._what = what
        self._stream = stream
        self._quiet = quiet
        self._moves = stream.isatty()
        self._said: tuple[bool, int] | None = None
        """What the last line was about: whether we waited, and which of the spans of time it was."""

    @contextmanager
    def telling(self) -> Iterator[OnProgress]:
        """What to call with the progress; the line that moves is gone afterwards."""
        try:
            yield self._tell
        finally:
            if self._moves and self._said is not None:
                self._write(CLEAR_LINE)

    def _tell(self, progress: Progress) -> None:
        now = (progress.waiting, int(progress.elapsed_seconds) // LINE_SECONDS)
        if self._moves:
            # One column is left free: a line that fills a terminal may move on to the next.
            self._write(f"{CLEAR_LINE}{_line(self._what, progress, terminal_columns(self._stream) - 1)}")
        elif now != self._said:
            self._write(f"{_words(self._what, progress)}\n")
        self._said = now

    def end(self, made: CompileOutcome) -> None:
        """Say what came of it."""
        if made.compiled:
            self._write(f"{self._what}: compiled in {made.seconds:.0f} s\n")
        else:
            self._write(f"{self._what}: {'ready' if self._said else 'already there'}\n")

    def _write(self, text: str) -> None:
        if not self._quiet:
            self._stream.write(text)
            self._stream.flush()


def _line(what: str, progress: Progress, columns: int) -> str:
    """A bar with words, or the words alone where there is no room or no end in sight."""
    start, end = f"{what}: compiling [", f"] {_times(progress)}"
    length = min(BAR_CHARACTERS, columns - len(start) - len(end))
    if progress.waiting or length < MIN_BAR_CHARACTERS:
        return _words(what, progress)[: max(columns, 0)]
    # It never looks finished before it is.
    share = min(progress.elapsed_seconds / progress.expected_seconds, 0.99)
    bar = "#" * int(share * length)
    return f"{start}{bar:-<{length}}{end}"


def _words(what: str, progress: Progress) -> str:
    if progress.waiting:
        return f"{what}: waiting for another program that compiles it, {progress.elapsed_seconds:.0f} s"
    return f"{what}: compiling, {_times(progress)}"


def _times(progress: Progress) -> str:
    return f"{progress.elapsed_seconds:.0f} s of about {progress.expected_seconds:.0f} s"
