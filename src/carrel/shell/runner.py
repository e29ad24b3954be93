"""Runs one command line to its end: in this process, or wherever another `Runner` does."""

from __future__ import annotations

from typing import Protocol

from carrel.errors import ShellSyntaxError
from carrel.shell.budget import Meter, Stopped
from carrel.shell.context import Shared, State
from carrel.shell.ending import Ending, ExitAsked
from carrel.shell.execution import USAGE, Execution, Streams
from carrel.shell.parser import Pipeline, parse


class Runner(Protocol):
    """Runs command lines."""

    def run(
        self, command: str, shared: Shared, state: State, meter: Meter, streams: Streams, *, pipelines: bool
    ) -> Ending:
        """Run *command* to its end, however it ends; what the shell remembers of it is put into *state*.

        Raises:
            ClosedError: The workspace was closed.
            SessionMissingError: Its session was deleted.
        """
        ...


class InProcess:
    """Runs command lines in the thread that calls."""

    def run(
        self, command: str, shared: Shared, state: State, meter: Meter, streams: Streams, *, pipelines: bool
    ) -> Ending:
        try:
            line = parse_line(command, pipelines=pipelines)
            return _drained(Ending(Execution(shared, state, meter).run(line, streams)), streams)
        except ShellSyntaxError as error:
            return Ending(USAGE, error.code, error.message)
        except ExitAsked as asked:
            return _drained(Ending(asked.status, leaves=True), streams)
        except Stopped as stopped:
            return _drained(Ending.of(stopped), streams)


def parse_line(command: str, *, pipelines: bool) -> list[Pipeline]:
    """What *command* asks for.

    Raises:
        ShellSyntaxError: It cannot be read, or holds nothing.
    """
    if not isinstance(command, str):
        raise TypeError(f"a command must be str, not {type(command).__name__}")
    if not command.strip():
        raise ShellSyntaxError("Empty command")
    return parse(command, pipelines=pipelines)


def _drained(ending: Ending, streams: Streams) -> Ending:
    """*ending*, unless what was still to be printed is too much."""
    try:
        streams.stdout.drain()
        streams.stderr.drain()
    except Stopped as stopped:
        return Ending.of(stopped)
    return ending
