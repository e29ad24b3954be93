"""Messages between a service and a worker process: frames of JSON and bytes, never pickles."""

from __future__ import annotations

import re
from enum import IntEnum
from struct import Struct
from typing import Any

from carrel.audit.counts import Count
from carrel.errors import CarrelError, class_of, rebuild
from carrel.shell.budget import Budget
from carrel.shell.result import LineOutcome
from carrel.shell.state import MAX_VARIABLES_CHARACTERS, ShellState

CHUNK_BYTES = 2**16
"""Maximum bytes of standard input in one frame."""
FRAME_BYTES = 2**20
"""Maximum bytes in one frame from a worker; a larger frame ends the worker."""
EVENTS_BYTES = 2**19
"""Approximate bytes of journal records in one frame."""
SOURCE_BYTES = 2**28
"""Maximum bytes of guest code read from standard input; the memory budget of a command allows less."""
CANCEL = Struct("<Q")
"""Message on the control socket: stop the command line with this serial number."""
SOCKET_SENT = b"p"
"""Accompanies a socket on the control socket, before the frame `PYTHON` that refers to it."""

_CODE = re.compile(r"[a-z_.]{1,64}")
"""An error code."""


class ShellFrameKind(IntEnum):
    """The kind of a frame."""

    RUN = 1
    """Run a command line; the body is the start of its standard input."""
    INPUT = 2
    """Request more standard input."""
    ANSWER = 3
    """A chunk of standard input; the head says whether it was the last."""
    STDOUT = 4
    STDERR = 5
    EVENTS = 6
    """New journal records, one per line."""
    LOG = 7
    """An event for the log of the service."""
    PYTHON = 8
    """Run guest code, over a separate socket."""
    STOP_PYTHON = 9
    """Stop guest code."""
    DONE = 10
    """The command line or the guest code has ended."""
    FAILED = 11
    """It could not be run, or failed with an internal error."""


def render_budget(budget: Budget, seconds: float | None) -> dict[str, object]:
    """Render *budget* with the remaining *seconds*."""
    return {
        "seconds": seconds,
        "output_bytes": budget.output_bytes,
        "entries": budget.entries,
        "memory_bytes": budget.memory_bytes,
    }


def render_state(state: ShellState) -> list[object]:
    """Render the state of a shell."""
    return [state.cwd, state.variables, sorted(state.exported), state.status, state.pipefail]


def parse_state(head: Any) -> ShellState:  # Any: whatever JSON can say
    """Parse the state of a shell.

    Raises:
        ValueError: It is not a state, or exceeds the limits of one.
    """
    match head:
        case [str(cwd), dict(variables), list(exported), int(status), bool(pipefail)] if all(
            isinstance(each, str) for each in (*variables.values(), *exported)
        ):
            size = sum(map(len, variables)) + sum(map(len, variables.values()))
            if size <= MAX_VARIABLES_CHARACTERS:
                return ShellState(cwd, variables, set(exported), status, pipefail)
    raise ValueError("not a shell state")


def parse_outcome(head: Any) -> LineOutcome:  # Any: whatever JSON can say
    """Parse the outcome of a command line.

    Raises:
        ValueError: It is not an outcome.
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
    raise ValueError("not an outcome of a command line")


def parse_counts(head: Any) -> list[Count]:  # Any: whatever JSON can say
    """Parse the numbers of refusals and mistakes in a command line.

    Raises:
        ValueError: They are not such numbers.
    """
    found: list[Count] = []
    for each in head if isinstance(head, list) else [head]:
        match each:
            case [bool(is_mistake), str(code), int(number)] if _CODE.fullmatch(code) and number > 0:
                found.append((is_mistake, code, number))
            case _:
                raise ValueError("not numbers of refusals")
    return found


def render_error(error: CarrelError) -> dict[str, object]:
    """Render an error."""
    return {"code": error.code, "message": error.message, "path": error.path}


def parse_error(head: dict[str, object]) -> CarrelError:
    """Parse an error."""
    code, message, path = head.get("code"), head.get("message"), head.get("path")
    if not isinstance(code, str) or not isinstance(message, str) or not isinstance(path, str | None):
        raise ValueError("not an error")
    return rebuild(class_of(code), message, path, {"code": code})
