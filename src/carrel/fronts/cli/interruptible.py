"""Run a command line so that Ctrl-C stops it, and nothing else."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from carrel.shell.result import ShellResult
    from carrel.shell.shell import BareShell

_CHUNK_BYTES = 2**16
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 10.0
"""How long a command that was told to stop may take before it is left behind."""


class Unstoppable(KeyboardInterrupt):
    """A command was told to stop and does not."""


def run(shell: BareShell, line: str, on_output: Callable[[str, bytes], None] | None) -> ShellResult:
    """Run *line* in a thread, on the standard input of this process, and stop it when Ctrl-C is typed.

    Raises:
        Unstoppable: It was told to stop and does not.
    """
    work = _Work(shell, line, on_output)
    thread = Thread(target=work.run, name="carrel-sh", daemon=True)
    try:
        _start(thread)
        # A signal that another thread of ours was given does not end a wait.
        while not work.done.wait(_LOOK_SECONDS):
            pass
    except KeyboardInterrupt:
        if thread.ident is None:
            raise
        if sys.stderr.isatty():
            # The terminal shows ^C without ending the line.
            click.echo(err=True)
        if not _stop(shell, work.done):
            raise Unstoppable from None
    return work.result()


def _start(thread: Thread) -> None:
    """Start *thread*, or not at all if Ctrl-C was typed before."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        # This raises for a signal that came just before, but has blocked later ones by then.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(shell: BareShell, done: Event) -> bool:
    """Stop what runs, also if it is only about to begin; whether it is done."""
    for _ in range(round(_PATIENCE_SECONDS / _LOOK_SECONDS)):
        shell.cancel()
        if done.wait(_LOOK_SECONDS):
            return True
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
