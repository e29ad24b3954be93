"""Errors of the command line: message, exit status, debug output, and missing extras."""

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
    """A package required by the command is not installed."""


@contextmanager
def requires_extra(extra: str) -> Iterator[None]:
    """Turn a failed import in the body into an error that names *extra*.

    Raises:
        MissingPackageError: A package of the extra is not installed; the message says how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        message = f"{package} is not installed: pip install 'carrel[{extra}]'"
        raise MissingPackageError(message) from None


BUG_STATUS = 70
"""Exit status after an unexpected exception (EX_SOFTWARE of sysexits.h)."""
DEBUG = "--debug"
NEXT_STEPS = {
    "session.missing": "list sessions with: carrel session list; create one with: carrel session create ID",
    "runtime.missing": "for details, run: carrel doctor",
    "sessions.unavailable": "for details, run: carrel doctor",
}
"""Hint printed after an error, by error code."""
_WITH_VALUE = ("--sessions-dir",)
"""Global options that take a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One exception as the command line reports it."""

    code: str
    message: str
    path: str | None = None
    status: int

    @classmethod
    def from_error(cls, error: Exception) -> Failure:
        """The report for *error*."""
        from carrel.service.error_status import ExitStatus, error_status

        if isinstance(error, CarrelError):
            status = error_status(error.code).exit_status
            # Notes are for the operator of this machine, and may name paths of it.
            message = "; ".join([error.message, *getattr(error, "__notes__", ())])
            return cls(code=error.code, message=message, path=error.path, status=status)
        if isinstance(error, click.ClickException):
            return cls(code=USAGE, message=_usage_message(error), status=ExitStatus.INVALID)
        if isinstance(error, MissingPackageError):
            return cls(code=MISSING, message=str(error), status=ExitStatus.UNAVAILABLE)
        if isinstance(error, LocalError):
            return cls(code=LOCAL, message=error.message, path=error.path, status=ExitStatus.FAILED)
        if isinstance(error, OSError):
            message = f"input or output failed: {error.strerror or error}"
            return cls(code=LOCAL, message=message, status=ExitStatus.FAILED)
        summary = f"{type(error).__name__}: {error}".removesuffix(": ")
        return cls(
            code=BUG,
            message=f"this is a bug in carrel, please report it: {summary}"
            f" (carrel {DEBUG} ... prints a traceback)",
            status=BUG_STATUS,
        )

    def print(self, *, as_json: bool) -> None:
        """Print it on standard error as one line, with a hint for people."""
        print_error(self.code, self.message, self.path, as_json=as_json)
        if self.code in NEXT_STEPS and not as_json:
            hint(NEXT_STEPS[self.code])

    def print_debug(self, error: Exception, *, as_json: bool) -> None:
        """Print it with the traceback and facts about the environment."""
        from traceback import format_exception

        trace = "".join(format_exception(error))
        if as_json:
            document = {"code": self.code, "message": self.message, "path": self.path}
            print_json({"error": document, "debug": {"traceback": trace, **_environment()}}, err=True)
            return
        from carrel.audit.logger import printable

        lines = (*trace.splitlines(), *(f"{name}: {value}" for name, value in _environment().items()))
        click.echo("\n".join(printable(line) for line in lines), err=True)
        self.print(as_json=False)


def wants_debug(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether to print tracebacks; reads the raw arguments, since parsing them may be what failed."""
    return is_debug(environ) or DEBUG in _global_options(argv)


def _global_options(argv: Sequence[str]) -> Iterator[str]:
    words = iter(argv)
    for word in words:
        if not word.startswith("-"):
            return
        yield word
        if word in _WITH_VALUE:
            next(words, None)


def _usage_message(error: click.ClickException) -> str:
    """The message on one line, with a suggestion and the `--help` to try."""
    message = re.sub(r"\n\s*", " ", error.format_message())
    if isinstance(error, click.NoSuchOption):
        message = f"{error.message}{did_you_mean((error.possibilities or [])[:1])}"
    if not message.endswith((".", "?")):
        message += "."
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message} Try '{error.ctx.command_path} --help'."
    return message


def _environment() -> dict[str, Any]:  # Any: any JSON value
    """Versions, platform and the names of our variables; not their values, some of which are secret."""
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
