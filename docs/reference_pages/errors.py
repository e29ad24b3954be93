"""The page about error codes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import carrel.errors
import carrel.storage.quota
import carrel.storage.registry_rules
import carrel.tools
import carrel.workspace.archive.spool
import carrel.workspace.edit
import carrel.workspace.extract_limits
from carrel.errors import (
    CarrelError,
    ContainerError,
    EditError,
    EngineError,
    LimitError,
    QuotaError,
    ToolError,
)
from carrel.fronts.cli.errors import BUG_STATUS
from carrel.fronts.cli.main import BROKEN_PIPE, INTERRUPTED
from carrel.fronts.cli.output import BUG, LOCAL, MISSING, USAGE
from carrel.service.error_status import TABLE, ExitStatus
from carrel.storage.quota import Quota
from carrel.values import Limits
from docs.reference_pages.markdown import codes, page, table
from docs.reference_pages.source import cases, documented, first_arguments, first_line, sources


def make() -> str:
    """The page about error codes."""
    return page(
        "Errors",
        """
        Every error that an operation raises derives from `CarrelError` and from a builtin that people already
        catch. It has a `code`, which is stable, a `message`, whose wording may change, and the `path` as the
        caller wrote it, or `None`. No message contains a host path that the caller did not write.
        """,
        table(
            ("code", "class", "also a", "meaning"),
            [
                (f"`{code}`", f"`{kind.__name__}`", codes(builtins_of(kind)), first_line(kind))
                for code, kind in coded()
            ],
        ),
        "## Statuses by code",
        """
        "Exit" is the exit status of the command line, "HTTP" and "gRPC" are the statuses of the service;
        "retry" means that the same call may succeed later.
        """,
        table(
            ("code", "exit", "HTTP", "gRPC", "retry"),
            [
                (
                    f"`{code}`",
                    str(int(row.exit_status)),
                    str(row.http_status),
                    f"`{row.grpc_status}`",
                    "yes" if row.retry else "",
                )
                for code, row in TABLE.items()
            ],
        ),
        "## Codes with several cases",
        f"`container.*` is one of {', '.join(f'`container.{case}`' for case in container_cases())};"
        f" `engine.*` is one of {', '.join(f'`engine.{case}`' for case in engine_cases())}.",
        f"`edit.*` is one of {', '.join(f'`edit.{case}`' for case in edit_cases())}.",
        f"`limit.*` is one of {', '.join(f'`limit.{case}`' for case in limit_cases())}; of an"
        f" archive, {', '.join(f'`limit.{case}`' for case in archive_cases())}; of all sessions together,"
        f" {', '.join(f'`limit.{case}`' for case in registry_cases())}.",
        f"`quota.*` is one of {', '.join(f'`quota.{case}`' for case in quota_cases())}.",
        f"`tool.*` is one of {', '.join(f'`tool.{case}`' for case in tool_cases())}. A tool does not raise:"
        " its [answer](tools.md#the-answer) has the code in its metadata. If a command or code was"
        f" stopped, the code may also be {', '.join(f'`limit.{case}`' for case in run_cases())}.",
        "Errors of `limit.*` and `quota.*` also have `limit` and `asked`. The limits are listed in"
        " [limits](limits.md).",
        "## Exit statuses",
        table(
            ("status", "meaning"),
            [
                ("0", "Done."),
                *((str(int(status)), text) for status, text in statuses()),
                (str(BUG_STATUS), "A bug in carrel: an unexpected exception."),
                (str(INTERRUPTED), "Ended by Ctrl-C."),
                (str(BROKEN_PIPE), "The reader of the output closed it."),
            ],
        ),
        f"The command line has four codes of its own: `{USAGE}` (exit status 2) for an invalid combination of"
        f" arguments, `{LOCAL}` (exit status 1) for a local file or stream that cannot be used, `{MISSING}`"
        " (exit status 5) for a package that is not installed and that the command needs, and"
        f" `{BUG}` (exit status {BUG_STATUS}) for a bug in carrel.",
    )


def coded() -> Iterator[tuple[str, type[CarrelError]]]:
    """Every row of the table with its class of error."""
    found = kinds()
    for code in TABLE:
        yield code, found.get(code) or found[f"{code.partition('.')[0]}.*"]


def kinds() -> dict[str, type[CarrelError]]:
    """Every class of error by its code, or by its area where it has a code per case."""
    areas = {
        ContainerError: "container.*",
        EditError: "edit.*",
        EngineError: "engine.*",
        LimitError: "limit.*",
        QuotaError: "quota.*",
        ToolError: "tool.*",
    }
    found = [kind for _, kind in inspect.getmembers(carrel.errors, inspect.isclass)]
    return {areas.get(kind, kind.code): kind for kind in found if issubclass(kind, CarrelError)}


def builtins_of(kind: type[CarrelError]) -> list[str]:
    """The builtin errors that catch *kind*, without those that only stand above another one."""
    found = [each for each in kind.__mro__ if each.__module__ == "builtins"]
    return [
        each.__name__
        for each in found
        if not any(other is not each and issubclass(other, each) for other in found)
    ]


def statuses() -> Iterator[tuple[ExitStatus, str]]:
    """The exit statuses of errors, with what is written below them."""
    for name, _, text in documented(ExitStatus):
        if text:
            yield ExitStatus[name], text


def container_cases() -> list[str]:
    """What the sources give to `ContainerError` as the problem."""
    return sorted({case for text in sources() for case in first_arguments(text, ContainerError.__name__)})


def engine_cases() -> list[str]:
    """What the sources give to `EngineError` as the problem."""
    return sorted({case for text in sources() for case in first_arguments(text, EngineError.__name__)})


def edit_cases() -> list[str]:
    """What the sources give to `EditError` as the problem."""
    return cases(carrel.workspace.edit, EditError.__name__)


def limit_cases() -> list[str]:
    """The ceilings of a workspace that are not its quota."""
    quota = {field.name for field in fields(Quota)}
    return [field.name for field in fields(Limits) if field.name not in quota]


def registry_cases() -> list[str]:
    """The ceilings of all sessions together."""
    return cases(carrel.storage.registry_rules, LimitError.__name__)


def quota_cases() -> list[str]:
    """What the sources give to `QuotaError` as what there is too much of."""
    return cases(carrel.storage.quota, QuotaError.__name__)


def archive_cases() -> list[str]:
    """The ceilings of an extraction."""
    name = carrel.workspace.extract_limits.require.__name__
    found = (carrel.workspace.extract_limits, carrel.workspace.archive.spool)
    return sorted({case for module in found for case in cases(module, name)})


def tool_cases() -> list[str]:
    """What the sources of the tools give to `ToolError` as the problem, and codes of that area elsewhere."""
    given = {case for text in tool_sources() for case in first_arguments(text, ToolError.__name__)}
    return sorted(given | set(codes_of_tools("tool")))


def run_cases() -> list[str]:
    """The limits of commands and code."""
    return [case for case in codes_of_tools("limit") if case not in limit_cases()]


def codes_of_tools(area: str) -> list[str]:
    """The cases of *area* that the sources of the tools name."""
    found = {case for text in tool_sources() for case in re.findall(rf'"{area}\.(\w+)"', text)}
    return sorted(found)


def tool_sources() -> Iterator[str]:
    """The sources of all tools, and of what they share."""
    for folder in carrel.tools.__path__:
        for file in sorted(Path(folder).rglob("*.py")):
            yield file.read_text()
