"""Run Python in the guest of the session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from carrel.errors import CarrelError, ClosedError, SessionMissingError
from carrel.shell.api import PythonCall
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.errors import strerror
from carrel.shell.command.flags import UsageError
from carrel.shell.state import SHELL_VARIABLES
from carrel.shell.text.quoting import encode, quote_if_needed

USAGE = "FILE [ARG]... | -c CODE [ARG]... | - [ARG]..."
NOTES = "FILE is one of the workspace. With -, or nothing, the code comes from standard input."


class _Given(NamedTuple):
    """What the arguments ask for."""

    code: str | None
    file: str
    argv: tuple[str, ...]


def _given(argv: Sequence[str]) -> _Given:
    rest = list(argv)
    while rest and rest[0] in ("-u", "-B", "-s", "-E", "-I"):
        # What these ask for is always so in the guest.
        rest.pop(0)
    if not rest:
        return _Given(None, STDIN, ())
    first = rest[0]
    if first.startswith("-c"):
        code = first[2:] or next(iter(rest[1:]), None)
        if code is None:
            raise UsageError("argument expected for the -c option")
        return _Given(code, "", tuple(rest[1 if first[2:] else 2 :]))
    if first.startswith("-") and first != STDIN:
        raise UsageError(f"unknown option {first}")
    return _Given(None, first, tuple(rest[1:]))


def accesses(argv: Sequence[str]) -> Iterable[PathAccess]:
    """It reads its file; what the code does is decided when it runs."""
    given = _given(argv)
    return reads(()) if given.code is not None else reads([given.file])


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Run a file of the workspace, code that is given, or what standard input holds."""
    if list(argv) in (["-V"], ["--version"]):
        return _run(ctx, _Given("import sys; print('Python', sys.version.split()[0])", "", ()))
    return _run(ctx, _given(argv))


def _run(ctx: Context, given: _Given) -> int:
    guest = ctx.resources.python
    if guest is None:
        ctx.error("there is no guest in this shell")
        return 1
    try:
        source, name, file = _source(ctx, given)
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        ctx.report(error, f"can't open file {quote_if_needed(given.file)}", status=2)
        return ctx.status
    state = ctx.state
    call = PythonCall(
        source=source,
        name=name,
        file=file,
        argv=given.argv,
        env={
            name: state.variables[name] for name in state.exported & state.variables.keys() - SHELL_VARIABLES
        },
        cwd=state.cwd,
        stdin=() if given.file == STDIN else ctx.stdin,
        timeout_seconds=ctx.meter.remaining_seconds(),
        on_output=partial(_print, ctx),
        on_start=ctx.meter.on_stop,
    )
    try:
        status = guest.run(ctx.workspace, call)
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        ctx.error(strerror(error))
        return ctx.status
    ctx.meter.check()
    return status


def _print(ctx: Context, stream: str, data: bytes) -> None:
    """Hand on what the guest wrote, which has buffers of its own, as it comes."""
    if stream == "stdout":
        ctx.write(data)
        ctx.flush()
    else:
        ctx.write_error(data)


def _source(ctx: Context, given: _Given) -> tuple[bytes, str | None, str | None]:
    """The code, what it is called, and the file that it is."""
    if given.code is not None:
        return encode(given.code), None, None
    if given.file == STDIN:
        pieces = []
        for piece in ctx.chunks(STDIN):
            # Once as it is, and once in the whole.
            ctx.meter.charge_memory(2 * len(piece))
            pieces.append(piece)
        return b"".join(pieces), STDIN, None
    path = ctx.path(given.file)
    source = ctx.workspace.read(path)
    return source, given.file, path if path.startswith("/") else f"{ctx.workspace.mount}/{path}"
