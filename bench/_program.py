"""What every benchmark does: take its options, measure in a directory that is removed, and tell."""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from bench import _report
from bench._measure import Row
from bench._report import Aim, machine, verdicts

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


class Bench(Protocol[R]):
    """Something to measure, row by row."""

    def run(self) -> Iterator[R]:
        """Measure, one row after the other."""
        ...

    def aims(self, rows: Sequence[R]) -> list[Aim]:
        """What was aimed at, and what was found."""
        ...


class Report(Protocol[R_contra]):
    """How rows are told."""

    def heading(self, machine: Mapping[str, object], /) -> str:
        """What the numbers depend on, and the names of the columns."""
        ...

    def lines(self, row: R_contra, /) -> str:
        """A row as text."""
        ...

    def for_programs(
        self, rows: Sequence[R_contra], aims: Sequence[Aim], machine: Mapping[str, object], /
    ) -> dict[str, object]:
        """Everything as plain values."""
        ...


def run(description: str, make: Callable[[Path, bool], Bench[Row]]) -> None:
    """Measure what *make* gives for a directory of its own, quickly or not."""
    arguments = options(description).parse_args()
    measure(arguments, lambda base: make(base, arguments.quick), _report)


def measure(arguments: argparse.Namespace, make: Callable[[Path], Bench[R]], report: Report[R]) -> None:
    """Measure what *make* gives for a directory of its own, and tell it as *report* does."""
    logging.getLogger("carrel").setLevel(logging.CRITICAL + 1)
    directory = arguments.dir.resolve()
    base = Path(tempfile.mkdtemp(prefix=".bench-", dir=directory))
    show: Callable[[str], None] = _ignore if arguments.json else partial(print, flush=True)
    try:
        bench = make(base)
        show(report.heading(machine(directory)))
        rows = []
        for row in bench.run():
            rows.append(row)
            show(report.lines(row))
        aims = bench.aims(rows)
        show("\n" + verdicts(aims))
    finally:
        subprocess.run(["rm", "-rf", "--", base], check=True)  # copes with any depth, whatever broke before
    if arguments.json:
        print(json.dumps(report.for_programs(rows, aims, machine(directory)), indent=2))


def options(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="small counts: some seconds, rough ratios")
    parser.add_argument("--dir", type=Path, default=Path(__file__).parent, help="where to put the files")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    return parser


def _ignore(_: str) -> None:
    """Leave the output to the JSON at the end."""
