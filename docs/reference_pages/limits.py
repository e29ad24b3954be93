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
        {first_line(Limits)} Pass them to `Workspace.open(directory, limits=Limits(...))`, or to
        `WorkspaceManager(root, limits=Limits(...))` for all sessions and to `create` for one. Exceeding
        `disk_bytes` or `entries`, the quota, raises `QuotaError`; exceeding another limit raises
        `LimitError`. The message contains the limit and the requested value.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Limits)]),
        "## Budget of a search",
        """
        A search that exhausts its budget is not an error: its result is `truncated`, and `reason` says which
        part of the budget was exhausted. Pass another budget to `Workspace.search(query,
        budget=SearchBudget(...))`; the class is in `carrel.workspace.search`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(SearchBudget)]),
        "## Budget of a command line",
        """
        A command line that exhausts its budget is stopped; its result has status 124 or 4, and `error_code`
        says which part was exhausted. Pass another budget to `Shell(workspace, budget=Budget(...))`.
        """,
        table(("field", "default", "meaning"), [limit_row(field) for field in documented(Budget)]),
        "## Limits of an extraction",
        """
        Exceeding one of them raises `LimitError` before anything is created. Pass others to
        `Workspace.extract(source, limits=ExtractLimits(...))`; the class is in
        `carrel.workspace.extract_limits`.
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
