"""Plots of ratios, drawn by guest Python in a session: data goes in as a file, drawings come out as files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._areas import AREAS, Area
from bench._errors import BrokenError
from bench._jobs import JOBS, bare_name, ways
from bench._results import Result
from bench._rows import Row
from carrel import ExecutionPolicy, create_session_sandbox, read_session_file, write_session_file

SUMMARY = "summary"
DRAW = Path(__file__).with_name("_draw.py")
MEMORY_BYTES = 1 << 30
TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Bar:
    """The speed of ours relative to another way."""

    way: str
    times: float
    note: str = ""
    """Text beside the bar."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars, in groups that have a label each."""

    name: str
    title: str
    groups: Sequence[tuple[str, Sequence[Bar]]]

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"bench-{self.name}.svg"


def plots(results: Mapping[str, Result]) -> list[Plot]:
    """The jobs of the first table, then a plot for each benchmark that was measured."""
    made = [
        Plot(SUMMARY, "The jobs above", list(_jobs(results))),
        *(_area(area, results[area.name]) for area in AREAS if area.name in results),
    ]
    return [plot for plot in made if plot.groups]


def _jobs(results: Mapping[str, Result]) -> Iterator[tuple[str, list[Bar]]]:
    for job in JOBS:
        row = job.row(results)
        if row is None:
            continue
        bars = [
            Bar(kind, 1 / row.ratio(way), bare_name(way))
            for kind, beginnings in (
                ("unconfined", job.unconfined),
                ("alternatives", job.others),
            )
            for way in ways(row, beginnings)
            if way in row.figures
        ]
        yield job.name.replace("`", ""), bars


def _area(area: Area, result: Result) -> Plot:
    groups = []
    for row in result.rows:
        bars = list(_bars(row))
        if bars and row.is_time and row.detail not in area.unplotted:
            groups.append((f"{row.operation}, {row.detail}".removesuffix(", "), bars))
    return Plot(area.name, area.title, groups)


def _bars(row: Row) -> Iterator[Bar]:
    """One bar for each kind of way that is not ours: the first of that kind."""
    seen = set()
    for way in row.others:
        kind = way.partition(":")[0]
        if kind not in seen and not kind.startswith("ours"):
            seen.add(kind)
            yield Bar(kind, 1 / row.ratio(way))


def draw(wanted: Sequence[Plot]) -> dict[str, bytes]:
    """The drawings, by the names of their files.

    Raises:
        BrokenError: The guest could not draw them.
    """
    if not wanted:
        return {}
    policy = ExecutionPolicy(memory_bytes=MEMORY_BYTES, timeout_seconds=TIMEOUT_SECONDS)
    with tempfile.TemporaryDirectory() as root:
        session_id, sandbox = create_session_sandbox(workspace_root=root, policy=policy)
        plain = [asdict(plot) | {"file": plot.file} for plot in wanted]
        write_session_file(session_id, "plots.json", json.dumps(plain), workspace_root=root)
        with sandbox:
            done = sandbox.execute(DRAW.read_text("utf-8"))
        if not done.success:
            raise BrokenError(f"the plots could not be drawn: {done.stderr}")
        return {plot.file: read_session_file(session_id, plot.file, workspace_root=root) for plot in wanted}
