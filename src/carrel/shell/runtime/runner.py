"""Run one command line to its end, in this process or wherever another `Runner` does."""

from __future__ import annotations

from typing import Protocol

from carrel.errors import ShellSyntaxError
from carrel.shell.budget import Meter, Stopped
from carrel.shell.command.context import ShellResources
from carrel.shell.language.parser import Pipeline, parse
from carrel.shell.result import ExitRequest, LineOutcome
from carrel.shell.runtime.execution import STATUS_USAGE, CommandStreams, LineExecution
from carrel.shell.state import ShellState


class Runner(Protocol):
    """Runs command lines."""

    def run(
        self,
        command: str,
        resources: ShellResources,
        state: ShellState,
        meter: Meter,
        streams: CommandStreams,
        *,
        pipelines: bool,
    ) -> LineOutcome:
        """Run *command* to its end, however it ends; what the shell remembers of it is put into *state*.

        Raises:
            ClosedError: The workspace was closed.
            SessionMissingError: Its session was deleted.
        """
        ...


class InProcessRunner:
    """Runs command lines in the thread that calls."""

    def run(
        self,
        command: str,
        resources: ShellResources,
        state: ShellState,
        meter: Meter,
        streams: CommandStreams,
        *,
        pipelines: bool,
    ) -> LineOutcome:
        try:
            line = parse_line(command, pipelines=pipelines)
            return _drained(LineOutcome(LineExecution(resources, state, meter).run(line, streams)), streams)
        except ShellSyntaxError as error:
            return LineOutcome(STATUS_USAGE, error.code, error.message)
        except ExitRequest as asked:
            return _drained(LineOutcome(asked.status, exits=True), streams)
        except Stopped as stopped:
            return _drained(LineOutcome.of(stopped), streams)


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


def _drained(ending: LineOutcome, streams: CommandStreams) -> LineOutcome:
    """*ending*, unless what was still to be printed is too much."""
    try:
        streams.stdout.drain()
        streams.stderr.drain()
    except Stopped as stopped:
        return LineOutcome.of(stopped)
    return ending
