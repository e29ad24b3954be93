"""The page about limits."""

from __future__ import annotations

from carrel.paths.glob import PATTERN_CHARACTERS
from carrel.paths.parsed_path import NAME_BYTES, PATH_BYTES
from carrel.paths.session_id import ID_CHARACTERS
from carrel.shell.budget import Budget
from carrel.shell.language.lexer import MAX_COMMAND_CHARACTERS
from carrel.values import Limits
from carrel.workspace.extract_limits import ExtractLimits
from carrel.workspace.search import QUERY_CHARACTERS, SearchBudget
from docs.reference_pages.markdown import page, table
from docs.reference_pages.source import documented, first_line


def make() -> str:
    """The page about limits."""
    return page(
        "Limits",
        f"""
        {first_line(Limits)} Give them to `Workspace.open(directory, limits=Limits(...))`, or to
        `WorkspaceManager(root, limits=Limits(...))` for all sessions and to `create` for one. What passes
        `disk_bytes` or `entries`, the quota, raises `QuotaError`, and what passes another one `LimitError`;
        the message says the limit and what was asked.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Limits)]),
        "## Budget of a search",
        """
        A search that reaches the end of its budget is no error: its result says `truncated`, and `reason`
        says which part of the budget it was. Give another one to `Workspace.search(query,
        budget=SearchBudget(...))`; it is in `carrel.workspace.search`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(SearchBudget)]),
        "## Budget of a command line",
        """
        A command line that reaches the end of its budget is stopped; its result has status 124 or 4, and
        `error_code` says which part it was. Give another one to `Shell(workspace, budget=Budget(...))`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Budget)]),
        "## Limits of an extraction",
        """
        What passes one of them raises `LimitError` before anything is made. Give others to
        `Workspace.extract(source, limits=ExtractLimits(...))`; it is in `carrel.workspace.extract_limits`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(ExtractLimits)]),
        "## Fixed limits",
        table(
            ("what", "limit"),
            [
                ("path", f"{PATH_BYTES - 1} bytes"),
                ("one name in a path", f"{NAME_BYTES} bytes"),
                ("session id", f"{ID_CHARACTERS} characters"),
                ("glob", f"{PATTERN_CHARACTERS} characters"),
                ("search query", f"{QUERY_CHARACTERS} characters"),
                ("command line", f"{MAX_COMMAND_CHARACTERS} characters"),
                ("links followed in one path", "40"),
            ],
        ),
    )


def limit_row(field: tuple[str, str, str]) -> tuple[str, str, str]:
    """A row for a number with its default."""
    name, default, text = field
    shown = f"{int(default):,}" if default.isdecimal() else default.replace(" * MIB", " MiB")
    return f"`{name}`", shown, text
