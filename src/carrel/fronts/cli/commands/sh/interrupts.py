"""Run a command line in a thread so that Ctrl-C stops the command only."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from carrel.shell.result import ShellResult
    from carrel.shell.runtime.shell import BareShell

_CHUNK_BYTES = 2**16
_POLL_SECONDS = 0.2
_STOP_SECONDS = 10.0
"""Time that a cancelled command has to stop before it is abandoned."""


class Unstoppable(KeyboardInterrupt):
    """A cancelled command did not stop in time."""


@contextmanager
def collected_interrupts() -> Iterator[list[int]]:
    """Collect SIGINT in a list unless it is ignored; raised in a weakref callback it would be lost."""
    interrupts: list[int] = []
    with _handler(lambda number, _frame: interrupts.append(number)):
        yield interrupts


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on SIGINT unless it is ignored."""
    with _handler(signal.default_int_handler):
        yield


@contextmanager
def _handler(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        try:
            signal.signal(signal.SIGINT, before)
        except KeyboardInterrupt:  # raised before the handler was restored
            signal.signal(signal.SIGINT, before)
            raise


def run_interruptible(
    shell: BareShell,
    line: str,
    on_output: Callable[[str, bytes], None] | None,
    interrupts: list[int],
) -> ShellResult:
    """Run *line* in a thread, with our standard input, and cancel it on the first of *interrupts*.

    Raises:
        Unstoppable: The command was cancelled and did not stop in time.
        KeyboardInterrupt: Another interrupt arrived before the command had stopped.
    """
    run = _ThreadRun(shell, line, on_output)
    Thread(target=run.run, name="carrel-sh", daemon=True).start()
    while not run.done.wait(_POLL_SECONDS) and not interrupts:
        pass
    if interrupts:
        interrupts.clear()
        if sys.stderr.isatty():
            # The terminal prints ^C without a newline.
            click.echo(err=True)
        if not _stop(shell, run.done, interrupts):
            raise Unstoppable
    return run.result()


def _stop(shell: BareShell, done: Event, interrupts: list[int]) -> bool:
    """Cancel the command, repeatedly since it may not have begun yet; return whether it has stopped.

    Raises:
        KeyboardInterrupt: Another interrupt arrived first.
    """
    for _ in range(round(_STOP_SECONDS / _POLL_SECONDS)):
        shell.cancel()
        if done.wait(_POLL_SECONDS):
            return True
        if interrupts:
            raise KeyboardInterrupt
    return False


class _ThreadRun:
    """One command line and its result, run in a thread."""

    def __init__(self, shell: BareShell, line: str, on_output: Callable[[str, bytes], None] | None) -> None:
        self.done = Event()
        self._shell = shell
        self._line = line
        self._on_output = on_output
        self._result: ShellResult | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the command line and store its result or error."""
        try:
            self._result = self._shell.run(self._line, stdin=_stdin(), on_output=self._on_output)
        except BaseException as error:  # raised again in the waiting thread
            self._error = error
        finally:
            self.done.set()

    def result(self) -> ShellResult:
        """Return the result, or raise the error of the run."""
        if self._error is not None:
            raise self._error
        assert self._result is not None  # noqa: S101  # it has one or the other
        return self._result


def _stdin() -> Iterator[bytes]:
    """Read standard input on demand; yields empty chunks while no input is available."""
    fd = sys.stdin.fileno()
    while True:
        if not select.select([fd], [], [], _POLL_SECONDS)[0]:
            yield b""
        elif data := os.read(fd, _CHUNK_BYTES):
            yield data
        else:
            return
