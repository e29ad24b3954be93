"""Run Python in the session's guest."""

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
NOTES = "FILE is in the workspace. With -, or without arguments, the code is read from standard input."


class _Program(NamedTuple):
    """The program that the arguments name."""

    code: str | None
    file: str
    argv: tuple[str, ...]


def _parse_arguments(argv: Sequence[str]) -> _Program:
    rest = list(argv)
    while rest and rest[0] in ("-u", "-B", "-s", "-E", "-I"):
        # The guest always behaves as these options say.
        rest.pop(0)
    if not rest:
        return _Program(None, STDIN, ())
    first = rest[0]
    if first.startswith("-c"):
        code = first[2:] or next(iter(rest[1:]), None)
        if code is None:
            raise UsageError("argument expected for the -c option")
        return _Program(code, "", tuple(rest[1 if first[2:] else 2 :]))
    if first.startswith("-") and first != STDIN:
        raise UsageError(f"unknown option {first}")
    return _Program(None, first, tuple(rest[1:]))


def accesses(argv: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the file that is read; accesses of the code are checked when it runs."""
    program = _parse_arguments(argv)
    return reads(()) if program.code is not None else reads([program.file])


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Run a file of the workspace, code from the command line, or standard input."""
    if list(argv) in (["-V"], ["--version"]):
        return _run(ctx, _Program("import sys; print('Python', sys.version.split()[0])", "", ()))
    return _run(ctx, _parse_arguments(argv))


def _run(ctx: Context, program: _Program) -> int:
    guest = ctx.resources.python
    if guest is None:
        ctx.error("Python is not available in this shell")
        return 1
    try:
        source, name, file = _read_source(ctx, program)
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        ctx.report(error, f"can't open file {quote_if_needed(program.file)}", status=2)
        return ctx.status
    variables = ctx.state.environment()
    call = PythonCall(
        source=source,
        name=name,
        file=file,
        argv=program.argv,
        env={name: value for name, value in variables.items() if name not in SHELL_VARIABLES},
        cwd=ctx.state.cwd,
        stdin=() if program.file == STDIN else ctx.stdin,
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
    """Pass on output of the guest at once; the guest has its own buffers."""
    if stream == "stdout":
        ctx.write(data)
        ctx.flush()
    else:
        ctx.write_error(data)


def _read_source(ctx: Context, program: _Program) -> tuple[bytes, str | None, str | None]:
    """Return the code, its name and its absolute path."""
    if program.code is not None:
        return encode(program.code), None, None
    if program.file == STDIN:
        chunks: list[bytes] = []
        for chunk in ctx.chunks(STDIN):
            # Twice: the chunk, and its copy in the joined source.
            ctx.meter.charge_memory(2 * len(chunk))
            chunks.append(chunk)
        return b"".join(chunks), STDIN, None
    path = ctx.path(program.file)
    source = ctx.workspace.read(path)
    return source, program.file, path if path.startswith("/") else f"{ctx.workspace.mount}/{path}"
