"""Run one command line to completion, in this process or wherever another `Runner` does."""

from __future__ import annotations

from typing import Protocol

from carrel.errors import ShellSyntaxError
from carrel.shell.budget import Meter, Stopped
from carrel.shell.command.context import ShellResources
from carrel.shell.language.ast import Pipeline
from carrel.shell.language.parser import parse
from carrel.shell.result import ExitRequest, LineOutcome
from carrel.shell.runtime.execution import STATUS_USAGE, LineExecution
from carrel.shell.state import ShellState
from carrel.shell.streams import CommandStreams


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
        """Run *command* to completion and update *state*; every way it can end is an outcome.

        Raises:
            ClosedError: The workspace was closed.
            SessionMissingError: Its session was deleted.
        """
        ...


class InProcessRunner:
    """Runs command lines in the calling thread."""

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
            outcome = LineOutcome(LineExecution(resources, state, meter).run(line, streams))
        except ShellSyntaxError as error:
            return LineOutcome(STATUS_USAGE, error.code, error.message)
        except ExitRequest as request:
            outcome = LineOutcome(request.status, exits=True)
        except Stopped as stopped:
            outcome = LineOutcome.of(stopped)
        return _drain(streams, outcome)


def parse_line(command: str, *, pipelines: bool) -> list[Pipeline]:
    """Parse *command*, which must not be empty.

    Raises:
        ShellSyntaxError: The command is empty or cannot be parsed.
    """
    if not isinstance(command, str):
        raise TypeError(f"a command must be str, not {type(command).__name__}")
    if not command.strip():
        raise ShellSyntaxError("Empty command")
    return parse(command, pipelines=pipelines)


def _drain(streams: CommandStreams, outcome: LineOutcome) -> LineOutcome:
    """Write what is still buffered, and return *outcome*, or another if that exceeds the output limit."""
    try:
        streams.stdout.drain()
        streams.stderr.drain()
    except Stopped as stopped:
        return LineOutcome.of(stopped)
    return outcome
