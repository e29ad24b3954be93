"""Compile the guest and report the progress, as a bar on a terminal and as lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from carrel.fronts.cli.output import terminal_columns

if TYPE_CHECKING:
    from carrel.runtimes.wasm.build.compiled import CompiledGuest, CompileOutcome, OnProgress, Progress

LINE_SECONDS = 10
"""Interval between progress lines when the stream is not a terminal."""
BAR_CHARACTERS = 30
MIN_BAR_CHARACTERS = 5
"""Below this width, text replaces the bar."""
CLEAR_LINE = "\r\x1b[K"


def compile_with_progress(
    guest: CompiledGuest, stream: TextIO, *, metered: bool = False, quiet: bool = False
) -> CompileOutcome:
    """Compile *guest* unless it is compiled already, and report the progress on *stream*.

    Raises:
        CarrelError: Compiling fails.
    """
    progress = CompileProgress("guest with fuel" if metered else "guest", stream, quiet=quiet)
    with progress.reporting() as report:
        outcome = guest.make(metered=metered, on_progress=report)
    progress.end(outcome)
    return outcome


class CompileProgress:
    """Reports progress: as a bar redrawn in place on a terminal, as a line every few seconds elsewhere."""

    def __init__(self, name: str, stream: TextIO, *, quiet: bool = False) -> None:
        self._name = name
        self._stream = stream
        self._quiet = quiet
        self._is_terminal = stream.isatty()
        self._last_report: tuple[bool, int] | None = None
        """State of the last line: whether we were waiting, and the number of its interval."""

    @contextmanager
    def reporting(self) -> Iterator[OnProgress]:
        """Yield the callback for progress; clear the bar afterwards."""
        try:
            yield self._report
        finally:
            if self._is_terminal and self._last_report is not None:
                self._write(CLEAR_LINE)

    def _report(self, progress: Progress) -> None:
        report = (progress.waiting, int(progress.elapsed_seconds) // LINE_SECONDS)
        if self._is_terminal:
            # One column stays free: a line that fills a terminal may wrap.
            self._write(f"{CLEAR_LINE}{_bar(self._name, progress, terminal_columns(self._stream) - 1)}")
        elif report != self._last_report:
            self._write(f"{_text(self._name, progress)}\n")
        self._last_report = report

    def end(self, outcome: CompileOutcome) -> None:
        """Print the outcome."""
        if outcome.compiled:
            self._write(f"{self._name}: compiled in {outcome.seconds:.0f} s\n")
        else:
            self._write(f"{self._name}: {'ready' if self._last_report else 'already compiled'}\n")

    def _write(self, text: str) -> None:
        if not self._quiet:
            self._stream.write(text)
            self._stream.flush()


def _bar(name: str, progress: Progress, columns: int) -> str:
    """A progress bar; text alone while waiting, or where a bar does not fit."""
    start, end = f"{name}: compiling [", f"] {_times(progress)}"
    length = min(BAR_CHARACTERS, columns - len(start) - len(end))
    if progress.waiting or length < MIN_BAR_CHARACTERS:
        return _text(name, progress)[: max(columns, 0)]
    # The bar is never full before compiling has ended.
    share = min(progress.elapsed_seconds / progress.expected_seconds, 0.99)
    bar = "#" * int(share * length)
    return f"{start}{bar:-<{length}}{end}"


def _text(name: str, progress: Progress) -> str:
    if progress.waiting:
        return f"{name}: waiting for another process to compile it, {progress.elapsed_seconds:.0f} s"
    return f"{name}: compiling, {_times(progress)}"


def _times(progress: Progress) -> str:
    return f"{progress.elapsed_seconds:.0f} s of about {progress.expected_seconds:.0f} s"
