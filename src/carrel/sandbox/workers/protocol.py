"""Messages between a service and a worker process: frames of JSON and bytes, never pickles."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any

from carrel.errors import CarrelError, class_of, rebuild
from carrel.shell.budget import Budget
from carrel.shell.result import LineOutcome
from carrel.shell.state import MAX_VARIABLES_CHARACTERS, ShellState

PIECE_BYTES = 2**16
"""Most bytes of standard input in one frame."""
FRAME_BYTES = 2**20
"""Most bytes in one frame from a worker; larger ones end it."""
EVENTS_BYTES = 2**19
"""About so many bytes of records are sent in one frame."""
SOURCE_BYTES = 2**28
"""Most bytes of guest code that standard input gave; the memory budget of a line allows less."""
CANCEL = Struct("<Q")
"""An order on the control socket: stop the line with this serial number."""
HANDED = b"p"
"""Comes with a socket on the control socket, before the frame `PYTHON` that is about it."""


class ShellFrameKind(IntEnum):
    """What a frame is about."""

    RUN = 1
    """Run a command line; the body is the beginning of its standard input."""
    INPUT = 2
    """More of the standard input is wanted."""
    ANSWER = 3
    """A piece of standard input; the head says if it was the last."""
    STDOUT = 4
    STDERR = 5
    EVENTS = 6
    """Records of the journal that were written, one in a line."""
    LOG = 7
    """An event for the log of the service."""
    PYTHON = 8
    """Guest code is to be run, over a socket of its own."""
    STOP_PYTHON = 9
    """Guest code is to be stopped."""
    DONE = 10
    """The line, or the guest code, has ended."""
    FAILED = 11
    """It could not be run, or failed by a mistake of ours."""


def render_budget(budget: Budget, seconds: float | None) -> dict[str, object]:
    """*budget* with the *seconds* that are left of it."""
    return {
        "seconds": seconds,
        "output_bytes": budget.output_bytes,
        "entries": budget.entries,
        "memory_bytes": budget.memory_bytes,
    }


def render_state(state: ShellState) -> list[object]:
    """What a shell remembers."""
    return [state.cwd, state.variables, sorted(state.exported), state.status, state.pipefail]


def parse_state(head: Any) -> ShellState:  # Any: whatever JSON can say
    """What a shell remembers.

    Raises:
        ValueError: It is something else, or more than a shell may remember.
    """
    match head:
        case [str(cwd), dict(variables), list(exported), int(status), bool(pipefail)] if all(
            isinstance(each, str) for each in (*variables.values(), *exported)
        ):
            size = sum(map(len, variables)) + sum(map(len, variables.values()))
            if size <= MAX_VARIABLES_CHARACTERS:
                return ShellState(cwd, variables, set(exported), status, pipefail)
    raise ValueError("no state of a shell")


def parse_ending(head: Any) -> LineOutcome:  # Any: whatever JSON can say
    """How a line ended.

    Raises:
        ValueError: It is something else.
    """
    match head:
        case [
            int(status),
            str() | None as code,
            str() | None as message,
            bool(exits),
            bool(is_truncated),
        ]:
            return LineOutcome(status, code, message, exits, is_truncated)
    raise ValueError("no ending of a command line")


def render_error(error: CarrelError) -> dict[str, object]:
    """What is told about an error."""
    return {"code": error.code, "message": error.message, "path": error.path}


def parse_error(head: dict[str, object]) -> CarrelError:
    """The error that is told about."""
    code, message, path = head.get("code"), head.get("message"), head.get("path")
    if not isinstance(code, str) or not isinstance(message, str) or not isinstance(path, str | None):
        raise ValueError("no error")
    return rebuild(class_of(code), message, path, {"code": code})
