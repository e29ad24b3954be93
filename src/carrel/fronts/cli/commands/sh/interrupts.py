"""Run a command line in a thread so that Ctrl-C stops the command, and nothing else."""

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
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 10.0
"""How long a command that was told to stop may take before it is left behind."""


class Unstoppable(KeyboardInterrupt):
    """A command was told to stop and does not."""


@contextmanager
def collected_interrupts() -> Iterator[list[int]]:
    """Collect SIGINT unless it is ignored; a `KeyboardInterrupt` in a weakref callback would be lost."""
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
        except KeyboardInterrupt:  # one came just before, and nothing was set
            signal.signal(signal.SIGINT, before)
            raise


def run_interruptible(
    shell: BareShell,
    line: str,
    on_output: Callable[[str, bytes], None] | None,
    interrupts: list[int],
) -> ShellResult:
    """Run *line* in a thread, on the standard input of this process, and stop it on one of *interrupts*.

    Raises:
        Unstoppable: It was cancelled and goes on.
        KeyboardInterrupt: Another interrupt came before it had ended.
    """
    work = _Work(shell, line, on_output)
    Thread(target=work.run, name="carrel-sh", daemon=True).start()
    while not work.done.wait(_LOOK_SECONDS) and not interrupts:
        pass
    if interrupts:
        interrupts.clear()
        if sys.stderr.isatty():
            # The terminal shows ^C without ending the line.
            click.echo(err=True)
        if not _stop(shell, work.done, interrupts):
            raise Unstoppable
    return work.result()


def _stop(shell: BareShell, done: Event, interrupts: list[int]) -> bool:
    """Stop what runs, also if it is only about to begin; whether it is done.

    Raises:
        KeyboardInterrupt: Another of *interrupts* came first.
    """
    for _ in range(round(_PATIENCE_SECONDS / _LOOK_SECONDS)):
        shell.cancel()
        if done.wait(_LOOK_SECONDS):
            return True
        if interrupts:
            raise KeyboardInterrupt
    return False


class _Work:
    """One command line in its thread."""

    def __init__(self, shell: BareShell, line: str, on_output: Callable[[str, bytes], None] | None) -> None:
        self.done = Event()
        self._shell = shell
        self._line = line
        self._on_output = on_output
        self._result: ShellResult | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run it to its end, and keep what becomes of it."""
        try:
            self._result = self._shell.run(self._line, stdin=_stdin(), on_output=self._on_output)
        except BaseException as error:  # raised again in the thread that waits
            self._error = error
        finally:
            self.done.set()

    def result(self) -> ShellResult:
        """What it did, or the error that it ended with."""
        if self._error is not None:
            raise self._error
        assert self._result is not None  # noqa: S101  # it has one or the other
        return self._result


def _stdin() -> Iterator[bytes]:
    """Standard input as it comes, read only when the command wants it; empty pieces while there is none."""
    fd = sys.stdin.fileno()
    while True:
        if not select.select([fd], [], [], _LOOK_SECONDS)[0]:
            yield b""
        elif data := os.read(fd, _CHUNK_BYTES):
            yield data
        else:
            return
