"""Errors of the command line: message, exit status, debug output, and extras that are not installed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from carrel.config.debug import DEBUG_VARIABLE, is_debug
from carrel.errors import CarrelError
from carrel.fronts.cli.help import did_you_mean
from carrel.fronts.cli.local_files import LocalError
from carrel.fronts.cli.output import BUG, LOCAL, MISSING, USAGE, hint, print_error, print_json


class MissingPackageError(Exception):
    """A package that the command needs is not installed."""


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Import meanwhile what comes with *extra*.

    Raises:
        MissingPackageError: It is not installed; the message says how to.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        told = f"{package} is not installed: pip install 'carrel[{extra}]'"
        raise MissingPackageError(told) from None


BUG_STATUS = 70
"""What the program exits with when it met something that nobody foresaw."""
DEBUG = "--debug"
NEXT_STEPS = {
    "session.missing": "those that are there: carrel session list; a new one: carrel session create ID",
    "runtime.missing": "more about it: carrel doctor",
    "sessions.unavailable": "more about it: carrel doctor",
}
"""What may help, by the code of the error."""
_WITH_VALUE = ("--sessions-dir",)
"""The options before a command whose next word is no option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One exception, as the command line tells it."""

    code: str
    message: str
    path: str | None = None
    status: int

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """What *error* means."""
        from carrel.service.error_status import ExitStatus, error_status

        if isinstance(error, CarrelError):
            status = error_status(error.code).exit_status
            return cls(code=error.code, message=error.message, path=error.path, status=status)
        if isinstance(error, click.ClickException):
            return cls(code=USAGE, message=_with_hint(error), status=ExitStatus.INVALID)
        if isinstance(error, MissingPackageError):
            return cls(code=MISSING, message=str(error), status=ExitStatus.UNAVAILABLE)
        if isinstance(error, LocalError):
            return cls(code=LOCAL, message=error.message, path=error.path, status=ExitStatus.FAILED)
        if isinstance(error, OSError):
            told = f"input or output failed: {error.strerror or error}"
            return cls(code=LOCAL, message=told, status=ExitStatus.FAILED)
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
        return cls(
            code=BUG,
            message=f"this is a bug in carrel, please report it: {words} (carrel {DEBUG} ... shows where)",
            status=BUG_STATUS,
        )

    def tell(self, *, as_json: bool) -> None:
        """Say it on standard error, in one line."""
        print_error(self.code, self.message, self.path, as_json=as_json)
        if self.code in NEXT_STEPS and not as_json:
            hint(NEXT_STEPS[self.code])

    def tell_all(self, error: Exception, *, as_json: bool) -> None:
        """Say it with the traceback, and with what may matter besides."""
        from traceback import format_exception

        trace = "".join(format_exception(error))
        if as_json:
            told = {"code": self.code, "message": self.message, "path": self.path}
            print_json({"error": told, "debug": {"traceback": trace, **_context()}}, err=True)
            return
        from carrel.audit.logger import printable

        lines = (*trace.splitlines(), *(f"{name}: {value}" for name, value in _context().items()))
        click.echo("\n".join(printable(line) for line in lines), err=True)
        self.tell(as_json=False)


def wants_debug(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether to tell all; asked of the words themselves, as they may make no sense together."""
    return is_debug(environ) or DEBUG in _before_command(argv)


def _before_command(argv: Sequence[str]) -> Iterator[str]:
    words = iter(argv)
    for word in words:
        if not word.startswith("-"):
            return
        yield word
        if word in _WITH_VALUE:
            next(words, None)


def _with_hint(error: click.ClickException) -> str:
    message = re.sub(r"\n\s*", " ", error.format_message())
    if isinstance(error, click.NoSuchOption):
        message = f"{error.message}{did_you_mean((error.possibilities or [])[:1])}"
    if not message.endswith((".", "?")):
        message += "."
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message} Try '{error.ctx.command_path} --help'."
    return message


def _context() -> dict[str, Any]:  # Any: whatever JSON can say
    """Where this happened; of the environment only the names, as some values are secret."""
    import platform
    from importlib.metadata import version

    host = os.uname()
    return {
        "carrel": version("carrel"),
        "python": platform.python_version(),
        "platform": f"{host.sysname} {host.release} {host.machine}",
        "program": sys.executable,
        "directory": os.environ.get("PWD"),
        "variables": sorted(
            name for name in os.environ if name.startswith("CARREL_") and name != DEBUG_VARIABLE
        ),
    }
