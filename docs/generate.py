"""Write the reference pages that follow from the code: `python docs/generate.py`.

A test fails when a page is not what this makes of it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import click

import carrel.errors
import carrel.workspace.edit
from carrel.config.load import DEFAULT_SESSIONS_DIR, SESSIONS_DIR
from carrel.errors import CarrelError, EditError, LimitError
from carrel.fronts.cli.main import BROKEN_PIPE, INTERRUPTED, cli
from carrel.fronts.cli.report import LOCAL, USAGE
from carrel.paths.match import PATTERN_CHARACTERS
from carrel.paths.names import ID_CHARACTERS
from carrel.paths.rel import NAME_BYTES, PATH_BYTES
from carrel.service.wire import TABLE, ExitStatus
from carrel.values import Limits
from carrel.workspace.search import QUERY_CHARACTERS, SearchBudget

DOCS = Path(__file__).parent
WIDTH = 100
NOTICE = "<!-- Made by docs/generate.py; do not edit. -->"


def errors_page() -> str:
    """The page about error codes."""
    rows = [
        (
            f"`{code}`",
            f"`{kind.__name__}`",
            ", ".join(f"`{name}`" for name in builtins_of(kind)),
            str(int(TABLE[code].exit_status)),
            "yes" if TABLE[code].retry else "",
            first_line(kind),
        )
        for code, kind in sorted(kinds().items())
    ]
    return page(
        "Errors",
        """
        Every error that an operation raises derives from `CarrelError` and from a builtin that people already
        catch. It has `code`, which is a promise, `message`, whose wording is not, and `path`: what the caller
        asked for, or `None`. No message holds a path of the host that the caller did not write.

        "Exit" is the exit status of the command line; "retry" says that the same call may work later.
        """,
        table(("code", "class", "also a", "exit", "retry", "meaning"), rows),
        "## Codes with several cases",
        f"`edit.*` is one of {', '.join(f'`edit.{case}`' for case in edit_cases())}.",
        f"`limit.*` is one of {', '.join(f'`limit.{field.name}`' for field in fields(Limits))}."
        " The error also has `limit` and `asked`. The ceilings are listed in [limits](limits.md).",
        "## Exit statuses",
        table(
            ("status", "meaning"),
            [
                ("0", "Done."),
                *((str(int(status)), text) for status, text in statuses()),
                (str(INTERRUPTED), "Ended by Ctrl-C."),
                (str(BROKEN_PIPE), "The reader of the output went away."),
            ],
        ),
        f"The command line has two codes of its own: `{USAGE}` (exit status 2) for words that make no sense"
        f" together, and `{LOCAL}` (exit status 1) for a local file or stream that cannot be used.",
    )


def cli_page() -> str:
    """The page about the command line."""
    top = click.Context(
        cli, info_name="carrel", terminal_width=WIDTH, max_content_width=WIDTH, **cli.context_settings
    )
    return page(
        "Command line",
        """
        `carrel` and `python -m carrel` are the same program. Errors are one line on standard error, or with
        `--json` one document `{"error": {"code": ..., "message": ..., "path": ...}}`. The exit status is in
        the [table of errors](errors.md#exit-statuses).

        With `--json` a command prints one document on one line of ASCII. A byte of a name that is not UTF-8
        is then a lone surrogate, `\\udc80` to `\\udcff`. Without it, a name that does not print is quoted.
        """,
        *(
            f"## {context.command_path}\n\n```text\n{context.command.get_help(context)}\n```"
            for context in contexts(top)
        ),
        "## JSON",
        table(
            ("command", "document"),
            [
                (
                    "`files ls`",
                    '`{"path", "entries": [entry], "complete"}`; not complete when a limit ended it',
                ),
                ("`files put`", "an entry"),
                ("`files rm`", '`{"path", "removed"}`; false if there was nothing and `--force` is on'),
                (
                    "`policy explain`",
                    '`{"session_id", "path", "decisions": [{"access", "allowed", "reason", "rule"}]}`;'
                    ' a rule is `{"index", "root", "mode"}` or null',
                ),
            ],
        ),
        """
        An entry is `{"path", "kind", "size_bytes", "modified_ns", "mode"}`. The kind is `file`, `directory`,
        `link` or `other`; the mode is text in octal, like `"0644"`.
        """,
    )


def limits_page() -> str:
    """The page about limits."""
    return page(
        "Limits",
        f"""
        {first_line(Limits)} Give them to `Workspace.open(directory, limits=Limits(...))`. What passes a limit
        raises `LimitError`, whose message says the limit and what was asked.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Limits)]),
        "## Budget of a search",
        """
        A search that reaches the end of its budget is no error: its result says `truncated`, and `reason`
        says which part of the budget it was. Give another one to `Workspace.search(query,
        budget=SearchBudget(...))`; it is in `carrel.workspace.search`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(SearchBudget)]),
        "## Fixed limits",
        table(
            ("what", "limit"),
            [
                ("path", f"{PATH_BYTES - 1} bytes"),
                ("one name in a path", f"{NAME_BYTES} bytes"),
                ("session id", f"{ID_CHARACTERS} characters"),
                ("glob", f"{PATTERN_CHARACTERS} characters"),
                ("search query", f"{QUERY_CHARACTERS} characters"),
                ("links followed in one path", "40"),
            ],
        ),
    )


def settings_page() -> str:
    """The page about settings."""
    name, alias = SESSIONS_DIR
    return page(
        "Settings",
        """
        Settings come from the environment; one that is empty counts as not set. An argument or an option goes
        before them: `workspace_root=` in Python, `--sessions-dir` on the command line.
        """,
        table(
            ("environment", "alias", "default", "meaning"),
            [
                (
                    f"`{name}`",
                    f"`{alias}`",
                    f"`./{DEFAULT_SESSIONS_DIR}`",
                    "The directory that holds all workspaces.",
                )
            ],
        ),
        """
        The directory is made with mode 0700 if it is missing. It is refused if it is a link, belongs to
        another user, or may be written by others. What carrel itself keeps is in `.carrel` inside it:
        unfinished files, removed trees and journals. No session can have that name.
        """,
    )


PAGES: dict[str, Callable[[], str]] = {
    "reference/errors.md": errors_page,
    "reference/cli.md": cli_page,
    "reference/limits.md": limits_page,
    "reference/settings.md": settings_page,
}


# Markdown


def page(title: str, *parts: str) -> str:
    """A whole page."""
    return "\n\n".join([f"# {title}", NOTICE, *(textwrap.dedent(part).strip() for part in parts)]) + "\n"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; a bar in a cell does not end it."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


# What the code says


def kinds() -> dict[str, type[CarrelError]]:
    """Every class of error by its code, or by its area where it has a code per case."""
    areas = {LimitError: "limit.*", EditError: "edit.*"}
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


def edit_cases() -> list[str]:
    """What the sources give to `EditError` as the problem."""
    tree = ast.parse(inspect.getsource(carrel.workspace.edit))
    return sorted(
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == EditError.__name__
        and isinstance(node.args[0], ast.Constant)
    )


def statuses() -> Iterator[tuple[ExitStatus, str]]:
    """The exit statuses of errors, with what is written below them."""
    for name, _, text in documented(ExitStatus):
        if text:
            yield ExitStatus[name], text


def documented(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, value and the words below each field of *kind*."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101  # for the type checker
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            name, value = node.target.id, node.value
        else:
            continue
        yield name, ast.unparse(value), _words(below)


def _words(node: ast.stmt | None) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return re.sub(r"\s+", " ", node.value.value)
    return ""


def limit_row(field: tuple[str, str, str]) -> tuple[str, str, str]:
    """A row for a number with its default."""
    name, default, text = field
    shown = f"{int(default):,}" if default.isdecimal() else default.replace(" * MIB", " MiB")
    return f"`{name}`", shown, text


def first_line(thing: object) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def contexts(parent: click.Context) -> Iterator[click.Context]:
    """The program itself, and every command below it that does something."""
    yield parent
    assert isinstance(parent.command, click.Group)  # noqa: S101  # for the type checker
    for name, command in parent.command.commands.items():
        context = click.Context(
            command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
        )
        if isinstance(command, click.Group):
            yield from list(contexts(context))[1:]
        else:
            yield context


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (DOCS / name).write_text(make())


if __name__ == "__main__":
    main()
